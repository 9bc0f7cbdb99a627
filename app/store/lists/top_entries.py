"""The first evaluations of a large scope in the order of a metric, from either end.

Entries are (value, id), the id as two halves since numpy has no 128 bits; ordered by value and then id, ascending for
the smallest and descending for the greatest. What is not among `CAPACITY` entries lies beyond the last of them; fewer
entries than that are all there are.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

CAPACITY = 1000
ENTRY = np.dtype([("value", "<f8"), ("high", "<u8"), ("low", "<u8")])
Entries = NDArray[np.void]

_HALF = 64
_LOW = (1 << _HALF) - 1


def no_entries() -> Entries:
    """Return no entries: [0]."""
    return np.empty(0, dtype=ENTRY)


def make_entries(values: NDArray[np.float64], identifiers: Sequence[UUID]) -> Entries:
    """Join values [n] and ids to entries [n] in no order; undefined values are NaN and stay."""
    entries = np.empty(len(identifiers), dtype=ENTRY)
    entries["value"] = values
    halves = np.frombuffer(b"".join(identifier.bytes for identifier in identifiers), dtype=">u8").reshape(-1, 2)
    entries["high"], entries["low"] = halves[:, 0], halves[:, 1]
    return entries


def is_full(entries: Entries) -> bool:
    """Whether there may be more beyond the last entry."""
    return len(entries) == CAPACITY


def merge_entries(known: Entries, added: Entries, *, greatest: bool) -> Entries:
    """Return the first `CAPACITY` of both in order, each id once; the same object when nothing was added.

    Args:
        known: [n] in order, as this function made them.
        added: [m] in any order, NaN among the values allowed.
        greatest: Whether the greatest values come first.
    """
    values = added["value"]
    wanted = ~np.isnan(values)
    if is_full(known):
        bound = known["value"][-1]
        wanted &= values >= bound if greatest else values <= bound
    if not wanted.any():
        return known
    merged = in_order(np.concatenate([known, added[wanted]]), greatest=greatest)[:CAPACITY]
    return known if np.array_equal(merged, known) else merged


def in_order(entries: Entries, *, greatest: bool) -> Entries:
    """Sort entries by value and id, each id once."""
    order = np.lexsort((entries["low"], entries["high"], entries["value"]))
    ordered: Entries = entries[order[::-1] if greatest else order]
    if len(ordered) < 2:
        return ordered
    same = (ordered["high"][1:] == ordered["high"][:-1]) & (ordered["low"][1:] == ordered["low"][:-1])
    return _those(ordered, np.concatenate([[True], ~same]))


def beyond(entries: Entries, value: float, identifier: UUID, *, greatest: bool) -> Entries:
    """Return the entries after a place in the order."""
    high, low = np.uint64(identifier.int >> _HALF), np.uint64(identifier.int & _LOW)
    values, highs, lows = entries["value"], entries["high"], entries["low"]
    if greatest:
        later = (highs < high) | ((highs == high) & (lows < low))
        return _those(entries, (values < value) | ((values == value) & later))
    later = (highs > high) | ((highs == high) & (lows > low))
    return _those(entries, (values > value) | ((values == value) & later))


def _those(entries: Entries, wanted: NDArray[np.bool_]) -> Entries:
    chosen: Entries = entries[wanted]
    return chosen


def made_between(entries: Entries, first: UUID | None, end: UUID | None) -> Entries:
    """Return the entries made from a moment until before another, each given as its first id; None is no bound."""
    if first is not None:
        entries = _those(entries, entries["high"] >= np.uint64(first.int >> _HALF))
    if end is not None:
        entries = _those(entries, entries["high"] < np.uint64(end.int >> _HALF))
    return entries


def identifiers_of(entries: Entries) -> list[UUID]:
    """Return the ids of entries."""
    pairs: Any = zip(entries["high"].tolist(), entries["low"].tolist(), strict=True)
    return [UUID(int=high << _HALF | low) for high, low in pairs]


def place_of(entry: Any) -> tuple[float, UUID]:
    """Return value and id of one entry."""
    return float(entry["value"]), UUID(int=int(entry["high"]) << _HALF | int(entry["low"]))


def pack(entries: Entries) -> bytes:
    """Return entries as bytes."""
    return entries.tobytes()


def unpack(data: bytes) -> Entries:
    """Undo `pack`."""
    return np.frombuffer(data, dtype=ENTRY)
