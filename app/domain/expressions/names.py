"""Names that can be written in expressions, and those nearest to what nobody knows."""

from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Final

from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.combinations import COMBINATIONS

_MOST_SUGGESTIONS: Final = 3
# How alike a name has to be to be offered, and how far it may be behind the most alike one (`SequenceMatcher.ratio`).
# Of short names two letters that changed places are much.
_NEAR: Final = 0.7
_NEAR_OF_SHORT: Final = 0.6
_SHORT: Final = 4
_BEHIND: Final = 0.1
_MOST_LOOKED_AT: Final = 10


@cache
def _known_names() -> Mapping[str, str]:
    """Every name that can be written, with what it means: functions as themselves, keys and aliases as the key."""
    functions = {name: name for name in COMBINATIONS}
    return MappingProxyType(functions | {name: metric.key for name, metric in catalogue().by_name.items()})


@cache
def _foreign_names() -> Mapping[str, tuple[str, ...]]:
    """What other libraries call a metric, lower case, without arguments: the keys that it may mean."""
    found: dict[str, list[str]] = {}
    for metric in catalogue().metrics:
        for name in metric.card.elsewhere.values():
            found.setdefault(name.partition("(")[0].lower(), []).append(metric.key)
    return MappingProxyType({name: tuple(keys) for name, keys in found.items()})


def suggest(name: str) -> tuple[str, ...]:
    """Known names nearest to an unknown one, best first, each for another metric; none where none is near."""
    known, foreign = _known_names(), _foreign_names()
    plain = name.lower().replace("-", "_").replace(".", "_")
    words = set(plain.split("_"))
    candidates = [
        *([plain] if plain in known else []),
        *foreign.get(name.rpartition(".")[2].lower(), ()),
        *(other for other in known if len(words) > 1 and set(other.split("_")) == words),
        *(key for other in _near(plain, {*known, *foreign}) for key in ([other] if other in known else foreign[other])),
        *(other for other in known if len(plain) > 2 and plain in other.split("_")),
    ]
    chosen: dict[str, str] = {}
    for candidate in candidates:
        chosen.setdefault(known[candidate], candidate)
    return tuple(chosen.values())[:_MOST_SUGGESTIONS]


def _near(name: str, names: Collection[str]) -> list[str]:
    """Names that are near, and not much less so than the nearest."""
    found = get_close_matches(
        name, sorted(names), n=_MOST_LOOKED_AT, cutoff=_NEAR_OF_SHORT if len(name) <= _SHORT else _NEAR
    )
    ratios = {other: SequenceMatcher(a=other, b=name).ratio() for other in found}
    return [other for other in found if ratios[other] >= max(ratios.values()) - _BEHIND]


def nearest_labels(label: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The classes that come nearest to an unknown one, best first."""
    folded: dict[str, str] = {}
    for candidate in labels:
        folded.setdefault(candidate.strip().casefold(), candidate)
    found = get_close_matches(label.strip().casefold(), folded, n=_MOST_SUGGESTIONS, cutoff=0.5)
    return tuple(folded[name] for name in found)
