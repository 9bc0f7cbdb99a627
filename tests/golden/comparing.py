"""What two answers differ in, and how to say it so that a human reads it."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

RELATIVE, ABSOLUTE = 1e-9, 1e-12
_LABEL = re.compile(r"@[^,()]*")
# Their members are named by classes, folds or metrics of which there are many.
_NAMED = frozenset({"per_class", "each", "folds"})
_LONGEST = 100


class Absent:
    """Stands for what is on one side only."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in an answer with what was recorded there and what is there now."""

    path: tuple[str, ...]
    old: Any
    new: Any

    @property
    def pointer(self) -> str:
        """The place."""
        return "".join(f"/{part}" for part in self.path)

    @property
    def pattern(self) -> str:
        """The place with stars for what there are many of: entries of lists, classes."""
        parts = []
        for place, part in enumerate(self.path):
            named = place > 0 and self.path[place - 1] in _NAMED
            parts.append("*" if part.isdecimal() or named else _LABEL.sub("@*", part))
        return "".join(f"/{part}" for part in parts)

    @property
    def size(self) -> float:
        """How far two numbers lie apart, relative to the larger one; infinite for whatever are not two numbers."""
        if not (_is_number(self.old) and _is_number(self.new)):
            return math.inf
        return float(abs(self.new - self.old) / max(abs(self.old), abs(self.new)))

    def __str__(self) -> str:
        return f"{self.pointer}: {_shown(self.old)} -> {_shown(self.new)}"


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Every place where two values of JSON differ; see `tests.golden` for what counts as equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name, ABSENT), new.get(name, ABSENT), (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for index, first, second in _pairs(old, new):
            yield from differences(first, second, (*path, str(index)))
    elif not _equal(old, new):
        yield Difference(path, old, new)


def _pairs(old: Sequence[Any], new: Sequence[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Entries of two lists side by side, with a place; where one list is longer, equal entries belong together."""
    blocks = [(0, len(old), 0, len(new))]
    if len(old) != len(new):
        was, now = ([json.dumps(entry, sort_keys=True) for entry in side] for side in (old, new))
        steps = SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
        blocks = [(start, end, first, last) for step, start, end, first, last in steps if step != "equal"]
    for start, end, first, last in blocks:
        for offset in range(max(end - start, last - first)):
            one = old[start + offset] if start + offset < end else ABSENT
            other = new[first + offset] if first + offset < last else ABSENT
            yield (first if one is ABSENT else start) + offset, one, other


def _equal(old: Any, new: Any) -> bool:
    if not (_is_number(old) and _is_number(new)):
        return type(old) is type(new) and bool(old == new)
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[Difference]]:
    """By name of the request, what differs; requests that do not differ are left out."""
    names = sorted(old.keys() | new.keys())
    found = {name: list(differences(old.get(name, ABSENT), new.get(name, ABSENT))) for name in names}
    return {name: each for name, each in found.items() if each}


def report(found: Mapping[str, Sequence[Difference]], *, full: bool = False) -> str:
    """By request, one line per pattern of paths with the first difference of it, or all of them."""
    lines = []
    for name, each in found.items():
        lines.append(f"{name}: {_count(len(each), 'difference')}")
        if full:
            lines += [f"    {one}" for one in each]
            continue
        for pattern, alike in _by_pattern(each).items():
            more = f"  ({len(alike)} of {pattern}; {_apart(alike)})" if len(alike) > 1 else f"  ({_apart(alike)})"
            lines.append(f"    {alike[0]}{more}")
    return "\n".join(lines)


def summary(found: Mapping[str, Sequence[Difference]]) -> str:
    """Over all requests, patterns of paths by how often they differ."""
    patterns: dict[str, list[tuple[str, Difference]]] = defaultdict(list)
    for name, each in found.items():
        for one in each:
            patterns[one.pattern].append((name, one))
    lines = []
    for pattern, alike in sorted(patterns.items(), key=lambda item: (-len(item[1]), item[0])):
        requests = len({name for name, _ in alike})
        apart = _apart([one for _, one in alike])
        name, first = alike[0]
        lines.append(f"{len(alike):6} in {_count(requests, 'request')}  {pattern}  ({apart})")
        lines.append(f"           such as {_shown(first.old)} -> {_shown(first.new)} in {name}")
    return "\n".join(lines)


def _by_pattern(each: Sequence[Difference]) -> dict[str, list[Difference]]:
    patterns: dict[str, list[Difference]] = defaultdict(list)
    for one in each:
        patterns[one.pattern].append(one)
    return patterns


def _apart(alike: Sequence[Difference]) -> str:
    """How far numbers lie apart at most, and how many are something else."""
    finite = [one.size for one in alike if math.isfinite(one.size)]
    others = len(alike) - len(finite)
    parts = [f"numbers apart by up to {max(finite):.1e}"] if finite else []
    parts += [f"{others} not numbers on both sides"] if others else []
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
