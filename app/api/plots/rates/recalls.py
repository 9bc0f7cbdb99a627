"""What the recall of one class does to the means of all recalls, and to the accuracy at different class shares."""

from collections.abc import Mapping, Sequence
from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import DASHES, RATES, STROKES, Row, data, in_order, rate, sentences, side_by_side
from app.api.plots.rates.planes import MEANS
from app.api.plots.registry import Given, Json, Needs, Run, as_answered, class_of, figure, matrix_of, needs_classes
from app.domain.errors import NoFigure
from app.domain.named_metrics import ACCURACY, RANKED, RECALL
from app.domain.wording import name, number
from app.services.decide.h_mean_bounds import RecallSweep, Sweep, recalls_swept

_STEPS, _SIDE = 101, 230


@figure("recall_sweep", needs=Needs.REPORT, several=True, by_class=True)
def recall_sweep(given: Given) -> Figure:
    """Means of the recalls, and accuracy, if the recall of one class had any value and the others stayed."""
    run, look = given.run, given.look
    needs_classes(run.report)
    matrix_of(run)
    place = class_of(given, run)
    label = shown(run.report["input"]["labels"][place])
    swept = [_swept(one, class_of(given, one)) for one in given.runs]
    first, recall = as_answered(swept[0]), _recalls(run)[place]
    means = {told: first[key] for key, (told, _) in MEANS.items()}
    mixes = _mixes(given, swept) | {MEANS[RANKED][0]: first[RANKED]}
    legend = list(dict.fromkeys([*means, *mixes]))
    whose = "this run" if given.heading else given.names[0]
    panels = [
        _panel(look, title, _rows(lines, first["grid"]), [one for one in legend if one in lines], recall, label)
        for title, lines in (("means of the recalls", means), (ACCURACY, mixes))
    ]
    return Figure(
        title=f"If the recall of class {name(label)} were different",
        subtitle=(
            given.heading or f"means: of {given.names[0]}",
            f"all other recalls as they are; dashed: the recall of {whose}, {number(recall)}",
        ),
        text=sentences(
            f"At a recall of 0 of class {name(label)}, and at 1, with the other recalls as they are:",
            "; ".join(
                f"{told} {number(values[0])} and {number(values[-1])}" for told, values in (means | mixes).items()
            )
            + ".",
        ),
        body=side_by_side(panels, spacing=24),
    )


def _recalls(run: Run) -> list[float]:
    """The recall of every class.

    Raises:
        NoFigure: a class has none.
    """
    per_class, found = run.report["per_class"], []
    for label in run.report["input"]["labels"]:
        value = next((group[RECALL] for group in per_class[label].values() if RECALL in group), None)
        if value is None:
            raise NoFigure(f"class {name(shown(label))} has no recall, and so there are no means of the recalls")
        found.append(float(value))
    return found


def _swept(run: Run, place: int) -> RecallSweep:
    shares = [run.report["input"]["prevalence"][label] for label in run.report["input"]["labels"]]
    mixes = [shares, [1.0] * len(shares)]
    return recalls_swept(_recalls(run), [place], Sweep(start=0.0, end=1.0, steps=_STEPS, shares=mixes))


def _mixes(given: Given, swept: Sequence[RecallSweep]) -> dict[str, Sequence[float | None]]:
    """Accuracy of every run at its own class shares; of one alone also at equal shares."""
    found = [as_answered(one)[ACCURACY] for one in swept]
    if len(found) == 1:
        return {"accuracy, shares of this data": found[0][0], "accuracy, equal shares": found[0][1]}
    return {caption: one[0] for caption, one in zip(given.names, found, strict=True)}


def _rows(lines: Mapping[str, Sequence[float | None]], grid: Sequence[float]) -> list[Row]:
    return [
        {"line": told, "x": x, "y": y, "point": place}
        for told, values in lines.items()
        for place, (x, y) in enumerate(zip(grid, values, strict=True))
        if y is not None
    ]


def _panel(look: Look, title: str, rows: list[Row], names: Sequence[str], recall: float, label: str) -> Spec:
    colours = {told: look.series[place] for place, (told, _) in enumerate(MEANS.values())}
    spare = [one for one in look.series if one not in colours.values()]
    others = [told for told in names if told not in colours]
    colours |= {told: spare[place % len(spare)] for place, told in enumerate(others)}
    dashes = _DASHES | {told: DASHES[place // len(spare) % len(DASHES)] for place, told in enumerate(others)}
    x, y = rate("x", f"recall of class {label}", ticks=RATES), rate("y", None, ticks=RATES)
    legend: Json = {"title": None, "labelLimit": 220, "columns": 1, **STROKES}
    return {
        "title": {"text": title, "fontSize": 12, "fontWeight": 400, "anchor": "start"},
        "width": look.width or _SIDE,
        "height": look.height or _SIDE,
        "layer": [
            {
                "data": data([{"x": recall}]),
                "mark": {"type": "rule", "style": "reference"},
                "encoding": {"x": x},
            },
            {
                "name": "curves",
                "data": data(rows),
                "mark": {"type": "line", "strokeWidth": 1.75, "strokeCap": "butt"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "order": in_order(),
                    "color": {
                        "field": "line",
                        "type": "nominal",
                        "scale": {"domain": list(names), "range": [colours[told] for told in names]},
                        "legend": legend,
                    },
                    "strokeDash": {
                        "field": "line",
                        "type": "nominal",
                        "scale": {"domain": list(names), "range": [dashes[told] for told in names]},
                        "legend": legend,
                    },
                },
            },
        ],
    }


_DASHES: Final = dict(MEANS.values())
