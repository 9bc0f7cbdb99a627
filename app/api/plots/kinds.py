"""Figures of clusterings, rankings and sets: the table of clusters and classes, and values of each query or item."""

from collections.abc import Sequence
from typing import Final

from app.api.documents.document import Json
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import ROW_HEIGHT, apart, called, sentences
from app.api.plots.matrices import WITH_SHARES, cell, coloured_by_share, grid, ink_on_share
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.catalogue import spoken
from app.domain.errors import NoFigure
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.sets import Sets
from app.domain.wording import number, numbered, sentence, share, whole
from app.services.decide.distributions import UnitSpread, unit_spreads

# Up to this many rows and columns a cell has its count in it.
_WITH_COUNTS: Final = 10
_LARGE_CELL: Final = 56
Table = Sequence[Sequence[float]]


def _room(report: Json) -> int:
    given = report["input"]
    largest = max(len(given["labels"]), len(given.get("clusters") or ()))
    return 280 + (_LARGE_CELL if largest <= _WITH_COUNTS else ROW_HEIGHT) * len(given["labels"])


@figure("contingency", needs=Needs.CLUSTERS, room=_room, broad=True)
def contingency(given: FigureData) -> Figure:
    """Classes by clusters: counts in each cell, colours by the share of the cluster."""
    given_input = given.run.report["input"]
    table: Table | None = given_input.get("contingency")
    if table is None:
        names = (len(given_input["labels"]), len(given_input.get("clusters", ())))
        got = f"{names[0]} by {names[1]}" if all(names) else f"{given_input['kind']} without them"
        raise NoFigure(f"expected a clustering with known classes, and a table small enough to be seen, got {got}")
    classes, clusters = apart(given_input["labels"]), apart([str(one) for one in given_input["clusters"]])
    columns = [*zip(*table, strict=True)]
    sizes = [sum(column) for column in columns]
    # Clusters of one leading class together, the purest first; empty ones last.
    leading = [max(range(len(column)), key=column.__getitem__) for column in columns]
    parts = [max(column) / (size or 1.0) for column, size in zip(columns, sizes, strict=True)]
    order = sorted(range(len(sizes)), key=lambda column: (not sizes[column], leading[column], -parts[column]))
    largest = max(len(classes), len(clusters))
    rows = [
        {"class": classes[row], "cluster": clusters[column]} | cell(table[row][column], sizes[column])
        for row in range(len(classes))
        for column in order
    ]
    return Figure(
        title="Classes by clusters",
        subtitle=(
            given.heading,
            "samples; colours: share of the cluster. Clusters stand by the class they hold most of",
        ),
        text=sentences(
            f"{numbered(len(classes), 'classes')} in rows, {numbered(len(clusters), 'clusters')} in columns.",
            _least_pure(given_input, sizes, leading, parts),
        ),
        body=grid(
            given.look,
            rows,
            _layers(given.look, largest),
            ("class", "Class", classes),
            ("cluster", "Cluster", [clusters[one] for one in order]),
            large=(_WITH_COUNTS, _LARGE_CELL),
        ),
    )


def _layers(look: Look, count: int) -> list[Spec]:
    stroke: Spec = {"stroke": look.paper, "strokeWidth": 1} if count <= WITH_SHARES else {"stroke": None}
    colour = {"color": coloured_by_share(look, "share of the cluster")}
    cells = marks.layer("rect", encoding=colour, where="datum.count > 0", **stroke)
    if count > WITH_SHARES:
        return [cells]
    field, size = ("counted", 14) if count <= _WITH_COUNTS else ("percent", 11)
    return [cells, marks.texts(field, encoding={"color": ink_on_share(look)}, fontSize=size)]


def _least_pure(given_input: Json, sizes: Sequence[float], leading: Sequence[int], parts: Sequence[float]) -> str:
    """The cluster that its leading class has the smallest share of."""
    worst = min((column for column, size in enumerate(sizes) if size), key=parts.__getitem__)
    return (
        f"The least pure cluster is {called(str(given_input['clusters'][worst]))}: {share(parts[worst])} of its "
        f"{numbered(sizes[worst])} are of class {called(given_input['labels'][leading[worst]])}."
    )


_BINS: Final = 20
_HEIGHT: Final = 140


@figure("per_query", needs=Needs.UNITS, room=lambda _: 360)
def per_query(given: FigureData) -> Figure:
    """Distribution of nDCG over the queries of a ranking, with its quartiles."""
    return _spread(given, Ranking.kind, "query", "queries")


@figure("per_item", needs=Needs.UNITS)
def per_item(given: FigureData) -> Figure:
    """Distribution of intersection over union and F1 over the items of sets, with their quartiles."""
    return _spread(given, Sets.kind, "item", "items")


def _spread(given: FigureData, kind: str, one: str, many: str) -> Figure:
    source = given.run.samples
    if source.kind != kind:
        raise NoFigure(f"expected an evaluation of {kind}, whose {many} are looked at one by one, got {source.kind}")
    spreads = [spread for spread in unit_spreads(source, _BINS) if spread.known]
    if not spreads:
        raise NoFigure(f"expected {many} with a value, and none has one")
    return Figure(
        title=sentence(f"{' and '.join(_of_one(spread) for spread in spreads)} of each {one}"),
        subtitle=(given.heading, "line: median; shaded: the middle half"),
        text=sentences(*(_in_words(spread, many) for spread in spreads)),
        body=marks.side_by_side([_panel(given.look, spread, many) for spread in spreads], below=True, spacing=16),
    )


def _of_one(spread: UnitSpread) -> str:
    """Return what a metric is called for one query or item, of which it is no average yet."""
    return spoken(spread.metric).removesuffix(" averaged over samples")


def _in_words(spread: UnitSpread, many: str) -> str:
    lower, median, upper = spread.quartiles
    lacking = "has" if spread.without == 1 else "have"
    without = f" {numbered(spread.without, many)} {lacking} no value." if spread.without else ""
    none, all_ = (whole(one) if one else "none" for one in (spread.lowest, spread.highest))
    return (
        f"{sentence(_of_one(spread))} of {numbered(spread.known, many)}: the median is {number(median)}, the "
        f"middle half lies between {number(lower)} and {number(upper)}; it is 0 for {none} of them and 1 for {all_}."
        f"{without}"
    )


def _panel(look: Look, spread: UnitSpread, many: str) -> Spec:
    lower, median, upper = spread.quartiles
    x = marks.rate("from", sentence(_of_one(spread)))
    y = marks.quantity("count", many, domain=(0.0, 1.05 * max(spread.counts)), tickCount=3, tickMinStep=1)
    middle, half = [{"from": lower, "to": upper}], {**marks.span(x, "x", "from", "to"), **marks.FULL_HEIGHT}
    layers = [
        marks.shade(middle, half, look.accent, 0.12, name="middle_half"),
        marks.bars("counts", spread.edges, spread.counts, x, y, look.quiet, look),
        marks.layer("rule", [{"from": median}], {"x": x}, name="median", color=look.accent, strokeWidth=2),
    ]
    return marks.panel(look, (marks.BROAD[0], _HEIGHT), layers)
