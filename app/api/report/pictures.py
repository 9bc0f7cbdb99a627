"""Templates and styles of pages, and pictures inside them: no ids in common, and colours that follow the theme."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Final

import orjson
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
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
        text: Its contents in words.
        reason: Stands in the place of a picture that there is not.
    """

    name: str
    title: str
    subtitle: tuple[str, ...]
    text: str
    svg: Markup | None = None
    reason: str = ""


def inlined(svg: str, place: int) -> Markup:
    """Return a picture as a part of a page. Drawings are the service's own, their texts escaped by what drew them."""
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
    """Return the colours of pictures as custom properties, for both themes."""
    pairs = "".join(f"--c{light[1:]}:light-dark({light},{dark});" for light, dark in _pairs())
    return f":root{{{pairs}}}"


def picture_of(name: str, specification: bytes, svg: bytes | None, place: int) -> Picture:
    """Return a figure for a page, of its specification and the drawing of it."""
    found = orjson.loads(specification)
    return Picture(
        name=name,
        title=found["title"]["text"],
        subtitle=tuple(found["title"]["subtitle"][1:]) if len(found["title"]["subtitle"]) > 1 else (),
        text=found["description"],
        svg=None if svg is None else inlined(svg.decode(), place),
    )


def without_title(specification: bytes) -> bytes:
    """Return a specification without its title, which the page writes."""
    found = orjson.loads(specification)
    del found["title"]
    return orjson.dumps(found)


@cache
def templates(*packages: str) -> Environment:
    """Return the templates of documents and of further packages, which may take those of documents as parts."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "app.api.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    made.filters["day"] = _day
    return made


def _day(text: str) -> str:
    moment = datetime.fromisoformat(text)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


@cache
def styles() -> Markup:
    """Return the styles of all pages, with the colours of figures."""
    own = files(__package__).joinpath("templates", "style.css").read_text()
    # The service's own file; nothing of a request is in it.
    return Markup(own + colour_styles())  # noqa: S704
