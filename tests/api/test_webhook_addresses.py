"""What a webhook may reach, on a service as it comes."""

import secrets
from collections.abc import Iterator

import httpx
import pytest

from app.outbound.addresses import can_be_reached
from app.settings import Settings
from tests.api.answers import check_problem, evaluation
from tests.api.conftest import usual_settings
from tests.api.test_webhooks import Receiver, wait_for
from tests.serving import Served

NEVER = [
    *("127.0.0.1", "localhost", "a.localhost.", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "10.0.0.1"),
    *("169.254.169.254", "224.0.0.1", "0.0.0.0", "[fe80::1]", "hooks.invalid", "a..b", ".", "a" * 64),  # noqa: S104 - refused
]


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return usual_settings(database_url)


@pytest.mark.parametrize("host", NEVER)
def test_what_can_never_be_reached_is_refused_when_it_is_put(client: httpx.Client, host: str) -> None:
    body = {"url": f"https://{host}:8443/in", "events": ["gate.checked"]}
    problem = check_problem(client.put("/v1/webhooks/never", json=body), 422, "invalid_input")
    assert [(error["pointer"], error["code"]) for error in problem["errors"]] == [("/url", "unreachable")]
    assert client.get("/v1/webhooks/never").status_code == 404


def test_with_private_addresses_names_have_to_be_some() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "10.0.0.1", "hooks", "hooks_1.corp"):
        assert can_be_reached(host, private=True), host
    for host in ("hooks.invalid", "a..b", "224.0.0.1", "ff02::1", "::1::", "", "hooks|", 'a"b.example', "{x}"):
        assert not can_be_reached(host, private=True), host


@pytest.fixture
def unchecked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A service for which every address looks like one of the Internet, as a name may until something is sent."""
    monkeypatch.setattr("app.wiring.can_be_reached", lambda *_, **__: True)
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


def test_private_addresses_are_refused(unchecked: httpx.Client) -> None:
    """Whatever the name is: what counts is the address that it leads to when something is sent."""
    client = unchecked
    receiver = Receiver()
    there = {"X-Prevail-Project": f"project-{secrets.token_hex(4)}"}
    hosts = ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433")
    client.put("/v1/gates/g", json={"rules": [{"metric": "h_mean", "min": 0.5}]}, headers=there)
    run = client.post("/v1/evaluations", json=evaluation(), headers=there).json()["id"]
    for place, host in enumerate(hosts):
        body = {"url": f"http://{host}:{receiver.server.server_port}/", "events": ["gate.checked"]}
        assert client.put(f"/v1/webhooks/hook{place}", json=body, headers=there).status_code == 201
    client.post("/v1/gates/g/checks", json={"evaluation": run}, headers=there).raise_for_status()

    def errors() -> list[str | None]:
        found = []
        for place in range(len(hosts)):
            (one,) = client.get(f"/v1/webhooks/hook{place}/deliveries", headers=there).json()["items"]
            assert one["response_status"] is None
            found.append(one["error"])
        return found

    wait_for(lambda: None not in errors())
    for error in errors():
        assert error is not None
        assert "expected an address of the Internet" in error
    assert receiver.told == []
    receiver.server.shutdown()
