"""Columns of samples as bytes: narrow, shuffled, compressed, and named by the digest of what they hold."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

_CODEC = "zstd"
_TEXT = "text"
_MOST_DECIMALS = 8
_LARGEST_ROUNDED = 40.0


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column: equal columns have equal digests, whatever they belong to."""

    digest: bytes
    content: bytes


def pack(column: NDArray[Any]) -> StoredColumn:
    """A column of codes, ids, weights or probabilities as bytes. No digit is lost."""
    decimals = None
    if column.dtype.kind == "U":
        kind, plain, shape = _TEXT, orjson.dumps(column.tolist()), column.shape
    else:
        decimals, whole = _decimals(column)
        narrow = np.ascontiguousarray(_narrow(whole))
        kind, shape = narrow.dtype.str, narrow.shape
        # First bytes of all entries, then second bytes: exponents lie together and compress.
        plain = narrow.view(np.uint8).reshape(-1, narrow.dtype.itemsize).T.tobytes()
    head = orjson.dumps({"kind": kind, "shape": shape, "size": len(plain), "decimals": decimals})
    packed = pa.compress(plain, codec=_CODEC, asbytes=True)
    return StoredColumn(sha256(head + plain).digest(), len(head).to_bytes(2, "big") + head + packed)


def unpack(content: bytes) -> NDArray[Any]:
    """The reverse of ``pack``: int64, float64 or text."""
    start = 2 + int.from_bytes(content[:2], "big")
    head = orjson.loads(content[2:start])
    plain = pa.decompress(content[start:], decompressed_size=head["size"], codec=_CODEC, asbytes=True)
    if head["kind"] == _TEXT:
        texts: NDArray[Any] = np.array(orjson.loads(plain), dtype=np.str_)
        return texts
    dtype = np.dtype(head["kind"])
    entries = np.ascontiguousarray(np.frombuffer(plain, dtype=np.uint8).reshape(dtype.itemsize, -1).T)
    narrow: NDArray[Any] = entries.view(dtype).reshape(head["shape"])
    if head["decimals"] is not None:
        rounded: NDArray[Any] = narrow.astype(np.float64) / 10.0 ** head["decimals"]
        return rounded
    return narrow.astype(np.float64 if dtype.kind == "f" else np.int64)


def _decimals(column: NDArray[Any]) -> tuple[int | None, NDArray[Any]]:
    """For numbers that were rounded to a few decimals: how many, and the whole numbers that they are a quotient of."""
    if column.dtype.kind != "f" or not column.size or column.min() < 0 or column.max() > _LARGEST_ROUNDED:
        return None, column
    for decimals in range(_MOST_DECIMALS + 1):
        scale = 10.0**decimals
        # Most columns are told apart by their first entries.
        for part in (column[:100], column):
            whole = np.rint(part * scale)
            # A negative zero has a sign that whole numbers would lose.
            if not (whole / scale == part).all() or np.signbit(part).any():
                break
        else:
            return decimals, whole.astype(np.int64)
    return None, column


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The narrowest type that holds every entry exactly."""
    if column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            single = column.astype("<f4")
        return single if (single == column).all() else column.astype("<f8", copy=False)
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    for name in ("<u1", "<u2", "<u4"):
        if low >= 0 and high <= np.iinfo(name).max:
            return column.astype(name)
    return column.astype("<i8", copy=False)
