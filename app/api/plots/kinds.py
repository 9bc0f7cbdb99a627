"""Figures of clusterings, rankings and sets: the table of clusters and classes, and values of each query or item."""

from collections.abc import Sequence
from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import WIDE, Row, apart, data, listed, quantity, rate, sentences, side_by_side
from app.api.plots.matrices import (
    LEFT_OF_NAMES,
    WITH_SHARES,
    cell_size,
    coloured_by_share,
    ink_on_share,
    names_above,
    sparse_labels,
)
from app.api.plots.registry import Given, Json, Needs, figure
from app.domain.errors import NoFigure
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.sets import Sets
from app.domain.wording import name, number, share, whole
from app.services.decide.distributions import UnitSpread, unit_spreads

# Up to this many rows and columns a cell has its count in it.
_WITH_COUNTS: Final = 10
_LARGE_CELL: Final = 56
Table = Sequence[Sequence[float]]


@figure("contingency", needs=Needs.CLUSTERS)
def contingency(given: Given) -> Figure:
    """Classes by clusters: counts in each cell, colours by the share of the cluster."""
    given_input = given.run.report["input"]
    table: Table | None = given_input.get("contingency")
    if table is None:
        raise NoFigure(f"expected a clustering whose classes are known, got {given_input['kind']} without them")
    classes, clusters = apart(given_input["labels"]), apart([str(one) for one in given_input["clusters"]])
    sizes = [sum(column) for column in zip(*table, strict=True)]
    order = _by_leading_class(table, sizes)
    largest = max(len(classes), len(clusters))
    rows = [
        _row(classes[row], clusters[column], table[row][column], sizes[column])
        for row in range(len(classes))
        for column in order
    ]
    if largest > WITH_SHARES:
        # Empty cells are the ground.
        rows = [row for row in rows if row["count"]]
    look, step = given.look, cell_size(largest, _WITH_COUNTS, _LARGE_CELL)
    return Figure(
        title="Classes by clusters",
        subtitle=(
            given.heading,
            "samples; colours: share of the cluster. Clusters stand by the class they hold most of",
        ),
        text=sentences(
            f"{len(classes)} classes in rows, {len(clusters)} clusters in columns.",
            _least_pure(given_input, table, sizes),
            _never_leading(given_input, table, sizes),
        ),
        body={
            "data": data(rows),
            "width": look.width or {"step": step},
            "height": look.height or {"step": step},
            "view": {"fill": look.line, "fillOpacity": 1 / 3},
            "encoding": {
                "x": listed(
                    "cluster",
                    [clusters[one] for one in order],
                    title="Cluster",
                    **names_above(clusters, largest, _WITH_COUNTS),
                ),
                "y": listed("class", classes, title="Class", **LEFT_OF_NAMES, **sparse_labels(largest)),
            },
            "layer": _layers(look, largest),
        },
    )


def _by_leading_class(table: Table, sizes: Sequence[float]) -> list[int]:
    """Places of the clusters, those of one leading class together, the purest first; empty ones last."""

    def place(column: int) -> tuple[bool, int, float]:
        counts = [row[column] for row in table]
        leading = max(range(len(counts)), key=counts.__getitem__)
        return (not sizes[column], leading, -counts[leading] / (sizes[column] or 1.0))

    return sorted(range(len(sizes)), key=place)


def _row(label: str, cluster: str, count: float, size: float) -> Row:
    part = count / size if size else None
    return {
        "class": label,
        "cluster": cluster,
        "count": count,
        "share": part,
        "counted": whole(count),
        "percent": "" if part is None or part < 0.01 else f"{100 * part:.0f}",
    }


def _layers(look: Look, count: int) -> list[Spec]:
    stroke: Spec = {"stroke": look.paper, "strokeWidth": 1} if count <= WITH_SHARES else {"stroke": None}
    cells: Spec = {
        "mark": {"type": "rect", **stroke},
        "transform": [{"filter": "datum.count > 0"}],
        "encoding": {"color": coloured_by_share(look, "share of the cluster")},
    }
    if count > WITH_SHARES:
        return [cells]
    field = "counted" if count <= _WITH_COUNTS else "percent"
    text: Spec = {
        "mark": {"type": "text", "fontSize": 14 if count <= _WITH_COUNTS else 11},
        "encoding": {"text": {"field": field, "type": "nominal"}, "color": ink_on_share(look)},
    }
    return [cells, text]


def _least_pure(given_input: Json, table: Table, sizes: Sequence[float]) -> str:
    """The cluster that its leading class has the smallest share of."""
    held = [column for column, size in enumerate(sizes) if size]
    parts = {column: max(row[column] for row in table) / sizes[column] for column in held}
    worst = min(held, key=parts.__getitem__)
    leading = max(range(len(table)), key=lambda row: table[row][worst])
    return (
        f"The least pure cluster is {name(shown(str(given_input['clusters'][worst])))}: {share(parts[worst])} of its "
        f"{whole(sizes[worst])} samples are of {name(shown(given_input['labels'][leading]))}, its largest class."
    )


def _never_leading(given_input: Json, table: Table, sizes: Sequence[float]) -> str:
    """Classes of which no cluster holds more than of any other."""
    columns = [column for column, size in zip(zip(*table, strict=True), sizes, strict=True) if size]
    leading = {max(range(len(column)), key=column.__getitem__) for column in columns}
    without = [
        label for place, label in enumerate(given_input["labels"]) if place not in leading and sum(table[place]) > 0
    ]
    if not without:
        return ""
    named = ", ".join(name(shown(label)) for label in without[:5]) + (" and others" if without[5:] else "")
    return f"The largest class of no cluster: {named}."


_BINS: Final = 20
_HEIGHT: Final = 140


@figure("per_query", needs=Needs.UNITS)
def per_query(given: Given) -> Figure:
    """How nDCG is spread over the queries of a ranking, with its quartiles."""
    return _spread(given, Ranking.kind, "query", "queries")


@figure("per_item", needs=Needs.UNITS)
def per_item(given: Given) -> Figure:
    """How intersection over union and F1 are spread over the items of sets, with their quartiles."""
    return _spread(given, Sets.kind, "item", "items")


def _spread(given: Given, kind: str, one: str, many: str) -> Figure:
    source = given.run.samples
    if source.kind != kind:
        raise NoFigure(f"expected an evaluation of {kind}, whose {many} are looked at one by one, got {source.kind}")
    spreads = [spread for spread in unit_spreads(source, _BINS) if spread.known]
    if not spreads:
        raise NoFigure(f"expected {many} with a value, and none has one")
    return Figure(
        title=f"{' and '.join(spread.metric for spread in spreads)} of each {one}",
        subtitle=(given.heading, "line: median; shaded: the middle half"),
        text=sentences(*(_in_words(spread, many) for spread in spreads)),
        body=side_by_side([_panel(given.look, spread, many) for spread in spreads], below=True, spacing=16),
    )


def _in_words(spread: UnitSpread, many: str) -> str:
    lower, median, upper = spread.quartiles
    without = f" {whole(spread.without)} {many} have no value." if spread.without else ""
    return (
        f"{spread.metric} of {whole(spread.known)} {many}: the median is {number(median)}, the middle half lies "
        f"between {number(lower)} and {number(upper)}; it is 0 for {whole(spread.lowest)} and 1 for "
        f"{whole(spread.highest)} of them.{without}"
    )


def _panel(look: Look, spread: UnitSpread, many: str) -> Spec:
    rows: list[Row] = [
        {"from": start, "to": end, "count": count, "zero": 0}
        for start, end, count in zip(spread.edges, spread.edges[1:], spread.counts, strict=False)
        if count
    ]
    lower, median, upper = spread.quartiles
    x = rate("from", spread.metric)
    y = quantity("count", many, domain=(0.0, 1.05 * max(spread.counts)), tickCount=3, tickMinStep=1)
    return {
        "width": look.width or WIDE,
        "height": look.height or _HEIGHT,
        "layer": [
            {
                "name": "middle_half",
                "data": data([{"from": lower, "to": upper}]),
                "mark": {"type": "rect", "color": look.accent, "opacity": 0.12, "stroke": None},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {
                "name": "counts",
                "data": data(rows),
                "mark": {"type": "rect", "color": look.quiet, "stroke": look.paper, "strokeWidth": 0.5},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "zero"}},
            },
            {
                "name": "median",
                "data": data([{"from": median}]),
                "mark": {"type": "rule", "color": look.accent, "strokeWidth": 2},
                "encoding": {"x": x},
            },
        ],
    }
