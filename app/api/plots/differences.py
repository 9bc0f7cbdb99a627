"""Comparisons: differences with limits and the band of practical equivalence, and ranks over datasets."""

from collections.abc import Mapping, Sequence
from typing import Final

from app.api.documents.comparison import (
    BETTER,
    EQUAL,
    LITTLE_BETTER,
    LITTLE_WORSE,
    OPEN,
    WORSE,
    best_ranked,
    in_order,
    is_of_class,
    most_telling,
    names_by_id,
    outcome,
    turned,
)
from app.api.documents.document import Json
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import ROW_HEIGHT, Row, apart, sentences
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.catalogue import titled
from app.domain.errors import NoFigure
from app.domain.wording import PLAIN, number, percent, printable, run_name, run_names
from app.domain.wording import names as listed_names

_MOST_ROWS: Final = 80
_PAIR: Final = 2
# As many are read out.
_MOST_TOLD: Final = 12
# What is said of a pair, the theme's colour of it, and a shape of its own.
_OUTCOMES: Final = {
    BETTER: ("pass", "triangle-right"),
    WORSE: ("fail", "triangle-left"),
    LITTLE_BETTER: ("inconclusive", "triangle-right"),
    LITTLE_WORSE: ("inconclusive", "triangle-left"),
    EQUAL: ("pass", "diamond"),
    OPEN: ("inconclusive", "circle"),
}


def _room(answer: Json) -> int:
    metrics, pairs = len(answer["metrics"]), len(_pairs(answer))
    return 180 + min(_MOST_ROWS, metrics * pairs) * (ROW_HEIGHT + 4) + 40 * (pairs - 1)


@figure("differences", needs=Needs.COMPARISON, room=_room, broad=True)
def differences(given: FigureData) -> Figure:
    """A forest plot: the difference of each metric with its limits, and the band of practical equivalence. Of more than
    two runs it has those to the baseline, or to the best by the first metric with a value.
    """
    answer = given.answer
    names = names_by_id(answer, apart(run_names(answer["evaluations"])))
    pairs = _pairs(answer)
    every = [row for a, b in pairs for row in _rows(answer, names, a, b)]
    kept, _ = most_telling([(row["of_class"], row["at"]) for row in every], _MOST_ROWS)
    rows = [every[place] for place in kept]
    if not rows:
        raise NoFigure("there are no differences to be shown: no metric has a value for two of the runs")
    design = answer["design"]
    headers = [f"{names[a]} less {names[b]}" for a, b in pairs]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    single = len(pairs) == 1
    layers = _forest(given.look, rows, metrics, design["rope"], data_inside=single)
    body = marks.panel(given.look, (330, {"step": ROW_HEIGHT + 4}), layers)
    if not single:
        header = {"title": None, "labelAlign": "left", "labelAnchor": "start", "labelOrient": "top", "labelLimit": 500}
        row = {"field": "pair", "type": "nominal", "sort": headers, "header": header}
        body = {"data": marks.data(rows), "facet": {"row": row}, "spec": body, "spacing": 12}
    paired = "paired" if design["paired"] else "not paired"
    to = f"{'the baseline' if answer.get('baseline_id') else 'the best'}, {names[pairs[0][1]]}"
    title = f"{headers[0]}: differences" if single else f"Differences to {to}"
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


def _pairs(answer: Json) -> list[tuple[str, str]]:
    """Return the pairs that are drawn: two runs as they were given; of more each one and the baseline, or the best by
    the first metric with a value, in the order of the runs by that.
    """
    runs = [run["id"] for run in answer["evaluations"]]
    if len(runs) == _PAIR:
        return [(runs[0], runs[1])]
    first = next((one for one in answer["metrics"].values() if any(one["ranks"])), {"ranks": [None] * len(runs)})
    order = [runs[place] for place in in_order(first)]
    reference = answer.get("baseline_id") or order[0]
    return [(run, reference) for run in order if run != reference]


def _rows(answer: Json, names: Mapping[str, str], a: str, b: str) -> list[Row]:
    rows = []
    for key, metric in answer["metrics"].items():
        called = printable(titled(key))
        for one in metric["differences"]:
            if {one["a"], one["b"]} != {a, b} or one["difference"] is None:
                continue
            # Right is better whatever the metric, so that what is better low is turned round.
            mirrored = metric["better"] == "lower"
            pair, drawn = turned(one, a), turned(one, b if mirrored else a)
            rows.append(
                {
                    "pair": f"{names[a]} less {names[b]}",
                    "metric": f"{called} (lower is better)" if mirrored else called,
                    "of_class": is_of_class(key),
                    "difference": pair["difference"],
                    "low": pair["low"],
                    "high": pair["high"],
                    "at": drawn["difference"],
                    "from": drawn["low"],
                    "to": drawn["high"],
                    "p_adjusted": pair["p_adjusted"],
                    "outcome": outcome(pair),
                    # With the minus that the axis has.
                    "said": PLAIN.said(pair["difference"], pair["low"], pair["high"], sign=True).replace("-", "\u2212"),
                }
            )
    return rows


def _told(rows: Sequence[Row]) -> str:
    """The first rows in words, each pair named once."""
    found: dict[str, list[str]] = {}
    for row in rows[:_MOST_TOLD]:
        said = PLAIN.said(row["difference"], row["low"], row["high"], sign=True)
        found.setdefault(row["pair"], []).append(f"{row['metric']} {row['outcome'].lower()}, {said}")
    told = [f"{pair}: {'; '.join(parts)}." for pair, parts in found.items()]
    left = len(rows) - _MOST_TOLD
    return sentences(*told, f"{left} more differences are drawn." if left > 0 else "")


def _forest(look: Look, rows: Sequence[Row], metrics: Sequence[str], rope: float, *, data_inside: bool) -> list[Spec]:
    # In facets all layers share the rows that are divided.
    inside = rows if data_inside else None
    ends = [value for row in rows for value in (row["from"], row["to"], row["at"]) if value is not None]
    most = max([abs(one) for one in ends] + [1.5 * rope]) * 1.05 or 1.0
    x = marks.quantity("at", None, domain=(-most, most), labelExpr=_SIGNED, tickCount=5, grid=True)
    y = {"y": marks.listed("metric", metrics)}
    names = [name for name in _OUTCOMES if any(row["outcome"] == name for row in rows)]
    colour, shape = (
        {**marks.named("outcome", names, shown_as), "sort": names, "legend": {"title": None, "orient": "bottom"}}
        for shown_as in ([look.verdict(_OUTCOMES[name][0]) for name in names], [_OUTCOMES[name][1] for name in names])
    )
    same, zero = [{"low": -rope, "high": rope}], {"x": {**x, "field": "zero"}, **marks.FULL_HEIGHT}
    limits = {**marks.span(x, "x", "from", "to"), **y, "color": colour}
    beside = {"x": {"value": "width"}, **y}
    return [
        marks.shade(same, {**marks.span(x, "x", "low", "high"), **marks.FULL_HEIGHT}, look.quiet, 0.16),
        marks.layer("rule", [{"zero": 0}], zero, color=look.ink, strokeWidth=1),
        marks.layer("rule", inside, limits, where="isValid(datum.from)", strokeWidth=2.5),
        marks.dots(inside, {"x": x, **y, "color": colour, "shape": shape}, size=90, opacity=1),
        marks.texts("said", inside, beside, align="left", dx=12, style="note"),
    ]


_SIGNED: Final = "datum.value === 0 ? '0' : format(datum.value, '+~g')"


@figure("critical_difference", needs=Needs.TOURNAMENT)
def critical_difference(given: FigureData) -> Figure:
    """Average ranks of models over datasets, with bars over those that the critical difference does not tell apart."""
    answer = given.answer
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
    domain = (1, max(len(names), 2))
    x = marks.quantity("rank", "average rank, 1 is best", domain=domain, orient="top", tickMinStep=1, grid=True)
    y = {"y": {**marks.field("row"), "axis": None, "scale": {"domain": [len(names) + 0.5, -lanes - 0.5]}}}
    critical = nemenyi["critical_difference"]
    at = {"x": x, **y}
    bar: Spec = {"strokeWidth": 5, "color": look.ink, "strokeCap": "round"}
    layers = [
        marks.layer("rule", joined, {**marks.span(x, "x", "low", "high"), **y}, **bar),
        marks.layer("rule", rows, {**at, "y2": {"datum": -lanes - 0.5}}, color=look.quiet),
        marks.layer("point", rows, at, style="stays"),
        # The lines of the models below pass behind the names.
        *marks.with_halo(marks.texts("said", rows, at, align="left", dx=10, style="label"), look),
    ]
    return Figure(
        title=f"Average ranks by {printable(answer['metric'])}",
        subtitle=(
            f"over {len(answer['datasets'])} datasets; bars join models whose ranks differ by less than the critical "
            f"difference, {number(critical)}",
        ),
        text=sentences(
            f"{best_ranked(names, ranks)}, {number(ranks[order[0]])} over {len(answer['datasets'])} datasets"
            + (f", and {names[order[-1]]} the worst, {number(ranks[order[-1]])}." if max(ranks) > min(ranks) else "."),
            f"The critical difference is {number(critical)}.",
            *(f"Not told apart: {listed_names([names[one] for one in clique])}." for clique in bars[:6]),
        ),
        body=marks.panel(look, (420, 20 * (len(names) + lanes) + 20), layers),
    )
