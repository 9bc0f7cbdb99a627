"""Confusion matrices, readable whatever the number of classes, and the largest mistakes."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from app.api.documents.reading import Mistake, mistakes_of
from app.api.plots import marks
from app.api.plots.look import BREAKS, Figure, Look, Spec
from app.api.plots.marks import ROW_HEIGHT, Row, apart, called, clauses, sentences
from app.api.plots.registry import FigureData, Needs, Run, figure, matrix_of
from app.domain.errors import NoFigure
from app.domain.wording import percent, share, whole

# Up to this many classes a cell has its count and its share, and up to that many a share.
WITH_COUNTS: Final = 7
WITH_SHARES: Final = 60
# Of more classes only those with the lowest recalls are drawn.
_WEAKEST: Final = 30
_LARGE_CELL, _CELL, _LARGEST = 64, 23, 900
_SHORT = 10
_MOST_MISTAKES = 20
# Text is in ink up to this share, and in the colour of the paper from there on.
_DARK_FROM: Final = BREAKS[3]


@figure("confusion", needs=Needs.REPORT, room=lambda _: 1040, broad=True)
def confusion(given: FigureData) -> Figure:
    """The confusion matrix: counts in each cell, colours by the share of the actual class; from 61 classes on of the 30
    with the lowest recalls.
    """
    return _matrix(given, shares=False)


@figure("confusion_shares", needs=Needs.REPORT)
def confusion_shares(given: FigureData) -> Figure:
    """The confusion matrix with each row as shares of its class, the recalls on the diagonal."""
    return _matrix(given, shares=True)


@figure("confusions", needs=Needs.REPORT, room=lambda _: 580, broad=True)
def confusions(given: FigureData) -> Figure:
    """The mistakes that take the largest shares of their class."""
    run = given.run
    found = _mistakes(run)[:_MOST_MISTAKES]
    labels = apart(run.report["input"]["labels"])
    if not found:
        raise NoFigure("there are no mistakes to be shown: every sample has the class that was predicted")
    rows: list[Row] = [
        {
            "mistake": f"{labels[one.actual]} taken for {labels[one.predicted]}",
            "actual": labels[one.actual],
            "predicted": labels[one.predicted],
            "count": one.cases,
            "of": one.of,
            "share": one.cases / one.of,
            "said": _counted(one),
        }
        for one in found
    ]
    length = marks.rate("share", None, format="~%")
    return Figure(
        title="Mistakes that take the largest shares of their class",
        subtitle=(run.title, "share of the actual class"),
        text=sentences(_first(run), f"{len(rows)} mistakes are shown." if len(rows) > 1 else "One mistake is shown."),
        body=marks.panel(
            given.look,
            (240, {"step": ROW_HEIGHT}),
            [
                marks.layer("bar", encoding={"x": length}, color=given.look.steps(right=False)[4]),
                marks.texts("said", encoding={"x": marks.field("share")}, align="left", dx=6),
            ],
            data=marks.data(rows),
            encoding={"y": marks.listed("mistake", [row["mistake"] for row in rows])},
        ),
    )


def _matrix(given: FigureData, *, shares: bool) -> Figure:
    run = given.run
    matrix = matrix_of(run)
    labels = apart(run.report["input"]["labels"])
    n, title = len(labels), "Confusion matrix"
    if n > WITH_SHARES:
        names, columns, rows = _of_the_weakest(labels, matrix)
        title, seen = f"Confusion matrix of the {len(names)} classes with the lowest recalls", f"Of {n} classes the "
        seen += f"{len(names)} with the lowest recalls"
        said = f"of {n}, the lowest first; share of the row in per cent"
    else:
        order = list(range(n)) if n <= WITH_COUNTS else beside_each_other(matrix)
        names = columns = [labels[place] for place in order]
        rows = [_row(labels, matrix, actual, predicted) for actual in order for predicted in order]
        seen, said = f"Confusion matrix of {n} classes", "Samples, and their share of the row"
        if n > WITH_COUNTS:
            kind = "Share of the row in per cent" + ("" if shares else "; the counts are in the data")
            said = clauses(kind, "classes that are confused with each other stand together")
        elif shares:
            said = "Shares of the row"
    look, count = given.look, len(columns)
    cells = grid(
        look,
        rows,
        [*_cells(look, count), *_texts(look, count, shares=shares)],
        ("actual", "Actual", names),
        ("predicted", "Predicted", columns),
        large=(WITH_COUNTS, _LARGE_CELL),
    )
    return Figure(
        title=title,
        subtitle=(run.title, said),
        text=sentences(f"{seen}, rows actual, columns predicted.", _right(run), _first(run)),
        body={**cells, "resolve": {"scale": {"color": "independent"}}},
    )


def _of_the_weakest(labels: Sequence[str], matrix: Sequence[Sequence[float]]) -> tuple[list[str], list[str], list[Row]]:
    """The classes with the lowest recalls, the lowest first, columns in which all others are one, and the cells."""
    totals = [sum(row) for row in matrix]
    present = [place for place, total in enumerate(totals) if total]
    order = sorted(present, key=lambda place: matrix[place][place] / totals[place])[:_WEAKEST]
    names = [labels[place] for place in order]
    columns = [*names, *apart([*labels, "any other class"])[len(labels) :]]
    small = [[*(matrix[a][b] for b in order), totals[a] - sum(matrix[a][b] for b in order)] for a in order]
    # Empty cells are the ground, and so most of the matrix.
    cells = [_row(columns, small, a, b) for a in range(len(order)) for b in range(len(columns)) if small[a][b]]
    return names, columns, cells


# A field, what it is called, and its values in order.
Side = tuple[str, str, Sequence[str]]


def grid(
    look: Look, rows: Sequence[Row], layers: Sequence[Spec], upright: Side, across: Side, *, large: tuple[int, int]
) -> Spec:
    """Return a table of cells, readable whatever their number.

    Args:
        look: Of the figure.
        rows: A cell each, with its ``count``.
        layers: Cells and texts.
        upright: The rows of the table.
        across: Its columns.
        large: Up to how many rows and columns cells have room for counts, and the pixels of such a cell.
    """
    (y, beside, left), (x, above, top), (most_large, step) = upright, across, large
    count = max(len(left), len(top))
    if count > most_large:
        step = _CELL if count <= WITH_SHARES else max(_LARGEST // count, 4)
    # Short names lie above large cells, all others stand.
    lie = count <= most_large and max(map(len, top)) < _SHORT
    sparse: Spec = {}
    if count > WITH_SHARES:
        # Only some names fit. Empty cells are the ground: tens of thousands of them would be most of the file.
        sparse = {"labelOverlap": "greedy", "labelFontSize": 9, "labelSeparation": 1}
        rows = [row for row in rows if row["count"]]
    # Titles end before the names begin: beside those that stand there is room in the corner.
    aside: Spec = {"titleX": -12, "titleY": -12, "titleAlign": "right"}
    corner: Spec = {} if lie else {**aside, "titleY": -28, "titleAngle": 0}
    return marks.panel(
        look,
        ({"step": step}, {"step": step}),
        layers,
        data=marks.data(rows),
        view={"fill": look.line, "fillOpacity": 1 / 3},
        encoding={
            "x": marks.listed(x, top, title=above, orient="top", labelAngle=0 if lie else -90, **corner, **sparse),
            "y": marks.listed(y, left, title=beside, **aside, **sparse),
        },
    )


def coloured_by_share(look: Look, title: str, *, right: bool = True, **legend: Any) -> Spec:
    """Colours of cells by their share, with a legend."""
    return {
        "field": "share",
        "type": "quantitative",
        "scale": {"type": "threshold", "domain": list(BREAKS), "range": look.steps(right=right)},
        "legend": {
            "title": title,
            "format": "~%",
            "orient": "bottom",
            "direction": "horizontal",
            "gradientLength": 240,
            "gradientThickness": 10,
            **legend,
        },
    }


def ink_on_share(look: Look) -> Spec:
    """Colour of a text in a cell that is coloured by its share."""
    return {"condition": {"test": f"datum.share >= {_DARK_FROM}", "value": look.paper}, "value": look.ink}


def _row(labels: Sequence[str], matrix: Sequence[Sequence[float]], actual: int, predicted: int) -> Row:
    sides = {"actual": labels[actual], "predicted": labels[predicted], "right": actual == predicted}
    return sides | cell(matrix[actual][predicted], sum(matrix[actual]))


def cell(count: float, of: float) -> Row:
    """A count with its share of so many, as a cell of `grid` has them."""
    part = count / of if of else None
    said = "" if part is None else in_percent(part)
    return {"count": count, "share": part, "percent": said, "counted": whole(count)}


def in_percent(part: float) -> str:
    """Return a share without its sign for a small cell; nothing below one in a hundred."""
    if part < 0.01:
        return ""
    return "99" if 0.99 < part < 1.0 else percent(part, 0).removesuffix(" %")


def _cells(look: Look, count: int) -> Iterator[Spec]:
    stroke: Spec = {"stroke": look.paper, "strokeWidth": 2 if count <= WITH_COUNTS else 1}
    yield marks.layer("rect", where="datum.count === 0", color=f"{look.line}55", **stroke)
    for right, told, of in ((True, "right", "datum.right"), (False, "mistaken", "!datum.right")):
        colour = coloured_by_share(look, f"{told}, share of the row", right=right, titleLimit=300)
        yield marks.layer("rect", encoding={"color": colour}, where=f"datum.count > 0 && {of}", **stroke)


def _texts(look: Look, count: int, *, shares: bool) -> Iterator[Spec]:
    colour = {"color": ink_on_share(look)}
    if count > WITH_COUNTS:
        yield marks.texts("percent", encoding=colour, fontSize=11)
    elif shares:
        text: Spec = {"field": "share", "type": "quantitative", "format": ".3f"}
        yield marks.layer("text", encoding={"text": text, **colour}, fontSize=15)
    else:
        yield marks.texts("counted", encoding=colour, fontSize=16, fontWeight=600, dy=-7)
        part = marks.texts("part", encoding=colour, where="datum.count > 0", fontSize=12, dy=12)
        part["transform"].append({"calculate": "format(datum.share, '.1~%')", "as": "part"})
        yield part


def _mistakes(run: Run) -> list[Mistake]:
    """Return them by their share of their class, the largest first."""
    return sorted(mistakes_of(matrix_of(run)), key=lambda one: -one.cases / one.of)


def _counted(mistake: Mistake) -> str:
    return f"{whole(mistake.cases)} of {whole(mistake.of)} ({share(mistake.cases / mistake.of)})"


def _right(run: Run) -> str:
    matrix = matrix_of(run)
    right, everything = sum(matrix[place][place] for place in range(len(matrix))), sum(map(sum, matrix))
    if run.report["input"].get("content") == "rates" or not everything:
        return ""
    return f"{whole(right)} of {whole(everything)} are right ({share(right / everything)})."


def _first(run: Run) -> str:
    """The mistake that takes the largest share of its class, in words."""
    found = _mistakes(run)
    if not found:
        return "Nothing was mistaken."
    labels = run.report["input"]["labels"]
    worst = found[0]
    return (
        f"The largest share of a class that is mistaken: {called(labels[worst.actual])} taken for "
        f"{called(labels[worst.predicted])}, {_counted(worst)}."
    )


def beside_each_other(matrix: Sequence[Sequence[float]]) -> list[int]:
    """Places of the classes in an order in which those that are confused stand together.

    A chain that begins with the two that are confused most, and goes on at either end with the class that is confused
    most with what stands there; classes that are confused with none of the chain begin one of their own.
    """
    counts = np.asarray(matrix, float)
    totals = counts.sum(axis=1, keepdims=True)
    parts = counts / np.where(totals, totals, 1.0)
    bond = parts + parts.T
    np.fill_diagonal(bond, 0.0)
    left, order, chain = list(range(len(counts))), list[int](), list[int]()
    while left:
        # The first row and the first column that are largest: the tail comes before the head, and small places do.
        ends = [chain[-1], chain[0]] if chain else left
        of, to = np.unravel_index(bond[np.ix_(ends, left)].argmax(), (len(ends), len(left)))
        one, other = ends[of], left[to]
        if bond[one, other]:
            chain = [one, other] if not chain else [other, *chain] if of else [*chain, other]
            left = [place for place in left if place not in chain]
        elif chain:
            order, chain = order + chain, []
        else:
            return order + left
    return order + chain
