"""Labels, clusters, rankings and sets through the client and the command: sent, compared, ranked."""

import json
from pathlib import Path

import prevail
import pytest
from prevail.command.main import main

from tests.api.test_kinds_together import KINDS, USUAL


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_every_kind(
    pv: prevail.Client,
    base_url: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = ({"kind": kind, **source} for source in KINDS[kind])
    pv.evaluate(input=first, model="one", dataset=kind)
    path = tmp_path / "second.json"
    path.write_text(json.dumps(second))
    monkeypatch.setenv("PREVAIL_URL", base_url)
    assert main(["evaluate", str(path), "--model", "two", "--dataset", kind]) == 0
    assert "two on" in capsys.readouterr().out
    board = pv.leaderboard(kind)
    assert board.data["metric"] == USUAL[kind]
    assert [line["model"]["name"] for line in board.items] == ["one", "two"]
    assert main(["leaderboard", kind]) == 0
    assert f"{kind} by {USUAL[kind]}" in capsys.readouterr().out
    assert main(["compare", "one", "two", "--dataset", kind]) == 0
    assert USUAL[kind].partition("(")[0] in capsys.readouterr().out
