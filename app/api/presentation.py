"""Content negotiation: `Accept`, `fields` and `Prefer` choose between JSON, some of its members, and texts.

A view is made before anything is computed, so that what cannot be answered is refused first, and is sent along to
where the answer is made, which may be another process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Annotated, Any, Final, NamedTuple, Union

import orjson
from fastapi import Depends, Query, Request
from pydantic import StringConstraints
from starlette.responses import Response

from app.api.answers import Documented, answers, member_names, write_json
from app.api.documents.check import check_document
from app.api.documents.comparison import comparison_document
from app.api.documents.document import Document
from app.api.documents.evaluation import evaluation_document
from app.api.documents.history import history_document
from app.api.documents.leaderboard import leaderboard_document
from app.api.documents.markdown import write_csv, write_markdown
from app.api.documents.slices import slices_document
from app.api.documents.text import NARROWEST, USUAL, WIDEST, Style, write_text
from app.api.plots.look import Theme
from app.api.problems import InvalidQuery, NotAcceptable, near
from app.api.report import HEADERS, Picture, write_page
from app.domain.errors import Fault
from app.domain.members import members
from app.services.compare.answers import ModelComparison, RunComparison
from app.services.evaluate.evaluations import Evaluation
from app.services.gate import CheckAnswer
from app.services.history import HistoryPage
from app.services.rank import Leaderboard
from app.services.slices.answers import Slices

Written = Mapping[str, Any]


class Media(StrEnum):
    """The media types of answers; the first is the default."""

    JSON = "application/json"
    TEXT = "text/plain"
    MARKDOWN = "text/markdown"
    CSV = "text/csv"
    PAGE = "text/html"


class Characters(StrEnum):
    """The characters that a text draws with."""

    ASCII = "ascii"
    UNICODE = "unicode"


@dataclass(frozen=True)
class AnswerKind:
    """One kind of answer and the ways to write it.

    Attributes:
        shapes: The dataclasses that are answered.
        document: Makes the document that texts, CSV and pages are written of.
        least: The members that are left by ``Prefer: return=minimal``.
    """

    shapes: tuple[type, ...]
    document: Callable[[Written], Document]
    least: tuple[str, ...]

    @cached_property
    def members(self) -> list[str]:
        """The names of the members it may have."""
        return list(dict.fromkeys(name for shape in self.shapes for name in member_names(shape)))

    def page(self, answer: Written, pictures: Sequence[Picture] = (), theme: Theme | None = None) -> bytes:
        """An answer as a page in one file."""
        return write_page(self.document(answer), pictures, theme)


EVALUATION = AnswerKind((Evaluation,), evaluation_document, ("id", "headline"))
# Members that need no report but its headline, and the one that is computed where it is named among `fields`.
_BRIEF: Final = frozenset({"id", "created_at", "model", "dataset", "tags", "headline"})
VALUES: Final = "values"
COMPARISON = AnswerKind((RunComparison, ModelComparison), comparison_document, ("id",))
CHECK = AnswerKind((CheckAnswer,), check_document, ("id", "verdict", "exit_code"))
LEADERBOARD = AnswerKind((Leaderboard,), leaderboard_document, ())
SLICES = AnswerKind((Slices,), slices_document, ("findings",))
HISTORY = AnswerKind((HistoryPage,), history_document, ("changes",))


def written_as(kind: AnswerKind, documented: Documented | None = None) -> Documented:
    """The member ``responses`` of a route with such an answer, or what is documented of it, with all media types."""
    shape: Any = kind.shapes[0] if len(kind.shapes) == 1 else Union[kind.shapes]  # noqa: UP007 - of a tuple
    texts = {media.value: {"schema": {"type": "string"}} for media in Media if media is not Media.JSON}
    found = answers(shape) if documented is None else documented
    return {status: {**said, "content": said["content"] | texts} for status, said in found.items()}


def fields_of(known: Sequence[str]) -> Any:
    """The parameter `fields` of an answer, or of the items of a list, with these members."""
    member = f"({'|'.join(known)})"
    return Query(
        description="Names of members, separated by commas: only these are answered.",
        max_length=1000,
        json_schema_extra={"pattern": f"^{member}( ?, ?{member}){{0,20}}$"},
    )


def chosen_members(fields: str | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """The members that are named with commas between them, None when nothing is said; raises InvalidQuery."""
    if fields is None:
        return None
    names = tuple(name.strip() for name in fields.split(","))
    said = f"; known are {', '.join(known)}"
    faults = [
        Fault("fields", "unknown_member", f"there is no member {name[:100]!r}{said}", near(name[:100], known))
        for name in names
        if name not in known
    ]
    if faults:
        raise InvalidQuery(faults)
    return names


def kept_members(answer: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named members of an answer, as far as it has them."""
    found = members(answer) if is_dataclass(answer) else answer
    return {name: found[name] for name in names if name in found}


class FormatQuery(NamedTuple):
    """The query parameters that choose how an answer is written."""

    fields: str | None = None
    style: Style = Style()
    metrics: Sequence[str] | None = None


_MINIMAL: Final = "return=minimal"
# For routes whose address has no parameters: those are called without anything being found out.
AS_USUAL = FormatQuery()
# Answers of more classes are written in a thread.
_MOST_CLASSES_AT_ONCE: Final = 64


async def _drawn(
    style: Annotated[Characters, Query(description="What the pictures of a text are made of.")] = Characters.ASCII,
    width: Annotated[int, Query(ge=NARROWEST, le=WIDEST, description="Columns of a text.")] = USUAL,
) -> FormatQuery:
    return FormatQuery(style=Style(width, style is Characters.UNICODE))


def _asked_of(kind: AnswerKind) -> Callable[..., Awaitable[FormatQuery]]:
    """The parameters that routes with such an answer share."""

    async def asked(
        drawn: Annotated[FormatQuery, Depends(_drawn)], fields: Annotated[str | None, fields_of(kind.members)] = None
    ) -> FormatQuery:
        return drawn._replace(fields=fields)

    return asked


ShownMetrics = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]] | None,
    Query(
        description="Metric expressions that `values` is to have (`fields=values`), in place of the headline.",
        max_length=100,
    ),
]


async def _with_metrics(
    asked: Annotated[FormatQuery, Depends(_asked_of(EVALUATION))], metrics: ShownMetrics = None
) -> FormatQuery:
    return asked._replace(metrics=metrics)


async def _members_alone(
    fields: Annotated[str | None, fields_of(EVALUATION.members)] = None, metrics: ShownMetrics = None
) -> FormatQuery:
    return FormatQuery(fields, metrics=metrics)


FormatOfEvaluation = Annotated[FormatQuery, Depends(_with_metrics)]
MembersOfEvaluation = Annotated[FormatQuery, Depends(_members_alone)]
FormatOfComparison = Annotated[FormatQuery, Depends(_asked_of(COMPARISON))]
FormatOfCheck = Annotated[FormatQuery, Depends(_asked_of(CHECK))]
FormatOfLeaderboard = Annotated[FormatQuery, Depends(_asked_of(LEADERBOARD))]
# `fields` of a list chooses members of its items.
FormatOfHistory = Annotated[FormatQuery, Depends(_drawn)]
FormatOfSlices = Annotated[FormatQuery, Depends(_asked_of(SLICES))]


@dataclass(frozen=True, slots=True)
class View:
    """The chosen form of one answer.

    Attributes:
        fields: The members that are kept; None keeps all.
        applied: What was asked for by `Prefer` and is done.
        metrics: Of `values`, where these are kept; none are the headline.
    """

    kind: AnswerKind
    media: Media = Media.JSON
    fields: tuple[str, ...] | None = None
    style: Style = field(default_factory=Style)
    applied: str = ""
    metrics: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[str, ...] | None:
        """The metrics of `values`; None where these are not saved."""
        return self.metrics if self.fields is not None and VALUES in self.fields else None

    @property
    def is_brief(self) -> bool:
        """Are all members that are kept those of an evaluation with its headline alone?"""
        return self.fields is not None and {*self.fields} <= _BRIEF

    def write(self, answer: Any) -> bytes:
        """The answer, a dataclass or what was saved of one, as it is sent."""
        if self.media is Media.JSON:
            return write_json(answer if self.fields is None else kept_members(answer, self.fields))
        document = self.kind.document(orjson.loads(write_json(answer)))
        match self.media:
            case Media.TEXT:
                return write_text(document, self.style).encode()
            case Media.MARKDOWN:
                return write_markdown(document).encode()
            case Media.PAGE:
                return write_page(document)
        return write_csv(document).encode()

    def response(
        self, written: bytes, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A response of what `write` has written."""
        said = {"Vary": "Accept", **(HEADERS if self.media is Media.PAGE else {}), **(headers or {})}
        if self.applied:
            said |= {"Preference-Applied": self.applied, "Vary": "Accept, Prefer"}
        return Response(written, status, said, media_type=self.media)

    def answer(self, answer: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
        """A response with the answer."""
        return self.response(self.write(answer), status, headers)


def view_of(request: Request, kind: AnswerKind, asked: FormatQuery) -> View:
    """Return the view that a request asks for. Raises NotAcceptable where nothing that it accepts is written here, and
    InvalidQuery where there is no such member, or members are asked for of a text.
    """
    accept = request.headers.get("accept", "*/*")
    # The best of what is written here, by the weights of `Accept` (RFC 9110, section 12.5.1).
    if (media := _best(accept)) is None:
        raise NotAcceptable(accept, [one.value for one in Media])
    view: View = request.scope["state"].setdefault("view", json_view_of(request, kind, asked, media))
    return view


def requested_view(request: Request) -> View:
    """Return the view that `view_of` has made for a request."""
    view: View = request.scope["state"]["view"]
    return view


def json_view_of(request: Request, kind: AnswerKind, asked: FormatQuery = AS_USUAL, media: Media = Media.JSON) -> View:
    """Return the view of a request for many answers, which are JSON. Raises InvalidQuery where there is no such member,
    or metrics are chosen without `values`.
    """
    if asked.fields is not None and media is not Media.JSON:
        raise InvalidQuery.at("fields", "not_json", f"fields chooses members of JSON, and {media} was asked for")
    kept = chosen_members(asked.fields, kind.members)
    if asked.metrics is not None and VALUES not in (kept or ()):
        raise InvalidQuery.at("metrics", "no_values", "expected fields=values with it: metrics chooses among values")
    if kept is not None:
        return View(kind, media, kept, asked.style, metrics=tuple(asked.metrics or ()))
    if request.method != "GET" and media is Media.JSON and _MINIMAL in preferences(request):
        return View(kind, media, kind.least, asked.style, _MINIMAL)
    return View(kind, media, None, asked.style)


def preferences(request: Request) -> list[str]:
    """The preferences of a request (`Prefer`, RFC 7240), in small letters and without parameters."""
    said = request.headers.get("prefer", "").lower().replace(" ", "").replace('"', "")
    return [one.partition(";")[0] for one in said.split(",")]


def prefers_page(request: Request) -> bool:
    """Does it ask for a page before everything else that is written here? Where it has pictures, its route makes it."""
    return _best(request.headers.get("accept", "*/*")) is Media.PAGE


def require_acceptable(request: Request, media: str) -> None:
    """Go on only where a request accepts the one media type that its answer has; raises NotAcceptable."""
    accept = request.headers.get("accept", "*/*")
    if _weight(media, _ranges(accept)) == 0.0:
        raise NotAcceptable(accept, [media])


@lru_cache(maxsize=256)
def _best(accept: str) -> Media | None:
    ranges = _ranges(accept)
    # The more specific range decides about a media type, and among equal weights the usual one is taken.
    weights = {media: _weight(media, ranges) for media in Media}
    best = max(weights, key=lambda media: weights[media])
    return best if weights[best] > 0.0 else None


def _ranges(accept: str) -> list[tuple[str, float]]:
    return [weighted(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]


def weighted(part: str) -> tuple[str, float]:
    """One part of `Accept` or `Accept-Encoding`, in small letters, and its weight, 0 to 1 (RFC 9110, 12.4.2)."""
    name, *parameters = (one.strip() for one in part.lower().split(";"))
    weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
    try:
        return name, min(max(float(weight), 0.0), 1.0)
    except ValueError:
        return name, 0.0


def _weight(media: str, ranges: Sequence[tuple[str, float]]) -> float:
    for name in (media, f"{media.split('/')[0]}/*", "*/*"):
        found = [weight for one, weight in ranges if one == name]
        if found:
            return max(found)
    return 0.0


async def evaluation_answer(
    view: View,
    evaluation: Evaluation,
    status: int = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer, written in a thread where it is long."""
    if len(evaluation.report.input.labels) > _MOST_CLASSES_AT_ONCE:
        return await asyncio.to_thread(view.answer, evaluation, status, headers)
    return view.answer(evaluation, status, headers)
