"""Table 2 of Aguilar-Ruiz (2025), end to end over HTTP."""

import httpx
import pytest

from examples import iris

PRINTED = {
    "accuracy": 0.940,
    "balanced_accuracy": 0.940,
    "g_mean": 0.939,
    "h_mean": 0.938,
    "au_mcp_trapezoid": 0.905,
}


@pytest.mark.slow
def test_the_printed_values(base_url: str) -> None:
    with httpx.Client(base_url=base_url, timeout=60) as client:
        made = iris.post(client)
        assert {name: round(value, 3) for name, value in made["requested"].items()} == PRINTED
        assert client.get(f"/v1/evaluations/{made['id']}").json() == made
        rule = iris.find_rule(client, made["id"])
    assert rule["objective"]["default"] == pytest.approx(0.9)
    assert rule["objective"]["gain"] >= 0


@pytest.mark.slow
def test_the_script_prints_the_line(base_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    iris.main(["--url", base_url])
    line = capsys.readouterr().out.splitlines()[0]
    assert line == "  ".join(f"{name} {value:.3f}" for name, value in PRINTED.items())
