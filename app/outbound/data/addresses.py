"""Addresses of data, and which of them the operator allows.

An address is plain text with one meaning: nothing of it is decoded, resolved or completed; what could be is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.errors import DataNotAllowed

FILE: Final = "file"
S3: Final = "s3"
GOOGLE: Final = "gs"
WEB: Final = ("http", "https")
_LONGEST: Final = 2000
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
# A sign of a pattern; the others of shells have no meaning here.
WILDCARD: Final = "*"
_MOST_WILDCARDS: Final = 16
# Each with why it is refused.
_SIGNS: Final = {
    "%": "percent-encoding: an address of data is plain text",
    "?": "a question mark: an address of data has no query, and credentials are never part of a request",
    "#": "a fragment",
    "\\": "a backslash",
}


@dataclass(frozen=True, slots=True)
class Address:
    """An address in its parts.

    Attributes:
        scheme: `file`, `s3`, `gs`, `http` or `https`.
        host: The bucket, or the host with its port; empty for files of this machine.
        segments: Of the path.
    """

    scheme: str
    host: str
    segments: tuple[str, ...]

    @property
    def path(self) -> str:
        """As the place of storage knows it: with the bucket in front, or from the root."""
        joined = "/".join(self.segments)
        return f"{self.host}/{joined}".rstrip("/") if self.scheme in (S3, GOOGLE) else f"/{joined}"

    def is_below(self, prefix: "Address") -> bool:
        """Does it lie below another, or is it the same? By whole segments."""
        return (self.scheme, self.host) == (prefix.scheme, prefix.host) and (
            self.segments[: len(prefix.segments)] == prefix.segments
        )


def read_address(text: str) -> Address:
    """The parts of an address.

    Raises:
        DataNotAllowed: it is of a kind that is never read. The message never repeats it: it may hold a secret.
    """
    if not 0 < len(text) <= _LONGEST or not text.isprintable():
        raise DataNotAllowed(f"expected an address of at most {_LONGEST} printable characters")
    found = next((words for sign, words in _SIGNS.items() if sign in text), None)
    if found is not None:
        raise DataNotAllowed(f"expected an address such as s3://bucket/folder/*.parquet, got one with {found}")
    if text.count(WILDCARD) > _MOST_WILDCARDS:
        raise DataNotAllowed(f"expected a pattern with at most {_MOST_WILDCARDS} stars")
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else (FILE, text)
    host, slash, path = rest.partition("/")
    if "@" in host:
        raise DataNotAllowed("expected an address without credentials: those of the operator are used")
    _check_host(scheme, host)
    if scheme == FILE and not slash:
        raise DataNotAllowed("expected a path from the root, such as /data/preds.parquet, or an address with a scheme")
    # A folder may be written with a slash at its end.
    segments = tuple(path.removesuffix("/").split("/")) if path.removesuffix("/") else ()
    if any(segment in ("", ".", "..") for segment in segments):
        raise DataNotAllowed("expected a path without empty parts, '.' and '..'")
    return Address(scheme, host.lower() if scheme in WEB else host, segments)


def _check_host(scheme: str, host: str) -> None:
    if scheme == FILE:
        if host:
            raise DataNotAllowed("expected a path from the root, such as file:///data/preds.parquet or /data/preds.csv")
    elif scheme in (S3, GOOGLE):
        if not _BUCKET.fullmatch(host):
            raise DataNotAllowed(f"expected the name of a bucket behind {scheme}://")
    elif scheme in WEB:
        if not _HOST.fullmatch(host):
            raise DataNotAllowed(f"expected the name of a host behind {scheme}://")
    else:
        raise DataNotAllowed("expected a file of this machine, or an address with s3://, gs://, http:// or https://")


def read_prefix(text: str) -> Address:
    """An address below which data may lie.

    Raises:
        ValueError: it is none.
    """
    try:
        address = read_address(text)
    except DataNotAllowed as error:
        raise ValueError(error.detail) from None
    if WILDCARD in text:
        raise ValueError("expected a prefix without patterns: everything below it is allowed")
    return address


def allowed_address(text: str, prefixes: Sequence[Address]) -> Address:
    """An address that lies below a prefix.

    Raises:
        DataNotAllowed: it does not.
    """
    address = read_address(text)
    if not prefixes:
        raise DataNotAllowed("this service reads no data by reference: its operator allows no PREVAIL_DATA_PREFIXES")
    if not any(address.is_below(prefix) for prefix in prefixes):
        raise DataNotAllowed("expected an address below one of the prefixes that the operator of the service allows")
    return address
