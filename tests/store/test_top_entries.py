import random
from uuid import UUID

import numpy as np
import pytest

from app.store.lists import top_entries
from app.store.lists.top_entries import (
    beyond,
    identifiers_of,
    make_entries,
    merge_entries,
    no_entries,
    pack,
    place_of,
    unpack,
)

Pair = tuple[float, UUID]


def as_pairs(entries: top_entries.Entries) -> list[Pair]:
    return list(zip(entries["value"].tolist(), identifiers_of(entries), strict=True))


def draw_pairs(chance: random.Random, count: int) -> list[Pair]:
    """Few values, so that most are tied, and ids that differ in either half only."""
    values = (0.0, -0.0, 0.25, 0.5, 1.0, float("inf"), float("-inf"), float("nan"))
    pools = (100, 1 << 63, (1 << 64) - 1)
    return [
        (chance.choice(values), UUID(int=chance.choice(pools) << 64 | chance.choice(pools) - i)) for i in range(count)
    ]


@pytest.mark.parametrize("greatest", [True, False])
def test_merging_in_any_pieces_is_one_sort(monkeypatch: pytest.MonkeyPatch, greatest: bool) -> None:
    monkeypatch.setattr(top_entries, "CAPACITY", 12)
    chance = random.Random(3)  # noqa: S311 - a sample, not a secret
    for _ in range(200):
        pairs = list({pair[1]: pair for pair in draw_pairs(chance, chance.randrange(1, 60))}.values())
        known = no_entries()
        for begin in range(0, len(pairs), 7):
            # What came before comes a second time.
            piece = pairs[max(0, begin - 3) : begin + 7]
            added = make_entries(np.array([value for value, _ in piece]), [identifier for _, identifier in piece])
            known = merge_entries(known, added, greatest=greatest)
        expected = sorted((pair for pair in pairs if pair[0] == pair[0]), reverse=greatest)[:12]
        assert as_pairs(known) == expected
        assert as_pairs(unpack(pack(known))) == expected
        for pair in pairs:
            if pair[0] == pair[0]:
                after = [other for other in expected if (other < pair if greatest else other > pair)]
                assert as_pairs(beyond(known, *pair, greatest=greatest)) == after


def test_what_changes_nothing_gives_the_same_object() -> None:
    ids = [UUID(int=i) for i in range(1, 4)]
    known = merge_entries(no_entries(), make_entries(np.array([0.1, 0.2, 0.3]), ids), greatest=True)
    assert merge_entries(known, make_entries(np.array([0.2, np.nan]), [ids[1], UUID(int=9)]), greatest=True) is known
    assert place_of(known[0]) == (0.3, ids[2])
    assert merge_entries(no_entries(), make_entries(np.array([np.nan]), ids[:1]), greatest=False).size == 0
