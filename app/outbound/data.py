"""Data that requests name: addresses, permitted places, files over HTTP."""

import errno
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.domain.data import DataFile, DataFormat, DataListing, DataReference
from app.domain.errors import DataNotAllowed, InvalidInput
from app.outbound.tables import METADATA, delta_listing, iceberg_listing

if TYPE_CHECKING:
    import httpx

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
        """The path for the storage system: with the bucket in front, or from the root."""
        joined = "/".join(self.segments)
        return f"{self.host}/{joined}".rstrip("/") if self.scheme in (S3, GOOGLE) else f"/{joined}"

    def is_below(self, prefix: "Address") -> bool:
        """Does it lie below another, or is it the same? By whole segments."""
        return (self.scheme, self.host) == (prefix.scheme, prefix.host) and (
            self.segments[: len(prefix.segments)] == prefix.segments
        )


def read_address(text: str, *, written_by_table: bool = False) -> Address:
    """The parts of an address.

    Args:
        text: As a request has it.
        written_by_table: It is one that a table names: signs are part of the names of its files.

    Raises:
        DataNotAllowed: it is of a kind that is never read. The message never repeats it: it may hold a secret.
    """
    if not 0 < len(text) <= _LONGEST or not text.isprintable():
        raise DataNotAllowed(f"expected an address of at most {_LONGEST} printable characters")
    found = None if written_by_table else next((words for sign, words in _SIGNS.items() if sign in text), None)
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
    """An address below which data may lie. Raises ValueError if it is none."""
    try:
        address = read_address(text)
    except DataNotAllowed as error:
        raise ValueError(error.detail) from None
    if WILDCARD in text:
        raise ValueError("expected a prefix without patterns: everything below it is allowed")
    return address


def allowed_address(text: str, prefixes: Sequence[Address], *, written_by_table: bool = False) -> Address:
    """An address that lies below a prefix; arguments as of `read_address`. Raises DataNotAllowed if it does not."""
    address = read_address(text, written_by_table=written_by_table)
    if not prefixes:
        raise DataNotAllowed("this service reads no data by reference: its operator allows no PREVAIL_DATA_PREFIXES")
    if not any(address.is_below(prefix) for prefix in prefixes):
        raise DataNotAllowed("expected an address below one of the prefixes that the operator of the service allows")
    return address


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
        import httpx

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
        """Return the file's path, size and version, as of when it was opened."""
        return DataFile(path, self._size, self._version)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

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
        import httpx

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
        if len(found) != count:
            raise OSError("the server sent less than it was asked for")
        return found

    def _check(self, answer: "httpx.Response", start: int) -> None:
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


_WHERE: Final = "/input/data/uri"
_MOST_FILES: Final = 10_000
# Files and folders that are looked at to find them.
_MOST_SEEN: Final = 500_000
# As a part of a pattern: any number of folders.
_DEEP: Final = "**"
_REGION: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_DELTA_LOG: Final = "_delta_log"
# Folders beside the data of tables, and what these are.
_LOGS: Final = {_DELTA_LOG: (DataFormat.DELTA, "a Delta"), "metadata": (DataFormat.ICEBERG, "an Iceberg")}
# How Hadoop calls addresses of S3.
_OF_HADOOP: Final = re.compile(r"^s3[an]://")
# As writers of data mark what is none: `_SUCCESS`, `.crc`.
_ASIDE: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class DataPlaces:
    """The places that the operator allows, below prefixes, and at a store that speaks the protocol of S3 and is not
    Amazon's; can be sent to another process.
    """

    prefixes: tuple[str, ...] = ()
    s3_endpoint: str | None = None

    def check(self, uri: str) -> bool:
        """Return True for data on this machine. Raises DataNotAllowed if it does not lie below a prefix."""
        return allowed_address(uri, self._below).scheme == FILE

    def files(self, reference: DataReference) -> DataListing:
        """The files that a reference names, in the order of their paths. Raises as `ports.DataSource.files`."""
        address = allowed_address(reference.uri, self._below)
        if reference.format is not None and reference.format.is_table:
            listing = self._of_table(address, reference)
            self._check_count(len(listing.files))
            return listing
        if address.scheme in WEB:
            return self._of_web(address)
        filesystem = self._filesystem(address)
        try:
            found = sorted(_listed(filesystem, address), key=lambda file: file.path)
        except FileNotFoundError:
            found = []
        if not found:
            raise InvalidInput.at(_WHERE, "no_such_data", "expected one file at least at this address, there is none")
        roots = [Path(one.path) for one in self._below if address.is_below(one)]
        _check_no_table(filesystem, found, roots)
        self._check_count(len(found))
        if address.scheme == FILE:
            self._check_links(file.path for file in found)
        return DataListing(tuple(found), filesystem.open_input_file)

    def _of_table(self, address: Address, reference: DataReference) -> DataListing:
        if address.scheme in WEB or WILDCARD in address.path:
            raise InvalidInput.at(_WHERE, "no_listing", "expected the folder of a table, without patterns and not HTTP")
        if address.scheme == FILE:
            self._check_links([address.path])
        filesystem = self._filesystem(address)
        whole = address.path if address.scheme == FILE else f"{address.scheme}://{address.path}"
        if reference.format is DataFormat.ICEBERG:
            return iceberg_listing(whole, reference.version, filesystem, partial(self._of_same_place, address.scheme))
        from pyarrow import fs

        options = {"AWS_ENDPOINT_URL": self.s3_endpoint, "AWS_ALLOW_HTTP": "true"} if self.s3_endpoint else {}

        def check(path: str) -> None:
            self._of_same_place(address.scheme, f"{whole}/{path}")

        return delta_listing(whole, reference.version, fs.SubTreeFileSystem(address.path, filesystem), options, check)

    def _of_same_place(self, scheme: str, location: str) -> str:
        """The path of a file that a table names. Raises DataNotAllowed: it lies elsewhere than the table, below no
        prefix, or behind a link that leads outside.
        """
        address = allowed_address(_OF_HADOOP.sub("s3://", location), self._below, written_by_table=True)
        if address.scheme != scheme:
            raise DataNotAllowed("expected all files of a table where its metadata lies")
        if scheme == FILE:
            self._check_links([address.path])
        return address.path

    @staticmethod
    def _check_count(files: int) -> None:
        if files > _MOST_FILES:
            raise InvalidInput.at(_WHERE, "too_many_files", f"expected at most {_MOST_FILES} files, got {files}")

    @property
    def _below(self) -> list[Address]:
        return [read_prefix(prefix) for prefix in self.prefixes]

    def _check_links(self, paths: Iterable[str]) -> None:
        roots = [Path(prefix.path).resolve() for prefix in self._below if prefix.scheme == FILE]
        for path in paths:
            place = Path(path).resolve()
            if not any(place.is_relative_to(root) for root in roots):
                raise DataNotAllowed("expected files below a prefix that the operator allows, a link leads elsewhere")

    def _filesystem(self, address: Address) -> Any:
        # Imported when it is used: starting with all of it takes the time of a hundred requests.
        from pyarrow import fs

        if address.scheme == FILE:
            return fs.LocalFileSystem()
        if address.scheme != S3:
            return fs.GcsFileSystem()
        chosen = next((os.environ[name] for name in _REGION if os.environ.get(name)), None)
        if self.s3_endpoint is None:
            return fs.S3FileSystem(region=chosen or fs.resolve_s3_region(address.host))
        return fs.S3FileSystem(region=chosen or "us-east-1", endpoint_override=self.s3_endpoint)

    @staticmethod
    def _of_web(address: Address) -> DataListing:
        if WILDCARD in address.path:
            raise InvalidInput.at(_WHERE, "no_listing", "expected one file: HTTP has no lists of files, so no patterns")
        url = f"{address.scheme}://{address.host}{address.path}"
        try:
            with HttpFile(url) as file:
                listed = file.listed(url)
        except FileNotFoundError:
            raise InvalidInput.at(_WHERE, "no_such_data", "expected a file at this address, there is none") from None
        return DataListing((listed,), _open_web)


def _check_no_table(filesystem: Any, files: Sequence[DataFile], roots: Sequence[Path]) -> None:
    """Refuse files of a table whose log, anywhere below a root, says which of their rows are deleted."""
    from pyarrow import fs

    folders = {Path(file.path).parent for file in files}
    around = {one for folder in folders for one in (folder, *folder.parents)}
    inner = sorted(one for one in around if any(one.is_relative_to(root) for root in roots))
    beside = filesystem.get_file_info([str(one / name) for one in inner for name in _LOGS])
    for info in beside:
        form, name = _LOGS[info.base_name]
        if info.type != fs.FileType.Directory or not _is_log(filesystem, info):
            continue
        raise InvalidInput.at(
            _WHERE,
            f"{form.value}_table",
            f"expected files that are all rows, these are of {name} table, whose log says which are deleted: name its "
            f'folder with "format": "{form.value}"',
        )


def _is_log(filesystem: Any, folder: Any) -> bool:
    """Does a folder hold what says which rows a table has? Many folders are called metadata."""
    from pyarrow import fs

    if folder.base_name == _DELTA_LOG:
        return True
    return any(one.base_name.endswith(METADATA) for one in filesystem.get_file_info(fs.FileSelector(folder.path)))


def _open_web(url: str) -> Any:
    import pyarrow as pa

    return pa.PythonFile(HttpFile(url), mode="r")


def _listed(filesystem: Any, address: Address) -> Iterator[DataFile]:
    """Files of a pattern, of a folder, or the one that is named."""
    from pyarrow import fs

    fixed = next((place for place, one in enumerate(address.segments) if WILDCARD in one), len(address.segments))
    base = Address(address.scheme, address.host, address.segments[:fixed])
    pattern = address.segments[fixed:]
    if not pattern:
        info = filesystem.get_file_info(base.path)
        if info.type == fs.FileType.File:
            yield _file(info)
            return
    pattern = pattern or (_DEEP,)
    deep = len(pattern) > 1 or _DEEP in pattern
    if address.scheme == FILE:
        files = _local_files(base.path, deep=deep)
    else:
        infos = filesystem.get_file_info(fs.FileSelector(base.path, recursive=deep))
        files = (_file(info) for info in infos if info.type == fs.FileType.File)
    for file in files:
        inner = file.path[len(base.path) :].strip("/")
        if _fits(inner, pattern) and not any(part.startswith(_ASIDE) for part in inner.split("/")):
            yield file


def _local_files(base: str, *, deep: bool) -> Iterator[DataFile]:
    """Files of a folder and, if asked for, of those below it; a link to a folder above itself is not followed. Raises
    InvalidInput: there is too much to look at.
    """
    seen = 0
    waiting: list[tuple[str, frozenset[tuple[int, int]]]] = [(base, frozenset())]
    while waiting:
        folder, above = waiting.pop()
        status = Path(folder).stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if seen > _MOST_SEEN:
                    raise InvalidInput.at(
                        _WHERE, "too_many_files", f"expected at most {_MOST_SEEN} files and folders to look at"
                    )
                try:
                    status = entry.stat()
                except OSError as error:
                    # A link that leads nowhere, or to itself.
                    if error.errno not in (errno.ENOENT, errno.ELOOP):
                        raise
                    continue
                if deep and stat.S_ISDIR(status.st_mode):
                    waiting.append((entry.path, above | {here}))
                elif stat.S_ISREG(status.st_mode):
                    yield DataFile(entry.path, status.st_size, str(status.st_mtime_ns))


def _fits(path: str, pattern: Sequence[str]) -> bool:
    """Is a path like a pattern: `*` within a part of it, `**` any number of parts, at the end one at least?

    Part by part, so that no pattern takes long.
    """
    names, parts = path.split("/"), (*pattern, "*") if pattern[-1] == _DEEP else pattern
    size = len(names)
    # How many names the parts so far can be like.
    reached = {0}
    for part in parts:
        if part == _DEEP:
            reached = set(range(min(reached, default=size + 1), size + 1))
        else:
            # Of the signs of shells only the star has a meaning in an address.
            plain = part.replace("[", "[[]")
            reached = {place + 1 for place in reached if place < size and fnmatchcase(names[place], plain)}
    return size in reached


def _file(info: Any) -> DataFile:
    return DataFile(info.path, info.size, str(info.mtime_ns))
