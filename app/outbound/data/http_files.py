"""One file behind HTTP, read in ranges. Redirects are not followed: they could lead anywhere."""

import io
from http import HTTPStatus
from typing import Final

import httpx

from app.domain.data import DataFile

_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 10.0
# Small reads are answered of one larger.
_AHEAD: Final = 1 << 20


class HttpFile(io.RawIOBase):
    """A file that is read from any place.

    Every answer has to be a range of the one version that was there at first: anything else is an `OSError`.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        # Without the proxies and password files of whoever runs the service: the address is what was allowed.
        self._client = httpx.Client(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
            headers={"Accept-Encoding": "identity", "User-Agent": "Prevail"},
        )
        self._place, self._start, self._held = 0, 0, b""
        self._size, self._version = -1, ""
        self._fetch(0, 1)

    def listed(self, path: str) -> DataFile:
        """What it was when it was opened."""
        return DataFile(path, self._size, self._version)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on from another place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def size(self) -> int:
        """Bytes of the whole."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes; fewer at the end only."""
        left = max(self._size - self._place, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        begin = self._place - self._start
        if not 0 <= begin <= begin + wanted <= len(self._held):
            ahead = min(max(wanted, _AHEAD), left)
            self._held, self._start, begin = self._fetch(self._place, ahead) if wanted else b"", self._place, 0
        self._place += wanted
        return self._held[begin : begin + wanted]

    def close(self) -> None:
        """End the connection."""
        if not self.closed:
            self._client.close()
        super().close()

    def _fetch(self, start: int, count: int) -> bytes:
        try:
            # Not more than was asked for, whatever the other end sends.
            with self._client.stream(
                "GET", self._url, headers={"Range": f"bytes={start}-{start + count - 1}"}
            ) as answer:
                self._check(answer, start)
                pieces, size = [], 0
                for piece in answer.iter_raw():
                    pieces.append(piece)
                    size += len(piece)
                    if size > count:
                        raise OSError("the server sent more than it was asked for")
        except httpx.HTTPError as error:
            raise OSError(f"the server does not answer: {type(error).__name__}") from error
        found = b"".join(pieces)
        if len(found) != min(count, self._size - start):
            raise OSError("the server sent less than it was asked for")
        return found

    def _check(self, answer: httpx.Response, start: int) -> None:
        if answer.is_redirect:
            raise OSError("the server leads elsewhere, and redirects are not followed")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise FileNotFoundError("there is no such file")
        place, _, whole = answer.headers.get("content-range", "").removeprefix("bytes ").partition("/")
        if (
            answer.status_code != HTTPStatus.PARTIAL_CONTENT
            or not whole.isdigit()
            or place.partition("-")[0] != str(start)
        ):
            raise OSError(f"expected a server that sends ranges of bytes, got the status {answer.status_code}")
        size, version = int(whole), answer.headers.get("etag") or answer.headers.get("last-modified", "")
        if self._size < 0:
            self._size, self._version = size, version
        if (size, version) != (self._size, self._version):
            raise OSError("the file changed while it was read")
