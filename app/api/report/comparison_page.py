"""What a page about a comparison says, read from its answer: who is better by what, then the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.api.report.numbers import decimals, shown_value, signed_interval, signed_value
from app.api.texts.comparison_text import (
    BETTER,
    EQUAL,
    OPEN,
    WORSE,
    chances,
    is_of_class,
    outcome,
    pairing_sentence,
    result_sentence,
)
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name, run_names
from app.domain.wording import chance, p_value, percent, whole
from app.domain.wording import names as listed_names

Json = Mapping[str, Any]
# Rows of a table that are not folded.
_MOST_ROWS: Final = 40
# Of each outcome: the colour, the sign and the word.
_WORDS: Final = {
    BETTER: ("pass", "better", "better"),
    WORSE: ("fail", "worse", "worse"),
    EQUAL: ("note", "same", "the same"),
    OPEN: ("inconclusive", "open", "not settled"),
}


def comparison_page(answer: Json) -> dict[str, Any]:
    """Everything that the template of runs, or of models across datasets, writes.

    Args:
        answer: A comparison as it is answered in JSON.
    """
    return _of_models(answer) if "average_ranks" in answer else _of_runs(answer)


def _of_runs(answer: Json) -> dict[str, Any]:
    runs, design = answer["evaluations"], answer["design"]
    names = run_names(runs)
    by_id = dict(zip((run["id"] for run in runs), names, strict=True))
    datasets = list(dict.fromkeys(dataset_name(run["dataset"]) for run in runs))
    pair = len(runs) == 2
    return {
        "title": " against ".join(names) if pair else f"{len(runs)} runs",
        "on": datasets[0] if len(datasets) == 1 else f"{len(datasets)} datasets",
        "id": answer["id"],
        "verdict": result_sentence(answer) if pair else "",
        "pair": f"{names[0]} less {names[1]}" if pair else "",
        "design": pairing_sentence(design),
        "level": percent(design["level"], None),
        "adjusted": design["multiplicity"]["method"],
        "runs": [
            {
                "id": run["id"],
                "name": name,
                "n": whole(run["n_samples"]),
                "baseline": run["id"] == answer.get("baseline"),
            }
            for name, run in zip(names, runs, strict=True)
        ],
        "values": folded([_values(key, metric, answer) for key, metric in answer["metrics"].items()]),
        "differences": folded(
            [row for key, metric in answer["metrics"].items() for row in _differences(key, metric, by_id)]
        ),
        "findings": [
            {"severity": one["severity"], "word": one["severity"].capitalize(), "head": shown(one["message"])}
            for one in answer.get("findings") or ()
        ],
        "disagreements": [shown(one["message"]) for one in answer["disagreements"][:6]],
        "notes": [shown(note[:1].upper() + note[1:]) for note in answer["notes"]],
    }


def folded(rows: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """As many rows as can be looked at, and the others: of single classes the largest differences are seen."""
    order = sorted(range(len(rows)), key=lambda place: (is_of_class(rows[place]["key"]), -rows[place].get("size", 0.0)))
    seen = set(order[:_MOST_ROWS])
    found: tuple[list[Json], list[Json]] = ([], [])
    for place, row in enumerate(rows):
        found[place not in seen].append(row)
    return found


def _values(key: str, metric: Json, answer: Json) -> dict[str, Any]:
    may = set(metric.get("may_be_best") or ())
    best = metric["best"]
    cells = []
    for run, value in zip(answer["evaluations"], metric["values"], strict=True):
        mark = "✓" if run["id"] == best else "≈" if run["id"] in may else ""
        cells.append({"value": shown_value(value), "mark": mark})
    known = [value for value in metric["values"] if value is not None]
    size = max(known, default=0.0) - min(known, default=0.0)
    return {"key": key, "size": size, "metric": shown(key), "lower": metric["better"] == "lower", "cells": cells}


def _differences(key: str, metric: Json, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for pair in metric["differences"]:
        style, icon, word = _WORDS[outcome(metric, pair)]
        digits = decimals(pair["low"], pair["high"])
        yield {
            "key": key,
            "size": abs(pair["difference"] or 0.0),
            "metric": shown(key),
            "lower": metric["better"] == "lower",
            "a": names[pair["a"]],
            "b": names[pair["b"]],
            "difference": signed_value(pair["difference"], digits),
            "interval": signed_interval(pair["low"], pair["high"]),
            "p": p_value(pair["p_adjusted"]),
            "chances": chances(pair),
            "style": style,
            "icon": icon,
            "word": word,
            "reason": shown(pair.get("reason") or ""),
        }


def _of_models(answer: Json) -> dict[str, Any]:
    names = [run_name(model) for model in answer["models"]]
    ranks: list[float] = answer["average_ranks"]
    order = sorted(range(len(names)), key=ranks.__getitem__)
    friedman = answer["friedman"]["p_value"]
    return {
        "title": f"{len(names)} models",
        "on": f"{len(answer['datasets'])} datasets, by {shown(answer['metric'])}",
        "id": answer["id"],
        "verdict": f"{names[order[0]]} has the best average rank, {shown_value(ranks[order[0]], 2)} over "
        f"{len(answer['datasets'])} datasets.",
        "friedman": p_value(friedman),
        "ranks": [
            {
                "name": names[place],
                "rank": shown_value(ranks[place], 2),
                "alike": _alike(answer["cliques"], place, names),
            }
            for place in order
        ],
        "pairwise": [
            {
                "a": names[pair["a"]],
                "b": names[pair["b"]],
                "difference": signed_value(pair["median_difference"]),
                "p": p_value(pair["wilcoxon"]["p_adjusted"]),
                "better": chance(pair["bayesian_signed_rank"]["mass"]["a_better"]),
                "same": chance(pair["bayesian_signed_rank"]["mass"]["equivalent"]),
                "worse": chance(pair["bayesian_signed_rank"]["mass"]["b_better"]),
            }
            for pair in answer["pairwise"]
        ],
        "adjusted": answer["design"]["multiplicity"]["method"],
        "notes": [shown(note[:1].upper() + note[1:]) for note in answer["notes"]],
    }


def _alike(cliques: Sequence[Sequence[int]], place: int, names: Sequence[str]) -> str:
    """The models that one cannot be told apart from, the first of many."""
    found = sorted({one for clique in cliques if place in clique for one in clique} - {place})
    return listed_names([names[one] for one in found]) if found else ""
