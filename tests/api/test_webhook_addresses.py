"""What a webhook may reach, on a service as it comes."""

import secrets

import httpx

from tests.api.answers import evaluation
from tests.api.test_webhooks import Receiver, wait_for


def test_private_addresses_are_refused(client: httpx.Client) -> None:
    """Whatever the name is: what counts is the address that it leads to when something is sent."""
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
