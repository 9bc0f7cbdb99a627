"""Addresses that the service does not send to, and the one look at where a name leads."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import pytest

from app.outbound.addresses import AddressRefused, addresses_of, is_public
from app.outbound.posting import post
from tests.bank import each

# This machine, private networks, links, groups, documentation, and what stands for an address of the other kind.
OURS = [
    *("127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.0", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),  # noqa: S104
    *("224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "100::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "2002:c0a8:101::1"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a9fe:a9fe"),
]


@each("address", OURS)
def test_what_is_not_of_the_internet(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_what_is_of_the_internet(address: str) -> None:
    assert is_public(ip_address(address))


def lead(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let every name lead to these addresses, at each look to the next ones; returns the names that were looked for."""
    looked: list[str] = []

    async def getaddrinfo(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        looked.append(host)
        found = answers[len(looked) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)
    return looked


def test_one_that_is_private_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    lead(monkeypatch, ["1.1.1.1", "10.0.0.1"], ["1.1.1.1"])
    with pytest.raises(AddressRefused, match=r"hooks\.example leads to one of a private network"):
        asyncio.run(addresses_of("hooks.example", 443, private=False))
    assert asyncio.run(addresses_of("hooks.example", 443, private=False)) == ["1.1.1.1"]


def test_the_address_that_was_looked_at_is_the_one_that_is_sent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere a moment later leads nowhere else."""

    async def run() -> tuple[Any, bytes, list[str]]:
        asked = bytearray()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.extend(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        looked = lead(monkeypatch, ["127.0.0.1"])
        sent = await post(f"http://hooks.example:{port}/in?a=b", {"x": "y"}, b"{}", private=True)
        server.close()
        return sent, bytes(asked), looked

    sent, asked, looked = asyncio.run(run())
    assert (sent.status, sent.error) == (204, None)
    assert looked == ["hooks.example"]
    assert asked.startswith(b"POST /in?a=b HTTP/1.1\r\n")
    assert b"\r\nHost: hooks.example:" in asked


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.outbound.posting._SECONDS", 0.2)

    async def run() -> Any:
        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(5)
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        return await post(f"http://127.0.0.1:{port}/", {}, b"{}", private=True)

    sent = asyncio.run(run())
    assert sent.status is None
    assert sent.error is not None
    assert "no answer" in sent.error


def test_what_comes_back_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without an end is one all the same."""

    async def run() -> Any:
        async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
            try:
                while True:
                    writer.write(bytes(1 << 16))
                    await writer.drain()
            except OSError:
                return

        server = await asyncio.start_server(endless, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        return await post(f"http://127.0.0.1:{port}/", {}, b"{}", private=True)

    assert asyncio.run(run()).error is None


def test_a_name_that_stands_for_no_letters_leads_nowhere() -> None:
    assert asyncio.run(post("https://xn--a/", {}, b"{}", private=True)).error == "the name leads nowhere"
