"""Reports: one page about an evaluation or a comparison, with the figures that it can have."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from starlette.responses import Response

from app.api.deps import Context
from app.api.documents.comparison import comparison_document
from app.api.documents.document import Document
from app.api.documents.evaluation import evaluation_document
from app.api.plots.catalogue import drawn_or_why
from app.api.plots.look import Theme
from app.api.plots.registry import PLOTS, Given, Json, Needs, Run, Subject, as_answered
from app.api.report import HEADERS, Picture, picture_of, without_title, write_page
from app.api.v1.figures.sources import swept
from app.domain.errors import NoSamples, OutOfReach
from app.domain.inputs.kinds import KINDS
from app.services.processes.rendering import Picture as Form

# In the order of the page: of classes, of probabilities, and at other class shares.
_OF_SAMPLES: Final = ("roc", "pr", "calibration", "imcp")
# Curves that are called by their initials.
_BY_INITIALS: Final = frozenset({"roc", "pr", "det", "imcp", "mcp"})
# With more classes the matrix is no table any more.
_MOST_CELLS: Final = 60
_SCORED: Final = frozenset({"probabilities", "scores"})


async def evaluation_page(context: Context, identifier: UUID, theme: Theme | None = None) -> Response:
    """The report of an evaluation. It is made of the same answer as the JSON."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    pictures = await pictures_of_evaluation(context, identifier, answer)
    pictures += await _pictures_at_shares(context, answer, len(pictures))
    compute = context.services.compute
    return _page(await compute.run(partial(_written, evaluation_document, answer, pictures, theme)))


async def comparison_page(context: Context, identifier: UUID, theme: Theme | None = None) -> Response:
    """The report of a comparison."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    names = ["critical_difference" if "average_ranks" in answer else "differences"]
    pictures = await pictures_of(context, Subject.COMPARISON, names, Given(comparison=answer))
    compute = context.services.compute
    return _page(await compute.run(partial(_written, comparison_document, answer, pictures, theme)))


def _written(
    document: Callable[[Json], Document], answer: Json, pictures: Sequence[Picture], theme: Theme | None
) -> bytes:
    return write_page(document(answer), pictures, theme)


def _page(page: bytes) -> Response:
    return Response(page, media_type="text/html", headers={**HEADERS, "Vary": "Accept"})


async def pictures_of_evaluation(context: Context, identifier: UUID, answer: Json) -> list[Picture]:
    """The figures of a page about an evaluation: of classes, of probabilities, of what other kinds of input have."""
    given = answer["input"]
    names: list[str] = []
    source, without = None, list[Picture]()
    if given["kind"] in _SCORED or answer.get("probabilities"):
        try:
            source = await context.services.evaluations.with_curves(context.project, identifier)
            names += _OF_SAMPLES
        except NoSamples as error:
            without.append(Picture("curves", "Curves", (), "", reason=_sentence(error.detail)))
    units = KINDS[given["kind"]].units
    of_kind = None if units is None else units.figure
    if of_kind is not None and PLOTS[Subject.EVALUATION, of_kind].needs is Needs.UNITS:
        try:
            source = await context.services.evaluations.units(context.project, identifier)
        except NoSamples as error:
            without.append(Picture(of_kind, "One by one", (), "", reason=_sentence(error.detail)))
            of_kind = None
    if of_kind is not None:
        names.append(of_kind)
    found = Given(runs=[Run(of=answer, report=answer, source=source)])
    if given.get("confusion_matrix") is not None:
        if len(given["labels"]) > _MOST_CELLS:
            names.insert(0, "confusion")
        names.append("isocurves")
    return [*await pictures_of(context, Subject.EVALUATION, names, found), *without]


async def _pictures_at_shares(context: Context, answer: Json, first: int) -> list[Picture]:
    """The figure of other class shares, where an evaluation has classes."""
    if answer["input"].get("confusion_matrix") is None:
        return []
    try:
        found = await swept(context, Given(runs=[Run(of=answer, report=answer)]))
    except OutOfReach as error:
        return [Picture("prevalence", "At other class shares", (), "", reason=_sentence(error.detail))]
    return await pictures_of(context, Subject.EVALUATION, ["prevalence"], found, first)


def _sentence(detail: str) -> str:
    return f"{detail[0].upper()}{detail[1:]}."


def _title(name: str) -> str:
    """Of a figure that there is not: curves are called by their initials."""
    words = name.replace("_", " ")
    return f"{words.upper()} curve" if name in _BY_INITIALS else words.capitalize()


async def pictures_of(
    context: Context, subject: Subject, names: Sequence[str], given: Given, first: int = 0
) -> list[Picture]:
    """The figures, drawn where there is something that draws; those that there are not say why.

    Args:
        context: Of the request.
        subject: What the figures are of.
        names: Of the figures.
        given: What they are made of.
        first: Number of the first one in its page, so that no two parts of a page have one id.
    """
    specifications = await context.services.compute.run(partial(drawn_or_why, subject, names, given))
    renderer = context.services.renderer
    found = []
    for place, (name, one) in enumerate(zip(names, specifications, strict=True), first):
        if isinstance(one, str):
            found.append(Picture(name, _title(name), (), "", reason=_sentence(one)))
            continue
        svg = await renderer.picture(without_title(one), Form.SVG) if renderer.is_installed else None
        found.append(picture_of(name, one, svg, place))
    return found
