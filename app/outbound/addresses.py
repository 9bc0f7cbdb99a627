"""Network addresses that webhooks may be sent to.

A name says nothing: it can lead anywhere, and elsewhere the next moment. So the address is looked at that the
connection is made to, each time.
"""

import asyncio
import re
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

# Gateways between the two kinds of addresses have the other one in the last four bytes (RFC 6052, RFC 8215).
_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")


class AddressRefused(Exception):
    """A name leads to an address that the service does not send to."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Is it an address of the Internet: not of this machine, of a private network, of a link, of a group?"""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in _TRANSLATED):
            inner = IPv4Address(address.packed[-4:])
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def can_be_reached(host: str, *, private: bool) -> bool:
    """Tell whether a host may ever be sent to: False for a name that is none, or an address that is always refused, in
    any form that systems take, such as 0x7f.1. ``private`` takes addresses that are not of the Internet too.
    """
    name = host.lower().rstrip(".")
    try:
        address = ip_address(host if ":" in host else socket.inet_aton(host))
    except (OSError, ValueError):
        labels = name.split(".")
        never = {"invalid"} if private else {"invalid", "localhost"}
        return all(map(_LABEL.fullmatch, labels)) and labels[-1] not in never
    return not address.is_multicast and (private or is_public(address))


async def addresses_of(host: str, port: int, *, private: bool) -> list[str]:
    """The addresses that a name leads to now; ``private`` takes those that are not of the Internet too.

    Raises:
        AddressRefused: one of them is not of the Internet.
        OSError: the name leads nowhere.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not private:
        for address in addresses:
            # Without the zone of a link, if it has one.
            if not is_public(ip_address(address.partition("%")[0])):
                raise AddressRefused(
                    f"expected an address of the Internet, {host} leads to one of a private network or of the machine"
                )
    return addresses
