"""Names that can be written in expressions, and those nearest to what nobody knows."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Final

from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.combinations import COMBINATIONS

_MOST_SUGGESTIONS: Final = 3


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
    """Known names nearest to an unknown one, best first, each for another metric."""
    known = _known_names()
    plain = name.lower().replace("-", "_").replace(".", "_")
    words = set(plain.split("_"))
    candidates = [
        *([plain] if plain in known else []),
        *_foreign_names().get(name.rpartition(".")[2].lower(), ()),
        *(other for other in known if len(words) > 1 and set(other.split("_")) == words),
        *get_close_matches(plain, known, n=_MOST_SUGGESTIONS, cutoff=0.7),
        *(other for other in known if len(plain) > 2 and plain in other.split("_")),
        *get_close_matches(plain, known, n=_MOST_SUGGESTIONS, cutoff=0.6),
    ]
    chosen: dict[str, str] = {}
    for candidate in candidates:
        chosen.setdefault(known[candidate], candidate)
    return tuple(chosen.values())[:_MOST_SUGGESTIONS]


def nearest_labels(label: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The classes that come nearest to an unknown one, best first."""
    folded: dict[str, str] = {}
    for candidate in labels:
        folded.setdefault(candidate.strip().casefold(), candidate)
    found = get_close_matches(label.strip().casefold(), folded, n=_MOST_SUGGESTIONS, cutoff=0.5)
    return tuple(folded[name] for name in found)
