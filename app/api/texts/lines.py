"""What texts for a terminal are made of: columns, wrapped sentences, bars, and labels shown as the data they are."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.wording import PLAIN

NARROWEST, USUAL, WIDEST = 60, 80, 200
# Categories of characters that would do something to a terminal in place of being shown: controls, formats such as
# those that turn the direction of writing, surrogates, separators of lines and of paragraphs.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_COMBINING = frozenset({"Mn", "Me"})
_ELLIPSIS = ".."
# A number stays with its unit.
_BREAKS = re.compile(r" (?!%)")


@dataclass(frozen=True, slots=True)
class Style:
    """How wide a text is, and which characters its pictures are made of."""

    width: int = USUAL
    unicode: bool = False


def shown(text: str) -> str:
    r"""A name as it can be shown: what a terminal would obey is written out, such as ``\x1b``."""
    if text.isprintable():
        # Nearly all names are: none of these categories is printable.
        return text
    return "".join(one if unicodedata.category(one) not in _UNSHOWN else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for those that combine."""
    if text.isascii():
        return len(text)
    return sum(_columns(one) for one in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in _COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def left(text: str, width: int) -> str:
    """The text with spaces behind it."""
    return text + " " * (width - columns_of(text))


def cell(text: str, width: int) -> str:
    """The text with spaces behind it, one at least: what follows never touches it."""
    return left(text, max(width, columns_of(text) + 1))


def right(text: str, width: int) -> str:
    """The text with spaces before it."""
    return " " * (width - columns_of(text)) + text


def wrapped(head: str, text: str, width: int, indent: int = 9) -> list[str]:
    """A heading and sentences beside it, in lines of ``width`` that begin ``indent`` columns in. No word is cut, so a
    name without spaces may stand out.
    """
    lines, line = [], left(head, indent)
    empty = True
    for word in _BREAKS.split(text):
        if not empty and columns_of(line) + 1 + columns_of(word) > width:
            lines.append(line)
            line, empty = " " * indent, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line.rstrip()]


def opposite(first: str, second: str, width: int) -> list[str]:
    """Two texts at both ends of a line; on two lines where they do not fit into one."""
    gap = width - columns_of(first) - columns_of(second)
    return [first + " " * gap + second] if gap >= 2 else [first, right(second, width)]


def shortened(labels: Sequence[str], width: int) -> list[str]:
    """Names in at most ``width`` columns: cut in the middle, there where most of them still differ."""
    if all(columns_of(label) <= width for label in labels):
        return list(labels)
    kept = width - len(_ELLIPSIS)
    middle = (kept + 1) // 2
    best: list[str] = []
    for head in sorted(range(kept + 1), key=lambda head: abs(head - middle)):
        cut = [_cut(label, width, head, kept - head) for label in labels]
        if len(set(cut)) > len(set(best)):
            best = cut
        if len(set(best)) == len(set(labels)):
            break
    return best


def _cut(label: str, width: int, head: int, tail: int) -> str:
    if columns_of(label) <= width:
        return label
    return _fitting(label, head) + _ELLIPSIS + _fitting(label[::-1], tail)[::-1]


def _fitting(text: str, width: int) -> str:
    taken, used = [], 0
    for one in text:
        used += _columns(one)
        if used > width:
            break
        taken.append(one)
    return "".join(taken)


def signed(value: float | None) -> str:
    """A difference, with its sign."""
    return PLAIN.value(value, sign=True)


def limits(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Both ends of an interval; a dash where there is none."""
    return PLAIN.interval(low, high, sign=sign)


@dataclass(frozen=True, slots=True)
class Track:
    """Where values and their limits lie between 0 and 1, as a picture of a line.

    Attributes:
        steps: How many columns there are from 0 to 1, both of them; 0 where there is no room for a picture.
    """

    steps: int
    unicode: bool = False

    @classmethod
    def within(cls, columns: int, style: Style) -> "Track":
        """The longest one with whole columns at the quarters that fits, its two ends included."""
        room = min(columns - 2, _LONGEST)
        return cls(room - (room - 1) % 4 if room >= _SHORTEST else 0, style.unicode)

    @property
    def scale(self) -> str:
        """The numbers above it."""
        if not self.steps:
            return ""
        line = [" "] * (self.steps + 2)
        for place, text in ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
            at = 1 + self._column(place) - (1 if len(text) > 2 else 0) - (1 if text == ".5" else 0)
            line[at : at + len(text)] = text
        return "".join(line).rstrip()

    def drawn(self, value: float | None, low: float | None, high: float | None) -> str:
        """One line, empty for what does not lie between 0 and 1."""
        if (
            not self.steps
            or value is None
            or not all(0.0 <= one <= 1.0 for one in (value, low, high) if one is not None)
        ):
            return ""
        opened, between, point, closed, edge = "├─●┤│" if self.unicode else "[-o]|"
        line = [" "] * self.steps
        if low is not None and high is not None:
            first, last = self._column(low), self._column(high)
            line[first : last + 1] = between * (last + 1 - first)
            line[first], line[last] = opened, closed
        line[self._column(value)] = point
        return edge + "".join(line) + edge

    def _column(self, value: float) -> int:
        return int(value * (self.steps - 1) + 0.5)


_SHORTEST, _LONGEST = 13, 41
