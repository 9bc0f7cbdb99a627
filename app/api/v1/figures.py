"""Routes of figures and of reports: Vega-Lite specifications, pictures of them, and pages that have them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Path, Query
from starlette.responses import Response

from app.api.answers import answers, json_response, write_json
from app.api.deps import Context, UseContext, UseSlice, routes
from app.api.documentation import NO_SAMPLES, NOT_INSTALLED, fixed_headers
from app.api.documents.document import Json
from app.api.plots.catalogue import PlotList, drawn, names_of, plot_list
from app.api.plots.causes import falls_of_comparison, falls_of_history, falls_of_slices
from app.api.plots.look import Look, Theme
from app.api.plots.matrices import WITH_SHARES
from app.api.plots.rates import HIGHEST_SHARE, LOWEST_SHARE, STEPS, swept_metrics
from app.api.plots.registry import PLOTS, FigureData, Needs, PlotFacts, Run, Subject, as_answered, class_of, matrix_of
from app.api.presentation import COMPARISON, EVALUATION, AnswerKind, Media
from app.api.problems import InvalidPath, InvalidQuery, near
from app.api.report import HEADERS, Picture, inlined
from app.api.v1.requests.fields import SOUGHT, GateName
from app.api.v1.requests.questions import AskedOthers, identifiers_in
from app.domain.errors import CurveUndefined, Fault, InvalidInput, NeedsScores, NoFigure, NoSamples, OutOfReach
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import sentence
from app.services.processes.rendering import PictureFormat
from app.services.project.projection import Marked, Scenario, Sweep

# Enough for limits that are looked at: a sweep has them at every step.
_DRAWS: Final = 1000


async def run_of(context: Context, identifier: UUID, needs: Needs) -> Run:
    """Return a run with the data that the figure is made of."""
    evaluations = context.services.evaluations
    if needs in _SAMPLES:
        source = await _samples(context, identifier, needs)
        return Run(of=as_answered(await evaluations.names(context.project, identifier)), source=source)
    report = as_answered(await evaluations.read(context.project, identifier))
    return Run(of=report, report=report)


async def _samples(context: Context, identifier: UUID, needs: Needs) -> MatrixInput:
    evaluations = context.services.evaluations
    read = evaluations.with_curves if needs is Needs.SAMPLES else evaluations.units
    return await read(context.project, identifier)


async def swept(context: Context, given: FigureData) -> FigureData:
    """Add each run's metrics at other shares of the class.

    Raises:
        NoFigure: a run has no samples of the class, or no others.
    """
    for run in given.runs:
        matrix_of(run)
    label = given.run.report["input"]["labels"][class_of(given, given.run)]
    sweep = Sweep(label=label, start=LOWEST_SHARE, end=HIGHEST_SHARE, steps=STEPS, at=tuple(Marked))
    metrics, what_if = swept_metrics(len(given.runs)), context.services.what_if
    runs = []
    for run in given.runs:
        identifier = UUID(run.report["id"])
        scenario = Scenario(metrics=metrics, sweep=sweep, draws=_DRAWS)
        try:
            answer = await what_if.project(context.project, identifier, scenario, None)
        except InvalidInput as error:
            raise NoFigure(error.detail) from error
        runs.append(replace(run, sweep=as_answered(answer)))
    return replace(given, runs=runs)


# Pixels of height for why there are no figures of samples.
UNKEPT_ROOM: Final = 120
# In the order of the page: of classes, of probabilities, and at another class prevalence.
_OF_SAMPLES: Final = ("roc", "pr", "calibration", "imcp")
# Curves that are called by their initials.
_BY_INITIALS: Final = frozenset({"roc", "pr", "det", "imcp", "mcp"})
# Scores that are no probabilities state nothing that could come true.
_CURVES: Final = {"probabilities": _OF_SAMPLES, "scores": ("roc", "pr")}


async def evaluation_page(context: Context, identifier: UUID, theme: Theme | None = None) -> Response:
    """The report of an evaluation. It is made of the same answer as the JSON."""
    answer = await context.services.evaluations.read_shown(context.project, identifier, as_answered)
    pictures = await pictures_of_evaluation(context, identifier, answer)
    pictures += await _pictures_at_shares(context, answer, len(pictures))
    return await _page(context, EVALUATION, answer, pictures, theme)


async def comparison_page(context: Context, identifier: UUID, theme: Theme | None = None) -> Response:
    """The report of a comparison."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    pictures = await pictures_of_answer(context, Subject.COMPARISON, answer)
    return await _page(context, COMPARISON, answer, pictures, theme)


async def _page(
    context: Context, kind: AnswerKind, answer: Json, pictures: Sequence[Picture], theme: Theme | None
) -> Response:
    page = await context.services.compute.run(partial(kind.page, answer, pictures, theme))
    return Response(page, media_type="text/html", headers={**HEADERS, "Vary": "Accept"})


def figures_shown(subject: Subject, answer: Json) -> list[str]:
    """The figures of a page: of an evaluation those of classes, of probabilities, of what other kinds of input have."""
    match subject:
        case Subject.COMPARISON if "average_ranks" in answer:
            return ["critical_difference"]
        case Subject.COMPARISON:
            return ["differences", *["causes"] * bool(falls_of_comparison(answer))]
        case Subject.HISTORY:
            return ["history", *["causes"] * bool(falls_of_history(answer))]
        case Subject.SLICES:
            crossed = any(len(one["where"]) == 2 for one in answer["slices"])
            return [*["slices"] * crossed, *["causes"] * bool(falls_of_slices(answer))]
    given = answer["input"]
    units, of_classes = KINDS[given["kind"]].units, given.get("confusion_matrix") is not None
    return [
        *(("confusion", "confusions") if of_classes and len(given["labels"]) > WITH_SHARES else ()),
        *(_CURVES.get(given.get("fold_kind", given["kind"])) or (_OF_SAMPLES if answer.get("probabilities") else ())),
        # Clusters of points without classes have no table.
        *([units.figure] if units and units.figure and (given["labels"] or not given.get("clusters")) else []),
        *["isocurves"] * of_classes,
    ]


async def pictures_of_answer(context: Context, subject: Subject, answer: Json) -> list[Picture]:
    """The figures of a page about something else than an evaluation, drawn."""
    return await pictures_of(context, subject, figures_shown(subject, answer), FigureData(answer=answer))


async def pictures_of_evaluation(context: Context, identifier: UUID, answer: Json) -> list[Picture]:
    """The figures of a page about an evaluation, drawn; what samples are not kept for says so behind the others."""
    names = figures_shown(Subject.EVALUATION, answer)
    run, without = Run(of=answer, report=answer), list[Picture]()
    others = without_samples(names)
    if others != names:
        needs = next(PLOTS[Subject.EVALUATION, name].data for name in names if name not in others)
        try:
            run = replace(run, source=await _samples(context, identifier, needs))
        except NoSamples as error:
            names = others
            without.append(_missing("Of the samples", error.detail, UNKEPT_ROOM))
    return [*await pictures_of(context, Subject.EVALUATION, names, FigureData(runs=[run])), *without]


def without_samples(names: Sequence[str]) -> list[str]:
    """The figures of evaluations among these that are not made of samples, which not all evaluations keep."""
    return [name for name in names if PLOTS[Subject.EVALUATION, name].data not in _SAMPLES]


_SAMPLES: Final = (Needs.SAMPLES, Needs.UNITS)


async def _pictures_at_shares(context: Context, answer: Json, first: int) -> list[Picture]:
    """The figure of another class prevalence, where an evaluation has classes."""
    if answer["input"].get("confusion_matrix") is None:
        return []
    try:
        found = await swept(context, FigureData(runs=[Run(of=answer, report=answer)]))
    except (NoFigure, OutOfReach) as error:
        return [_missing("At another prevalence", error.detail)]
    return await pictures_of(context, Subject.EVALUATION, ["prevalence"], found, first)


def _missing(title: str, detail: str, room: int = 0) -> Picture:
    return Picture(title, reason=f"{sentence(detail)}.", room=room)


def _title(name: str) -> str:
    """Title of a missing figure; curves are called by their initials."""
    words = name.replace("_", " ")
    return f"{words.upper()} curve" if name in _BY_INITIALS else words.capitalize()


async def pictures_of(
    context: Context, subject: Subject, names: Sequence[str], given: FigureData, first: int = 0
) -> list[Picture]:
    """The figures, drawn where there is something that draws; those that there are not say why. The ``first`` one has
    this number in its page: no two parts of a page have one id.
    """
    found = await context.services.compute.run(partial(_specified, subject, names, given))
    renderer = context.services.renderer
    for place, one in enumerate(found):
        if one.specification and renderer.is_installed:
            svg = await renderer.picture(one.specification, PictureFormat.SVG)
            found[place] = replace(one, svg=inlined(svg.decode(), first + place))
    return found


def _specified(subject: Subject, names: Sequence[str], given: FigureData) -> list[Picture]:
    """The figures of a page as Vega-Lite, or why they are not. Whose they are the page says."""
    found = []
    for name in names:
        plot = PLOTS[subject, name]
        try:
            figure = plot.make(given)
        except (NoFigure, CurveUndefined, NeedsScores, NoSamples) as error:
            found.append(_missing(_title(name), error.detail))
            continue
        specification = figure.specification(given.look)
        del specification["title"]
        lines = [line for place, line in enumerate(figure.subtitle) if place or line != given.heading]
        room = plot.room(given.answer or given.run.report)
        found.append(Picture(figure.title, lines, figure.text, write_json(specification), room=room, broad=plot.broad))
    return found


router = routes("plots")
_SMALLEST, _LARGEST = 40, 4000
# A picture that is opened by itself loads nothing and runs nothing.
_OF_PICTURES = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
FIGURE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A Vega-Lite specification with its data inside, or a picture of it.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "image/svg+xml": {"schema": {"type": "string"}},
            "image/png": {"schema": {"type": "string", "format": "binary"}},
        },
        # Specifications have none of them.
        "headers": fixed_headers(_OF_PICTURES, required=False),
    }
}


class Form(StrEnum):
    """The formats of a figure."""

    JSON = "json"
    SVG = "svg"
    PNG = "png"


async def _look(
    theme: Annotated[Theme, Query(description="Colours for a light or a dark page.")] = Theme.LIGHT,
    width: Annotated[
        int | None, Query(ge=_SMALLEST, le=_LARGEST, description="Pixels of the drawing area, without its labels.")
    ] = None,
    height: Annotated[int | None, Query(ge=_SMALLEST, le=_LARGEST, description="The same for the height.")] = None,
) -> Look:
    return Look(theme, width, height)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure as an address asks for it."""

    plot: PlotFacts
    form: Form
    look: Look

    async def answer(self, context: Context, given: FigureData) -> Response:
        """The figure of this. It is made where heavy arithmetic is made, and drawn where pictures are."""
        plot, seen = self.plot, replace(given, look=self.look)
        specification = await context.services.compute.run(partial(drawn, plot.of, plot.name, seen))
        if self.form is Form.JSON:
            return Response(specification, media_type=_MEDIA[self.form])
        picture = await context.services.renderer.picture(specification, PictureFormat(self.form.value))
        return Response(picture, media_type=_MEDIA[self.form], headers=_OF_PICTURES)


_MEDIA = {Form.JSON: "application/json", Form.SVG: "image/svg+xml", Form.PNG: "image/png"}


def drawing_of(subject: Subject) -> Any:
    """Return the parameters of a figure of a subject, to stand in `Annotated`."""
    known = names_of(subject)

    async def asked(
        name: Annotated[str, Path(max_length=64, json_schema_extra={"enum": known})],
        form: Form,
        look: Annotated[Look, Depends(_look)],
    ) -> Drawing:
        plot = PLOTS.get((subject, name))
        if plot is None:
            detail = f"there is no such figure; known are {', '.join(known)}"
            raise InvalidPath([Fault("name", "unknown_name", detail, near(name, known))])
        return Drawing(plot, form, look)

    return Depends(asked)


@router.get("/plots", responses=answers(PlotList))
async def list_plots() -> Response:
    """List the figures: what each shows, and what it needs."""
    return json_response(plot_list())


@router.get("/evaluations/{identifier}/plots/{name}.{form}", responses=FIGURE | NO_SAMPLES | NOT_INSTALLED)
async def get_evaluation_plot(
    identifier: UUID,
    context: UseSlice,
    drawing: Annotated[Drawing, drawing_of(Subject.EVALUATION)],
    label: Annotated[
        str | None,
        Query(alias="class", max_length=256, description="The class, for figures that show one."),
        SOUGHT,
    ] = None,
    others: AskedOthers = None,
) -> Response:
    """Read a figure of an evaluation."""
    plot, named = drawing.plot, identifiers_in(others)
    if label is not None and "class" not in plot.parameters:
        raise InvalidQuery.at("class", "not_for_this_plot", f"expected none for {plot.name}, which shows all classes")
    if named and "with" not in plot.parameters:
        raise InvalidQuery.at("with", "not_for_this_plot", f"expected none for {plot.name}, which shows one run")
    given = FigureData(label=label, runs=[await run_of(context, one, plot.data) for one in (identifier, *named)])
    return await drawing.answer(context, await swept(context, given) if plot.data is Needs.SWEEP else given)


@router.get("/comparisons/{identifier}/plots/{name}.{form}", responses=FIGURE | NOT_INSTALLED)
async def get_comparison_plot(
    identifier: UUID, context: UseContext, drawing: Annotated[Drawing, drawing_of(Subject.COMPARISON)]
) -> Response:
    """Read a figure of a comparison."""
    answer, plot = as_answered(await context.services.comparisons.read(context.project, identifier)), drawing.plot
    if ("average_ranks" in answer) != (plot.data is Needs.TOURNAMENT):
        raise NoFigure(f"{plot.name} is a figure of another kind of comparison: GET /v1/plots says of which")
    return await drawing.answer(context, FigureData(answer=answer))


@router.get("/gates/{gate}/checks/{identifier}/plots/{name}.{form}", responses=FIGURE | NOT_INSTALLED)
async def get_check_plot(
    gate: GateName, identifier: UUID, context: UseContext, drawing: Annotated[Drawing, drawing_of(Subject.CHECK)]
) -> Response:
    """Read a figure of a check by a gate."""
    answer = as_answered(await context.services.gates.read_check(context.project, gate, identifier))
    return await drawing.answer(context, FigureData(answer=answer))


_REPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One page of HTML, its styles and pictures inside.",
        "content": {Media.PAGE.value: {"schema": {"type": "string"}}},
        "headers": fixed_headers(HEADERS),
    }
}
AskedTheme = Annotated[Theme | None, Query(description="Colours; those of the reader's system when left out.")]


@router.get("/evaluations/{identifier}/report", responses=_REPORT)
async def get_evaluation_report(identifier: UUID, context: UseSlice, theme: AskedTheme = None) -> Response:
    """Read an evaluation as a page: findings, metrics with limits, classes, figures. It loads nothing."""
    return await evaluation_page(context, identifier, theme)


@router.get("/comparisons/{identifier}/report", responses=_REPORT)
async def get_comparison_report(identifier: UUID, context: UseContext, theme: AskedTheme = None) -> Response:
    """Read a comparison as a page: who is better by what, values, differences, a figure. It loads nothing."""
    return await comparison_page(context, identifier, theme)
