"""Comparisons: differences with limits and the band of practical equivalence, and ranks over datasets."""

from collections.abc import Mapping, Sequence
from typing import Final

from app.api.documents.comparison import BETTER, EQUAL, OPEN, WORSE, is_of_class, outcome
from app.api.documents.reading import run_name, run_names, shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import NUMBERS, ROW_HEIGHT, Row, apart, data, listed, sentences, with_halo
from app.api.plots.registry import Given, Json, Needs, figure
from app.domain.errors import NoFigure
from app.domain.wording import PLAIN, number, percent
from app.domain.wording import names as listed_names

_MOST_ROWS: Final = 80
# As many are read out.
_MOST_TOLD: Final = 12
# What is said of a pair, the theme's colour of it, and a shape of its own.
_OUTCOMES: Final = {
    BETTER: ("pass", "triangle-right"),
    WORSE: ("fail", "triangle-left"),
    EQUAL: ("pass", "diamond"),
    OPEN: ("inconclusive", "circle"),
}


@figure("differences", needs=Needs.COMPARISON)
def differences(given: Given) -> Figure:
    """A forest plot: the difference of each metric with its limits, and the band of practical equivalence."""
    answer = given.comparison
    names = dict(
        zip((run["id"] for run in answer["evaluations"]), apart(run_names(answer["evaluations"])), strict=True)
    )
    pairs = _pairs(answer)
    every = [row for a, b in pairs for row in _rows(answer, names, a, b)]
    rows = _most_telling(every)
    if not rows:
        raise NoFigure("there are no differences to be shown: no metric has a value for two of the runs")
    design = answer["design"]
    headers = [f"{names[a]} less {names[b]}" for a, b in pairs]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    single = len(pairs) == 1
    look = given.look
    panel: Spec = {
        "width": look.width or 330,
        "height": look.height or {"step": ROW_HEIGHT + 4},
        "layer": _forest(look, rows, metrics, design["rope"], data_inside=single),
    }
    paired = "paired" if design["paired"] else "not paired"
    body: Spec = panel
    if not single:
        header = {"title": None, "labelAlign": "left", "labelAnchor": "start", "labelOrient": "top", "labelLimit": 500}
        row = {"field": "pair", "type": "nominal", "sort": headers, "header": header}
        body = {"data": data(rows), "facet": {"row": row}, "spec": panel, "spacing": 12}
    title = f"{headers[0]}: differences" if single else "Differences between the runs"
    return Figure(
        title=title,
        subtitle=(
            f"right of 0 the first is better; {percent(design['level'], None)} limits; {paired}",
            f"shaded: a difference of at most {design['rope']:g}, which is too small to matter",
            *([f"{len(rows)} of {len(every):,}: of single classes the largest differences"] if rows != every else []),
        ),
        text=_told(rows),
        body=body,
    )


def _most_telling(rows: Sequence[Row]) -> list[Row]:
    """As many rows as can be looked at, in their order: what is of all classes first, then the largest differences."""
    ranked = sorted(range(len(rows)), key=lambda place: (rows[place]["of_class"], -abs(rows[place]["at"])))
    return [rows[place] for place in sorted(ranked[:_MOST_ROWS])]


def _pairs(answer: Json) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for metric in answer["metrics"].values():
        for pair in metric["differences"]:
            found[pair["a"], pair["b"]] = None
    return list(found)


def _rows(answer: Json, names: Mapping[str, str], a: str, b: str) -> list[Row]:
    rows = []
    for key, metric in answer["metrics"].items():
        for pair in metric["differences"]:
            if (pair["a"], pair["b"]) != (a, b) or pair["difference"] is None:
                continue
            # Right is better whatever the metric, so that what is better low is turned round.
            turned = metric["better"] == "lower"
            low, high = (pair["high"], pair["low"]) if turned else (pair["low"], pair["high"])
            rows.append(
                {
                    "pair": f"{names[a]} less {names[b]}",
                    "metric": f"{shown(key)} (lower is better)" if turned else shown(key),
                    "of_class": is_of_class(key),
                    "difference": pair["difference"],
                    "low": pair["low"],
                    "high": pair["high"],
                    "at": _sign(pair["difference"], turned=turned),
                    "from": _sign(low, turned=turned),
                    "to": _sign(high, turned=turned),
                    "p_adjusted": pair["p_adjusted"],
                    "outcome": outcome(metric, pair),
                    # With the minus that the axis has.
                    "said": PLAIN.said(pair["difference"], pair["low"], pair["high"], sign=True).replace("-", "\u2212"),
                }
            )
    return rows


def _sign(value: float | None, *, turned: bool) -> float | None:
    return None if value is None else -value if turned else value


def _told(rows: Sequence[Row]) -> str:
    """The first rows in words, each pair named once."""
    found: dict[str, list[str]] = {}
    for row in rows[:_MOST_TOLD]:
        found.setdefault(row["pair"], []).append(_in_words(row))
    told = [f"{pair}: {'; '.join(parts)}." for pair, parts in found.items()]
    left = len(rows) - _MOST_TOLD
    return sentences(*told, f"{left} more differences are drawn." if left > 0 else "")


def _in_words(row: Row) -> str:
    said = {BETTER: "better", WORSE: "worse", EQUAL: "the same", OPEN: "not settled"}[row["outcome"]]
    return f"{row['metric']} {said}, {PLAIN.said(row['difference'], row['low'], row['high'], sign=True)}"


def _forest(look: Look, rows: Sequence[Row], metrics: Sequence[str], rope: float, *, data_inside: bool) -> list[Spec]:
    # In facets all layers share the rows that are divided.
    inside: Spec = {"data": data(rows)} if data_inside else {}
    y = listed("metric", metrics)
    ends = [value for row in rows for value in (row["from"], row["to"], row["at"]) if value is not None]
    most = max([abs(one) for one in ends] + [1.5 * rope]) * 1.05 or 1.0
    x: Spec = {
        "type": "quantitative",
        "scale": {"domain": [-most, most], "nice": False},
        "axis": {"title": None, "labelExpr": _SIGNED, "tickCount": 5, "grid": True},
    }
    names = [name for name in _OUTCOMES if any(row["outcome"] == name for row in rows)]
    colours = [look.verdict(_OUTCOMES[name][0]) for name in names]
    shapes = [_OUTCOMES[name][1] for name in names]
    told = {"field": "outcome", "type": "nominal", "sort": names}
    legend = {"title": None, "orient": "bottom"}
    colour = {**told, "scale": {"domain": names, "range": colours}, "legend": legend}
    shape = {**told, "scale": {"domain": names, "range": shapes}, "legend": legend}
    return [
        {
            "data": data([{"low": -rope, "high": rope}]),
            "mark": {"type": "rect", "color": look.quiet, "opacity": 0.16, "stroke": None},
            "encoding": {
                "x": {"field": "low", **x},
                "x2": {"field": "high"},
                "y": {"value": 0},
                "y2": {"value": "height"},
            },
        },
        {
            "data": data([{"zero": 0}]),
            "mark": {"type": "rule", "color": look.ink, "strokeWidth": 1},
            "encoding": {"x": {"field": "zero", **x}, "y": {"value": 0}, "y2": {"value": "height"}},
        },
        {
            **inside,
            "transform": [{"filter": "isValid(datum.from)"}],
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}, "y": y, "color": colour},
        },
        {
            **inside,
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {"x": {"field": "at", **x}, "y": y, "color": colour, "shape": shape},
        },
        {
            **inside,
            "mark": {"type": "text", "align": "left", "dx": 12, "style": "note"},
            "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "said", "type": "nominal"}},
        },
    ]


_SIGNED: Final = "datum.value === 0 ? '0' : format(datum.value, '+~g')"


@figure("critical_difference", needs=Needs.TOURNAMENT)
def critical_difference(given: Given) -> Figure:
    """Average ranks of models over datasets, with bars over those that the critical difference does not tell apart."""
    answer = given.comparison
    names = apart([run_name(model) for model in answer["models"]])
    ranks: list[float] = answer["average_ranks"]
    order = sorted(range(len(names)), key=ranks.__getitem__)
    nemenyi = answer["nemenyi"]
    bars = [clique for clique in nemenyi["cliques"] if len(clique) > 1]
    rows = [
        {"model": names[one], "rank": ranks[one], "row": place, "said": f"{names[one]}  {number(ranks[one])}"}
        for place, one in enumerate(order, start=1)
    ]
    look, lanes = given.look, len(bars)
    joined = [
        {"low": min(ranks[one] for one in clique), "high": max(ranks[one] for one in clique), "row": -lane}
        for lane, clique in enumerate(bars)
    ]
    x: Spec = {
        "type": "quantitative",
        "scale": {"domain": [1, max(len(names), 2)], "nice": False},
        "axis": {
            "title": "average rank, 1 is best",
            "orient": "top",
            "tickMinStep": 1,
            "format": NUMBERS,
            "grid": True,
        },
    }
    y: Spec = {"type": "quantitative", "axis": None, "scale": {"domain": [len(names) + 0.5, -lanes - 0.5]}}
    critical = nemenyi["critical_difference"]
    # The lines of the models below pass behind the names.
    named: Spec = {
        "data": data(rows),
        "mark": {"type": "text", "align": "left", "dx": 10, "style": "label"},
        "encoding": {
            "x": {"field": "rank", **x},
            "y": {"field": "row", **y},
            "text": {"field": "said", "type": "nominal"},
        },
    }
    return Figure(
        title=f"Average ranks by {shown(answer['metric'])}",
        subtitle=(
            f"over {len(answer['datasets'])} datasets; bars join models whose ranks differ by less than the critical "
            f"difference, {number(critical)}",
        ),
        text=sentences(
            f"{names[order[0]]} has the best average rank, {number(ranks[order[0]])} over {len(answer['datasets'])} "
            f"datasets, and {names[order[-1]]} the worst, {number(ranks[order[-1]])}.",
            f"The critical difference is {number(critical)}.",
            *(f"Not told apart: {listed_names([names[one] for one in clique])}." for clique in bars[:6]),
        ),
        body={
            "width": look.width or 420,
            "height": look.height or 20 * (len(names) + lanes) + 20,
            "layer": [
                {
                    "data": data(joined),
                    "mark": {"type": "rule", "strokeWidth": 5, "color": look.ink, "strokeCap": "round"},
                    "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "y": {"field": "row", **y}},
                },
                {
                    "data": data(rows),
                    "mark": {"type": "rule", "color": look.quiet},
                    "encoding": {
                        "x": {"field": "rank", **x},
                        "y": {"field": "row", **y},
                        "y2": {"datum": -lanes - 0.5},
                    },
                },
                {
                    "data": data(rows),
                    "mark": {"type": "point", "style": "stays"},
                    "encoding": {"x": {"field": "rank", **x}, "y": {"field": "row", **y}},
                },
                *with_halo(named, look),
            ],
        },
    )
