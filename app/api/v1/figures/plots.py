"""Routes of figures: Vega-Lite specifications of evaluations, comparisons and checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Query
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.deps import Context, UseContext, routes
from app.api.documentation import NO_SAMPLES, NOT_INSTALLED, fixed_headers
from app.api.plots.catalogue import PlotList, drawn, names_of, plot_list
from app.api.plots.look import Look, Theme
from app.api.plots.registry import PLOTS, Given, Needs, Plot, Subject, as_answered
from app.api.problems import InvalidQuery
from app.api.v1.figures.sources import run_of, swept
from app.api.v1.requests.curves import MOST_OTHERS, identifiers_in
from app.api.v1.requests.fields import SOUGHT, GateName
from app.domain.errors import NoFigure
from app.services.processes.rendering import Picture

router = routes("plots")
_SMALLEST, _LARGEST = 40, 4000
# A picture that is opened by itself loads nothing and runs nothing.
_OF_PICTURES = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
_FIGURE: dict[int | str, dict[str, Any]] = {
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
    """What a figure is written in."""

    JSON = "json"
    SVG = "svg"
    PNG = "png"


def _look(
    theme: Annotated[Theme, Query(description="Colours for a light or a dark page.")] = Theme.LIGHT,
    width: Annotated[
        int | None, Query(ge=_SMALLEST, le=_LARGEST, description="Pixels of the drawing area, without its labels.")
    ] = None,
    height: Annotated[int | None, Query(ge=_SMALLEST, le=_LARGEST, description="The same for the height.")] = None,
) -> Look:
    return Look(theme, width, height)


AskedLook = Annotated[Look, Depends(_look)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which figure is asked for, of which class and with which other runs."""

    plot: Plot
    label: str | None
    others: Sequence[UUID]


def _figure_named(subject: Subject, name: str) -> Plot:
    """A figure of the registry.

    Raises:
        InvalidQuery: there is none of that name.
    """
    plot = PLOTS.get((subject, name))
    if plot is None:
        known = ", ".join(names_of(subject))
        raise InvalidQuery.at("name", "unknown_plot", f"there is no such figure; known are {known}")
    return plot


def _asked(name: str, label: str | None, others: str | None) -> _Asked:
    plot = _figure_named(Subject.EVALUATION, name)
    if label is not None and not plot.by_class:
        raise InvalidQuery.at("class", "not_for_this_plot", f"expected none for {plot.name}, which shows all classes")
    found = identifiers_in(others)
    if found and not plot.several:
        raise InvalidQuery.at("with", "not_for_this_plot", f"expected none for {plot.name}, which shows one run")
    return _Asked(plot, label, found)


@router.get("/plots", responses=answers(PlotList), operation_id="listPlots")
async def list_plots() -> Response:
    """List the figures: what each shows, and what it needs."""
    return json_response(plot_list())


@router.get(
    "/evaluations/{identifier}/plots/{name}.{form}",
    responses=_FIGURE | NO_SAMPLES | NOT_INSTALLED,
    operation_id="getEvaluationPlot",
)
async def get_evaluation_plot(
    identifier: UUID,
    name: Annotated[str, Path(max_length=64, json_schema_extra={"enum": names_of(Subject.EVALUATION)})],
    form: Form,
    context: UseContext,
    look: AskedLook,
    label: Annotated[
        str | None,
        Query(alias="class", max_length=256, description="The class, for figures that show one."),
        SOUGHT,
    ] = None,
    others: Annotated[
        str | None,
        Query(
            alias="with",
            max_length=500,
            description=f"Ids of up to {MOST_OTHERS} other evaluations, with commas between them, that are drawn too.",
        ),
    ] = None,
) -> Response:
    """Read a figure of an evaluation."""
    asked = _asked(name, label, others)
    runs = [await run_of(context, one, asked.plot.needs) for one in (identifier, *asked.others)]
    given = Given(look=look, label=asked.label, runs=runs)
    if asked.plot.needs is Needs.SWEEP:
        given = await swept(context, given)
    return await _answer(context, asked.plot, given, form)


@router.get(
    "/comparisons/{identifier}/plots/{name}.{form}",
    responses=_FIGURE | NOT_INSTALLED,
    operation_id="getComparisonPlot",
)
async def get_comparison_plot(
    identifier: UUID,
    name: Annotated[str, Path(max_length=64, json_schema_extra={"enum": names_of(Subject.COMPARISON)})],
    form: Form,
    context: UseContext,
    look: AskedLook,
) -> Response:
    """Read a figure of a comparison."""
    plot = _figure_named(Subject.COMPARISON, name)
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    if ("average_ranks" in answer) != (plot.needs is Needs.TOURNAMENT):
        raise NoFigure(f"{plot.name} is a figure of another kind of comparison: GET /v1/plots says of which")
    return await _answer(context, plot, Given(look=look, comparison=answer), form)


@router.get(
    "/gates/{gate}/checks/{identifier}/plots/{name}.{form}",
    responses=_FIGURE | NOT_INSTALLED,
    operation_id="getCheckPlot",
)
async def get_check_plot(
    gate: GateName,
    identifier: UUID,
    name: Annotated[str, Path(max_length=64, json_schema_extra={"enum": names_of(Subject.CHECK)})],
    form: Form,
    context: UseContext,
    look: AskedLook,
) -> Response:
    """Read a figure of a check by a gate."""
    plot = _figure_named(Subject.CHECK, name)
    answer = as_answered(await context.services.gates.read_check(context.project, gate, identifier))
    return await _answer(context, plot, Given(look=look, check=answer), form)


async def _answer(context: Context, plot: Plot, given: Given, form: Form) -> Response:
    """The figure. It is made where heavy arithmetic is made, and drawn where pictures are."""
    specification = await context.services.compute.run(partial(drawn, plot.of, plot.name, given))
    if form is Form.JSON:
        return Response(specification, media_type=_MEDIA[form])
    picture = await context.services.renderer.picture(specification, Picture(form.value))
    return Response(picture, media_type=_MEDIA[form], headers=_OF_PICTURES)


_MEDIA = {Form.JSON: "application/json", Form.SVG: "image/svg+xml", Form.PNG: "image/png"}
