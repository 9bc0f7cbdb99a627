"""Pages written: templates that escape everything, and the styles of a page inside it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.api.plots.look import Theme
from app.api.report.check_page import check_page
from app.api.report.comparison_page import comparison_page
from app.api.report.evaluation_page import evaluation_page
from app.api.report.leaderboard_page import leaderboard_page
from app.api.report.pictures import Picture, colour_styles, inlined

# The page runs nothing and loads nothing; its styles and pictures are inside.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def evaluation_report(answer: Mapping[str, Any], pictures: Sequence[Picture] = (), theme: Theme | None = None) -> bytes:
    """An evaluation as one page.

    Args:
        answer: As it is answered in JSON.
        pictures: In the order of the page.
        theme: That of the reader's system when None.
    """
    return _written("evaluation.html", evaluation_page(answer), pictures, theme)


def comparison_report(answer: Mapping[str, Any], pictures: Sequence[Picture] = (), theme: Theme | None = None) -> bytes:
    """A comparison of runs, or of models across datasets, as one page."""
    template = "models.html" if "average_ranks" in answer else "comparison.html"
    return _written(template, comparison_page(answer), pictures, theme)


def check_report(answer: Mapping[str, Any]) -> bytes:
    """What a gate says of an evaluation as one page."""
    return _written("check.html", check_page(answer), (), None)


def leaderboard_report(answer: Mapping[str, Any]) -> bytes:
    """A leaderboard as one page."""
    return _written("leaderboard.html", leaderboard_page(answer), (), None)


def picture_of(name: str, specification: bytes, svg: bytes | None, place: int) -> Picture:
    """A figure for a page, of its specification and what was drawn of it."""
    found = orjson.loads(specification)
    return Picture(
        name=name,
        title=found["title"]["text"],
        subtitle=tuple(found["title"]["subtitle"][1:]) if len(found["title"]["subtitle"]) > 1 else (),
        text=found["description"],
        svg=None if svg is None else inlined(svg.decode(), place),
    )


def without_title(specification: bytes) -> bytes:
    """The same without its title, which the page writes."""
    found = orjson.loads(specification)
    del found["title"]
    return orjson.dumps(found)


def _written(template: str, page: Mapping[str, Any], pictures: Sequence[Picture], theme: Theme | None) -> bytes:
    text = (
        templates()
        .get_template(template)
        .render(
            layout="base.html",
            web=None,
            page=page,
            pictures=pictures,
            drawn=any(one.svg is not None for one in pictures),
            theme=theme,
            styles=styles(),
        )
    )
    return text.encode()


@cache
def templates(*packages: str) -> Environment:
    """The templates of reports and of further packages, which may take those of reports as parts."""
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
    """The styles of all pages, with the colours of figures."""
    own = files(__package__).joinpath("templates", "style.css").read_text()
    # The service's own file; nothing of a request is in it.
    return Markup(own + colour_styles())  # noqa: S704
