"""Themes and sizes of figures."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import Any, Final

import orjson

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
Spec = dict[str, Any]


class Theme(StrEnum):
    """Light or dark."""

    LIGHT = "light"
    DARK = "dark"


@cache
def _themes() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = orjson.loads(files(__package__).joinpath("theme.json").read_bytes())
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """Theme and size of one figure.

    Attributes:
        width: Of the drawing area without its labels, in pixels, as its height; the figure decides when None.
    """

    theme: Theme = Theme.LIGHT
    width: int | None = None
    height: int | None = None

    @property
    def config(self) -> Spec:
        """The theme as Vega-Lite takes it."""
        theme = {name: value for name, value in _themes()[self.theme].items() if name not in _OWN}
        # At the top stands what the upright axis is called.
        # What measures texts does not know the fonts of whoever looks: names of a legend have room behind them.
        return {**theme, "legend": {**theme["legend"], "orient": "bottom", "columnPadding": 28}}

    @property
    def paper(self) -> str:
        """The colour behind everything."""
        return str(_themes()[self.theme]["background"])

    @property
    def ink(self) -> str:
        """The colour of text."""
        return str(_themes()[self.theme]["text"]["color"])

    @property
    def quiet(self) -> str:
        """The colour of what stands behind: other classes, references."""
        return str(_themes()[self.theme]["axis"]["domainColor"])

    @property
    def line(self) -> str:
        """The colour of hairlines."""
        return str(_themes()[self.theme]["axis"]["gridColor"])

    @property
    def accent(self) -> str:
        """The colour of what is looked at."""
        return str(_themes()[self.theme]["line"]["color"])

    @property
    def series(self) -> list[str]:
        """The colours of runs, apart for all common colour blindness."""
        return list(_themes()[self.theme]["range"]["category"])

    def steps(self, *, right: bool) -> list[str]:
        """The seven steps of what is right, or wrong, by its share."""
        return list(_themes()[self.theme]["usermeta"]["sequential_right" if right else "sequential_wrong"])

    def verdict(self, name: str) -> str:
        """The colour of `pass`, `fail` or `inconclusive`."""
        return str(_themes()[self.theme]["usermeta"][name])


# Parts of the theme that Vega-Lite has no names for, and the form of numbers, which each axis says for itself.
_OWN: Final = frozenset({"usermeta", "numberFormat"})
# Letters of a line below a title.
_LONGEST: Final = 64
# Shares from which the next step begins; mistakes of 5 % matter, so they are uneven.
BREAKS: Final = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: what it is called, what is seen in it, and how it is drawn.

    Attributes:
        title: Its plain name, or what follows from a stored number.
        subtitle: Whose it is, and how to read it; one line each.
        text: What is seen, for those who do not see it; from stored numbers alone.
        body: The rest of the specification, its data inside.
    """

    title: str
    subtitle: tuple[str, ...]
    text: str
    body: Spec

    def specification(self, look: Look) -> Spec:
        """The figure as Vega-Lite."""
        return {
            "$schema": SCHEMA,
            "description": self.text,
            "title": {
                "text": self.title,
                "subtitle": [part for line in self.subtitle for part in wrap(line, _LONGEST)],
            },
            # Pages break lines themselves.
            "usermeta": {"subtitle": self.subtitle},
            **_settled(self.body, look.config["style"]),
            "config": look.config,
        }


def _settled(part: Any, styles: Mapping[str, Spec]) -> Any:
    """A part of a specification with what would be lost to the theme otherwise.

    What the theme says of all lines or points comes before what it says of a style, so that a mark has its style
    written out. How many ticks the theme wants thins out ticks that are listed, so that an axis that lists them says
    their number.
    """
    if isinstance(part, list):
        return [_settled(one, styles) for one in part]
    if not isinstance(part, dict):
        return part
    found = {name: one if name == "data" else _settled(one, styles) for name, one in part.items()}
    mark = found.get("mark")
    if isinstance(mark, dict) and "style" in mark:
        found["mark"] = {**styles[mark["style"]], **mark}
    axis = found.get("axis")
    if isinstance(axis, dict) and "values" in axis:
        found["axis"] = {**axis, "tickCount": len(axis["values"])}
    return found


def colours_of(theme: Theme) -> list[str]:
    """All colours of a theme, in an order that both themes have: those at one place stand for each other."""
    return list(_colours(_themes()[theme]))


def _colours(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield from [part.lower()] if _COLOUR.fullmatch(part) else []
    elif isinstance(part, Mapping):
        for name in sorted(part):
            yield from _colours(part[name])
    elif isinstance(part, list):
        for one in part:
            yield from _colours(one)


_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
