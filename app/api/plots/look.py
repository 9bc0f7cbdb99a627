"""Themes and sizes of figures."""

import re
from collections.abc import Mapping, Sequence
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
def _told() -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(files(__package__).joinpath("theme.json").read_bytes())
    return found


def palette() -> Mapping[str, Sequence[str]]:
    """Return all colours of figures by name, each for a light and for a dark page."""
    found: Mapping[str, Sequence[str]] = _told()["colours"]
    return found


@cache
def _config(theme: Theme) -> Spec:
    place = [*Theme].index(theme)
    text = _COLOUR.sub(lambda found: palette()[found[1]][place], orjson.dumps(_told()["config"]).decode())
    config: Spec = orjson.loads(text)
    return config


_COLOUR: Final = re.compile(r"\$(\w+)")


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
        return _config(self.theme)

    def colour(self, name: str) -> str:
        """A colour of the palette."""
        return palette()[name][[*Theme].index(self.theme)]

    @property
    def paper(self) -> str:
        """The colour behind everything."""
        return self.colour("paper")

    @property
    def ink(self) -> str:
        """The colour of text."""
        return self.colour("ink")

    @property
    def quiet(self) -> str:
        """The colour of what stands behind: other classes, references."""
        return self.colour("rule2")

    @property
    def line(self) -> str:
        """The colour of hairlines."""
        return self.colour("rule")

    @property
    def accent(self) -> str:
        """The colour of what is looked at."""
        return self.colour("accent")

    @property
    def series(self) -> list[str]:
        """The colours of runs, apart for all common colour blindness."""
        return list(self.config["range"]["category"])

    def steps(self, *, right: bool) -> list[str]:
        """The seven steps of what is right, or wrong, by its share."""
        return [self.colour(f"{'h' if right else 'm'}{step}") for step in range(1, len(BREAKS) + 2)]

    def verdict(self, name: str) -> str:
        """The colour of `pass`, `fail` or `inconclusive`."""
        return self.colour("open" if name == "inconclusive" else name)


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
