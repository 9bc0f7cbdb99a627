"""Posts to webhooks, at addresses that strangers name."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Final

import httpx

from app.domain.operations import SendResult
from app.outbound.addresses import AddressRefused, addresses_of

_SECONDS: Final = 15.0
_CONNECT_SECONDS: Final = 5.0
_MOST_TRIED: Final = 2
_PORTS: Final = {"http": 80, "https": 443}
_certificates = cache(ssl.create_default_context)


async def post(url: str, headers: Mapping[str, str], body: bytes, *, private: bool) -> SendResult:
    """Send a body; ``private``: also to private networks and to this machine. Whatever happens is an answer, no error.

    Nothing of what comes back is read but the status; it can lead nowhere else, and takes so long and no longer.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            status = await _post(httpx.URL(url), headers, body, private=private)
    except TimeoutError:
        return SendResult(None, f"no answer within {_SECONDS:g} seconds")
    except AddressRefused as refused:
        return SendResult(None, str(refused))
    # A name in Punycode that stands for no letters is an error of text.
    except (OSError, UnicodeError, httpx.HTTPError, httpx.InvalidURL) as error:
        return SendResult(None, _worded(error))
    good = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
    return SendResult(status, None if good else f"expected a status of 200 to 299, got {status}")


async def _post(url: httpx.URL, headers: Mapping[str, str], body: bytes, *, private: bool) -> int:
    port = url.port or _PORTS[url.scheme]
    addresses = (await addresses_of(url.host, port, private=private))[:_MOST_TRIED]
    for address in addresses[:-1]:
        with contextlib.suppress(httpx.ConnectError):
            return await _post_to(address, url, headers, body)
    return await _post_to(addresses[-1], url, headers, body)


async def _post_to(address: str, url: httpx.URL, headers: Mapping[str, str], body: bytes) -> int:
    """Send to the address that was looked at: nobody asks again where the name leads."""
    sent = {**headers, "Host": url.netloc.decode(), "Content-Type": "application/json", "User-Agent": "Prevail"}
    # The certificate has to be that of the name.
    extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
    # One of its own each time: nothing that one receiver says is told to another.
    async with httpx.AsyncClient(
        verify=_certificates(),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
    ) as client:
        request = client.build_request(
            "POST", url.copy_with(host=address), headers=sent, content=body, extensions=extensions
        )
        answer = await client.send(request, stream=True)
        await answer.aclose()
        return answer.status_code


def _worded(error: Exception) -> str:
    """Why nothing came back, without what the network here looks like."""
    match error:
        case httpx.ConnectTimeout() | httpx.ReadTimeout() | httpx.WriteTimeout():
            return "no answer in time"
        case httpx.ConnectError():
            return "no connection, or a certificate that is not good"
        case httpx.HTTPError():
            return "the connection broke, or what came is no HTTP"
        case httpx.InvalidURL():
            return "the address cannot be used"
    return "the name leads nowhere"
