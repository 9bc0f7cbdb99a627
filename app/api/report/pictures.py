"""Pictures inside a page: no ids in common with others, and colours that follow the theme of the page."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from markupsafe import Markup

from app.api.plots.look import Theme, colours_of

_ID: Final = re.compile(r'\bid="([\w-]+)"|url\(#([\w-]+)\)')
_PROLOGUE: Final = re.compile(r"^<\?xml.*?\?>|<!DOCTYPE.*?>", re.DOTALL)
_COLOUR: Final = re.compile(r'(fill|stroke)="(#[0-9a-fA-F]{6})"')
_TAG: Final = re.compile(r"<[^<>]+>")
# What every mark says to a reader of the screen: on a page the figure as a whole says it in words.
_OF_MARKS: Final = re.compile(r' (?:role="graphics-[^"]*"|aria-\w+="[^"]*")')
_SIZE: Final = re.compile(r'^<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of a page: drawn, or why it is not.

    Attributes:
        text: What is seen in it.
        reason: Why there is no picture; the page says it in its place.
    """

    name: str
    title: str
    subtitle: tuple[str, ...]
    text: str
    svg: Markup | None = None
    reason: str = ""


def inlined(svg: str, place: int) -> Markup:
    """A picture as a part of a page. What is drawn here is the service's own, its texts escaped by what drew it."""
    text = _PROLOGUE.sub("", svg).strip()
    text = _TAG.sub(lambda found: _OF_MARKS.sub("", found[0]), text)
    text = _ID.sub(lambda found: found[0].replace(found[1] or found[2], f"f{place}-{found[1] or found[2]}"), text)
    text = _COLOUR.sub(lambda found: f'{found[1]}="{_themed(found[2])}"', text)
    # It shrinks with the page, and its size is no longer than it has to be.
    text = text.replace(' class="marks"', "", 1)
    return Markup(_SIZE.sub(r'<svg\1 class="fig" width="\2"', text, count=1))  # noqa: S704 - see above


def _themed(colour: str) -> str:
    return f"var(--{_variables()[colour.lower()]})" if colour.lower() in _variables() else colour


@cache
def _variables() -> dict[str, str]:
    """Colours of the light theme, and what they are called in the styles of a page."""
    return {light: f"c{light[1:]}" for light, _ in _pairs()}


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    return tuple(dict(zip(colours_of(Theme.LIGHT), colours_of(Theme.DARK), strict=True)).items())


def colour_styles() -> str:
    """The colours of pictures as custom properties, for both themes."""
    pairs = "".join(f"--c{light[1:]}:light-dark({light},{dark});" for light, dark in _pairs())
    return f":root{{{pairs}}}"
