"""Comparisons as texts: what is better, worse, the same or not settled, and then the numbers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.api.texts.lines import Style, columns_of, left, limits, opposite, right, shortened, shown, signed, wrapped
from app.api.texts.names import dataset_name, run_name, run_names
from app.domain.wording import MOST_NAMED, chance, number, percent

# How likely a difference within the region of equivalence has to be for runs to be called the same.
SAME = 0.95
_MOST_METRICS, _MOST_RUNS, _MOST_SAID = 30, 10, 4
BETTER, WORSE, EQUAL, OPEN = "Better", "Worse", "The same", "Not settled"


def comparison_text(answer: Mapping[str, Any], style: Style) -> str:
    """A comparison of runs, or of models across datasets.

    Args:
        answer: A comparison as it is answered in JSON.
        style: Width and characters.
    """
    if "average_ranks" in answer:
        lines = _of_models(answer, style)
    elif len(answer["evaluations"]) == _PAIR:
        lines = _of_two(answer, style)
    else:
        lines = _of_several(answer, style)
    lines += wrapped("MORE", f"/v1/comparisons/{answer['id']} (json, csv)", style.width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


_PAIR = 2


def outcome(metric: Mapping[str, Any], pair: Mapping[str, Any]) -> str:
    """What the first run of a pair is beside the second: better or worse where the interval leaves no other sign, the
    same where a difference too small to matter is nearly sure.
    """
    low, high = pair["low"], pair["high"]
    if (pair["probability_equivalent"] or 0.0) >= SAME:
        return EQUAL
    if low is None or high is None or metric["better"] not in ("higher", "lower") or low <= 0.0 <= high:
        return OPEN
    return BETTER if (low > 0.0) == (metric["better"] == "higher") else WORSE


def is_of_class(key: str) -> bool:
    """Is it a metric of one class, as its value is named?"""
    return _OF_CLASS.match(key) is not None


_OF_CLASS = re.compile(r"\w+(\([^()]*\))?@")


def outcomes(answer: Mapping[str, Any]) -> dict[str, list[str]]:
    """The metrics of two runs by what is said of them."""
    found: dict[str, list[str]] = {BETTER: [], WORSE: [], EQUAL: [], OPEN: []}
    for name, metric in answer["metrics"].items():
        found[outcome(metric, metric["differences"][0])].append(name)
    return found


def result_sentence(answer: Mapping[str, Any], name: Callable[[str], str] = shown) -> str:
    """What two runs differ in, in a sentence or four; ``name`` writes the metrics."""
    found = outcomes(answer)
    said = "The metrics disagree. " if found[BETTER] and found[WORSE] else ""
    return said + " ".join(f"{word}: {_listed([*map(name, names)])}." for word, names in found.items() if names)


def _listed(names: Sequence[str]) -> str:
    """The first of many metrics, and how many more there are: the rows say which."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def pairing_sentence(design: Mapping[str, Any]) -> str:
    """How the runs were held side by side."""
    paired = "Paired" if design["paired"] else "Not paired"
    return f'{paired}: {shown(design["reason"])}. "Same" means a difference of at most {design["rope"]:g}.'


def _of_two(answer: Mapping[str, Any], style: Style) -> list[str]:
    runs, design = answer["evaluations"], answer["design"]
    names = run_names(runs)
    role = " (baseline)" if answer.get("baseline") == runs[1]["id"] else ""
    title = f"{names[0]} against {names[1]}{role} on {dataset_name(runs[0]['dataset'])}"
    lines = opposite(title, f"{percent(design['level'], None)} intervals", style.width)
    lines += wrapped("", pairing_sentence(design), style.width, 0)
    lines += [*wrapped("RESULT", result_sentence(answer), style.width), ""]
    metrics = list(answer["metrics"].items())
    kept = metrics[:_MOST_METRICS]
    rows = [_row(metric) for _, metric in kept]
    widths = [max(6, *(len(cell) for cell in column)) for column in zip(*rows, strict=True)]
    first = min(max(columns_of(shown(name)) for name, _ in kept) + 4, style.width - sum(widths) - 2 * len(widths))
    heads = [*shortened(_short_names(runs), 6), "change", "interval", "better", "same", "worse"]
    lines.append(left("", first) + _cells(heads, widths))
    for (name, _), row in zip(kept, rows, strict=True):
        named = f"  {shown(name)}"
        if columns_of(named) >= first:
            lines.append(named)
            named = ""
        lines.append(left(named, first) + _cells(row, widths))
    if len(metrics) > _MOST_METRICS:
        lines.append(f'  {len(metrics) - _MOST_METRICS} more: in "metrics"')
    return [*lines, *_said(answer, style)]


def chances(pair: Mapping[str, Any]) -> list[str]:
    """How likely it is that the first run of a pair is better, the same, or worse."""
    better, same = pair["probability_a_better"], pair["probability_equivalent"]
    worse = None if better is None or same is None else max(0.0, 1.0 - better - same)
    return [chance(one) for one in (better, same, worse)]


def _row(metric: Mapping[str, Any]) -> list[str]:
    """Both values, the difference with its interval, and how likely each outcome is."""
    pair = metric["differences"][0]
    return [
        *(number(value) for value in metric["values"]),
        signed(pair["difference"]),
        limits(pair["low"], pair["high"], sign=True),
        *chances(pair),
    ]


def _cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells to the right, the interval to the left."""
    return "".join(
        "  " + (left if place == _INTERVAL else right)(cell, width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )


_INTERVAL = 3


def _short_names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Versions of models, or their names where versions do not tell them apart."""
    models = [run["model"] for run in runs]
    found = [shown(model.get("version") or model["name"]) for model in models]
    return found if len(set(found)) == len(found) else [shown(model["name"]) for model in models]


def _of_several(answer: Mapping[str, Any], style: Style) -> list[str]:
    runs, design = answer["evaluations"], answer["design"]
    names = run_names(runs)
    datasets = {dataset_name(run["dataset"]) for run in runs}
    title = f"{len(runs)} runs on {datasets.pop() if len(datasets) == 1 else f'{len(datasets)} datasets'}"
    lines = opposite(title, f"{percent(design['level'], None)} intervals", style.width)
    lines += [*wrapped("", pairing_sentence(design), style.width, 0), ""]
    wide = min(max(columns_of(name) for name in names), style.width - 60)
    short = dict(zip((run["id"] for run in runs), shortened(names, max(wide, 12)), strict=True))
    wide = max(columns_of(name) for name in short.values())
    metrics = list(answer["metrics"].items())
    for name, metric in metrics[: max(_MOST_METRICS // (len(runs) + 1), 1)]:
        better = f", {metric['better']} is better" if metric["better"] in ("higher", "lower") else ""
        lines.append(f"{shown(name)}{better}")
        lines.append(f"  rank  {left('run', wide)}    value  best with  less than the first")
        lines += _ranked(answer, metric, short, wide)
    rest = len(metrics) - max(_MOST_METRICS // (len(runs) + 1), 1)
    if rest > 0:
        lines.append(f'  {rest} more: in "metrics"')
    return [*lines, *_said(answer, style)]


def _ranked(answer: Mapping[str, Any], metric: Mapping[str, Any], short: Mapping[str, str], wide: int) -> Iterable[str]:
    runs = [run["id"] for run in answer["evaluations"]]
    order = sorted(range(len(runs)), key=lambda place: metric["ranks"][place] or len(runs) + 1)
    first = runs[order[0]]
    differences = {frozenset((pair["a"], pair["b"])): pair for pair in metric["differences"]}
    for place in order[:_MOST_RUNS]:
        rank, likely = metric["ranks"][place], metric.get("probability_best")
        pair = differences.get(frozenset((first, runs[place])))
        said = "" if pair is None else _to_first(pair, runs[place])
        ranked, value = right("-" if rank is None else str(rank), 4), right(number(metric["values"][place]), 7)
        best = right(chance(likely[place] if likely else None), 9)
        yield f"  {ranked}  {left(short[runs[place]], wide)}  {value}  {best}  {said}"
    if len(runs) > _MOST_RUNS:
        yield f"        {len(runs) - _MOST_RUNS} more"


def _to_first(pair: Mapping[str, Any], run: str) -> str:
    """The difference of a run to the first: its sign turns with the order that the pair has."""
    value, low, high = pair["difference"], pair["low"], pair["high"]
    if pair["a"] != run and value is not None:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    return f"{signed(value)}  {limits(low, high, sign=True)}"


def _said(answer: Mapping[str, Any], style: Style) -> list[str]:
    lines: list[str] = []
    for one in (answer.get("findings") or ())[:_MOST_SAID]:
        lines += wrapped(one["severity"].upper(), shown(one["message"]), style.width)
    if len(answer["evaluations"]) > _PAIR:
        for disagreement in answer["disagreements"][:_MOST_SAID]:
            lines += wrapped("NOTE", shown(disagreement["message"]), style.width)
    for note in answer["notes"][:_MOST_SAID]:
        lines += wrapped("NOTE", shown(note[:1].upper() + note[1:]), style.width)
    return lines


def _of_models(answer: Mapping[str, Any], style: Style) -> list[str]:
    models = [run_name(model) for model in answer["models"]]
    title = f"{len(models)} models on {len(answer['datasets'])} datasets by {shown(answer['metric'])}"
    lines = opposite(title, f"{answer['better']} is better", style.width)
    friedman = answer["friedman"]
    if friedman["p_value"] is not None:
        said = f"Friedman's test of equal ranks: p = {number(friedman['p_value'])}."
        lines += wrapped("", said, style.width, 0)
    short = shortened(models, style.width - 30)
    wide = max(columns_of(name) for name in short)
    lines += ["", f"  {left('model', wide)}  average rank  cannot be told apart from"]
    for place in sorted(range(len(models)), key=answer["average_ranks"].__getitem__):
        alike = sorted({other for clique in answer["cliques"] if place in clique for other in clique} - {place})
        names = ", ".join(short[other] for other in alike) or "-"
        lines.append(f"  {left(short[place], wide)}  {right(number(answer['average_ranks'][place]), 12)}  {names}")
    for note in answer["notes"][:_MOST_SAID]:
        lines += wrapped("NOTE", shown(note[:1].upper() + note[1:]), style.width)
    return lines
