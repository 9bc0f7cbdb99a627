"""Where data lies: files are listed and opened there, below the prefixes of the operator and nowhere else."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from app.domain.data import DataFile, DataListing
from app.domain.errors import DataNotAllowed, InvalidInput
from app.outbound.data.addresses import FILE, S3, WEB, WILDCARD, Address, allowed_address, read_prefix
from app.outbound.data.http_files import HttpFile

_WHERE: Final = "/input/data/uri"
_MOST_FILES: Final = 10_000
# Files and folders that are looked at to find them.
_MOST_SEEN: Final = 500_000
# As a part of a pattern: any number of folders.
_DEEP: Final = "**"
_REGION: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
# As writers of data mark what is none: `_SUCCESS`, `.crc`.
_ASIDE: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class DataPlaces:
    """Everything that the operator allows; can be sent to another process.

    Attributes:
        prefixes: Below which data may lie.
        s3_endpoint: Of a store that speaks the protocol of S3 and is not Amazon's.
    """

    prefixes: tuple[str, ...] = ()
    s3_endpoint: str | None = None

    def check(self, uri: str) -> bool:
        """Whether the data lies on this machine, so that looking at it is quick.

        Raises:
            DataNotAllowed: it does not lie below a prefix.
        """
        return self._allowed(uri).scheme == FILE

    def files(self, uri: str) -> DataListing:
        """The files that an address names, in the order of their paths.

        Raises:
            DataNotAllowed: one of them does not lie below a prefix, wherever links lead.
            InvalidInput: there are none, or too many.
            OSError: the place of storage does not answer.
        """
        address = self._allowed(uri)
        if address.scheme in WEB:
            return self._of_web(address)
        filesystem = self._filesystem(address)
        try:
            found = sorted(_listed(filesystem, address), key=lambda file: file.path)
        except FileNotFoundError:
            found = []
        if not found:
            raise InvalidInput.at(_WHERE, "no_such_data", "expected one file at least at this address, there is none")
        if len(found) > _MOST_FILES:
            raise InvalidInput.at(_WHERE, "too_many_files", f"expected at most {_MOST_FILES} files, got {len(found)}")
        if address.scheme == FILE:
            self._check_links(file.path for file in found)
        return DataListing(tuple(found), filesystem.open_input_file)

    def again(self, uri: str, files: Sequence[DataFile]) -> DataListing:
        """Some of the files that an address named, perhaps in another process: nothing is listed, all is checked.

        Raises:
            DataNotAllowed: one of them does not lie below a prefix, wherever links lead.
            InvalidInput: one is not there, or is not as it was when it was listed.
            OSError: the place of storage does not answer.
        """
        address = self._allowed(uri)
        if address.scheme in WEB:
            listing = self._of_web(address)
        else:
            self._check_paths(address.scheme, [file.path for file in files])
            filesystem = self._filesystem(address)
            infos = filesystem.get_file_info([file.path for file in files])
            listing = DataListing(tuple(map(_file, infos)), filesystem.open_input_file)
        if listing.files != tuple(files):
            raise InvalidInput.at(
                _WHERE,
                "data_changed",
                "expected files that stay as they are while they are read, the same wherever that is done",
            )
        return listing

    def _check_paths(self, scheme: str, paths: Sequence[str]) -> None:
        """Do paths as the place of storage has them lie below a prefix, wherever links lead?"""
        prefixes = [read_prefix(prefix) for prefix in self.prefixes]
        for path in paths:
            host, _, inner = ("", "", path.removeprefix("/")) if scheme == FILE else path.partition("/")
            address = Address(scheme, host, tuple(inner.split("/")))
            if ".." in address.segments or not any(address.is_below(prefix) for prefix in prefixes):
                raise DataNotAllowed("expected files below a prefix that the operator of the service allows")
        if scheme == FILE:
            self._check_links(paths)

    def _allowed(self, uri: str) -> Address:
        return allowed_address(uri, [read_prefix(prefix) for prefix in self.prefixes])

    def _check_links(self, paths: Iterable[str]) -> None:
        prefixes = [read_prefix(prefix) for prefix in self.prefixes]
        roots = [Path(prefix.path).resolve() for prefix in prefixes if prefix.scheme == FILE]
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
        if _fits(inner, pattern) and not _is_aside(inner):
            yield file


def _local_files(base: str, *, deep: bool) -> Iterator[DataFile]:
    """Files of a folder and, if asked for, of those below it; a link to a folder above itself is not followed.

    Raises:
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


def _is_aside(path: str) -> bool:
    return any(segment.startswith(_ASIDE) for segment in path.split("/"))


def _fits(path: str, pattern: Sequence[str]) -> bool:
    """Is a path like a pattern: `*` within a part of it, `**` any number of parts, at the end one at least?

    Part by part, so that no pattern takes long.
    """
    parts = (*pattern, "*") if pattern[-1] == _DEEP else tuple(pattern)
    reached = _beyond_deep({0}, parts)
    for name in path.split("/"):
        stay = {place for place in reached if parts[place : place + 1] == (_DEEP,)}
        go = {place + 1 for place in reached - stay if place < len(parts) and _alike(name, parts[place])}
        reached = _beyond_deep(stay | go, parts)
    return len(parts) in reached


def _beyond_deep(reached: set[int], parts: tuple[str, ...]) -> set[int]:
    """Places in a pattern, and those that `**` without a part of the path leads to."""
    found = set(reached)
    for place in range(len(parts)):
        if place in found and parts[place] == _DEEP:
            found.add(place + 1)
    return found


def _alike(name: str, part: str) -> bool:
    # Of the signs of shells only the star has a meaning in an address.
    return fnmatchcase(name, part.replace("[", "[[]"))


def _file(info: Any) -> DataFile:
    return DataFile(info.path, info.size, str(info.mtime_ns))
