"""Posts to webhooks.

The client of HTTP and its certificates are loaded for the first one: most services have none.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from app.domain.operations import SendResult
from app.outbound.addresses import AddressRefused, addresses_of

if TYPE_CHECKING:
    import httpx

_SECONDS: Final = 15.0
_CONNECT_SECONDS: Final = 5.0
_MOST_TRIED: Final = 2
_PORTS: Final = {"http": 80, "https": 443}


class WebhookPoster:
    """Sends bodies to addresses that strangers name."""

    def __init__(self, *, private: bool) -> None:
        """Take whether it may send to private networks and to this machine."""
        self._private = private

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResult:
        """Send a body. Whatever happens is an answer, not an error.

        Nothing of what comes back is read but the status; it can lead nowhere else, and takes so long and no longer.
        """
        import httpx

        try:
            async with asyncio.timeout(_SECONDS):
                status = await self._post(httpx.URL(url), headers, body)
        except TimeoutError:
            return SendResult(None, f"no answer within {_SECONDS:g} seconds")
        except AddressRefused as refused:
            return SendResult(None, str(refused))
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
            return SendResult(None, _worded(error))
        good = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
        return SendResult(status, None if good else f"expected a status of 200 to 299, got {status}")

    async def _post(self, url: "httpx.URL", headers: Mapping[str, str], body: bytes) -> int:
        import httpx

        port = url.port or _PORTS[url.scheme]
        addresses = (await addresses_of(url.host, port, private=self._private))[:_MOST_TRIED]
        for address in addresses[:-1]:
            with contextlib.suppress(httpx.ConnectError):
                return await self._post_to(address, url, headers, body)
        return await self._post_to(addresses[-1], url, headers, body)

    async def _post_to(self, address: str, url: "httpx.URL", headers: Mapping[str, str], body: bytes) -> int:
        """Send to the address that was looked at: nobody asks again where the name leads."""
        import httpx

        sent = {**headers, "Host": url.netloc.decode(), "Content-Type": "application/json", "User-Agent": "Prevail"}
        # The certificate has to be that of the name.
        extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
        # One of its own each time: nothing that one receiver says is told to another.
        async with httpx.AsyncClient(
            verify=self._tls,
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
    import httpx

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
