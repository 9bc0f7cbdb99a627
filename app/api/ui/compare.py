"""The page that compares two to six runs without keeping the answer: a row for each metric, a mark for each run."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from math import floor
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import UseContext
from app.api.documents.comparison import (
    best_said,
    comparison_document,
    disagreements,
    may_be_as_good,
    other_way_round,
    turned,
)
from app.api.documents.document import Json, Table, fitting
from app.api.documents.reading import class_word, ends_of, in_names, naming, overall, recalls_of
from app.api.plots.registry import as_answered
from app.api.problems import InvalidQuery
from app.api.report import table_view
from app.api.ui.web import Web, page_routes, respond, write
from app.domain.catalogue import titled
from app.domain.expressions.syntax import write_label
from app.domain.inputs.kinds import KINDS, task_of
from app.domain.named_metrics import COMPARED, EACH_RECALL, RANKED, RECALL
from app.domain.wording import PAGE, dataset_name, percent, printable, run_names, sentence, whole
from app.services.compare.comparisons import NewComparison

router = page_routes()
# Of a list p is adjusted over all its classes, however few are shown.
_OF_CLASSES: Final = (*COMPARED, EACH_RECALL)
# Runs that have a shape each.
MOST_RUNS: Final = 6
_PAIR: Final = 2
# Classes whose recalls are compared, those whose cases are listed in the open, and remarks on metrics that disagree.
_CLASSES, _LISTED, _DISAGREEMENTS = 6, 12, 3
_SIGNS: Final = {
    "better": ("↑", "better"),
    "worse": ("↓", "worse"),
    "same": ("=", "practically the same"),
    "undecided": ("?", "cannot tell"),
}
# Pixels of a run in a strip.
_LANE: Final = 9


@router.get("/compare")
async def show_compared(
    request: Request,
    context: UseContext,
    run: Annotated[list[UUID], Query(default_factory=list)],
) -> Response:
    """Compare two to six runs; nothing is saved."""
    if not _PAIR <= len(run) <= MOST_RUNS:
        detail = f"expected {_PAIR} to {MOST_RUNS}, got {len(run) or 'none'}: tick them in the list of runs"
        raise InvalidQuery.at("run", "wrong_length", detail)
    reports: Any = as_answered(await context.services.evaluations.read_matrices(context.project, run))
    of_classes = _of_classes(reports)
    new = NewComparison(
        evaluations=tuple(run),
        metrics=_OF_CLASSES if of_classes else (),
        # Tests of counts are not shown.
        paired_tests=False,
    )
    answer = as_answered(await context.services.comparisons.computed(context.project, new))
    written = partial(_Compared(answer, reports, of_classes).written, Web.of(request, "comparisons"))
    return respond(await context.services.compute.run(written))


def _of_classes(reports: Sequence[Json]) -> dict[str, str]:
    """Return the recalls that are shown of runs of the same classes, with their labels: the lowest of any run."""
    labels = reports[0]["input"].get("labels")
    if any(one["input"].get("confusion_matrix") is None or one["input"]["labels"] != labels for one in reports):
        return {}
    lowest: dict[str, float] = {}
    for report in reports:
        for label, value in recalls_of(report).items():
            if value is not None:
                lowest[label] = min(lowest.get(label, 1.0), value)
    weakest = sorted(lowest, key=lowest.__getitem__)[:_CLASSES]
    return {f"{RECALL}@{write_label(label)}": label for label in weakest}


class _Compared:
    """A comparison with its runs in the order of the first metric, the best first."""

    def __init__(self, answer: Json, reports: Sequence[Json], of_classes: dict[str, str]) -> None:
        self._answer, self._of_classes = answer, of_classes
        # What runs of the kind are ranked by comes first.
        units = KINDS[reports[0]["input"]["kind"]].units
        ranked = [RANKED] if units is None else [one.key for one in units.ranked]
        shown = (*COMPARED, *of_classes) if of_classes else answer["metrics"]
        keys = sorted(shown, key=lambda key: key.partition("(")[0] not in ranked[:1])
        self._metrics: dict[str, Json] = {key: answer["metrics"][key] for key in keys}
        self._first = keys[0]
        ranks = self._metrics[self._first]["ranks"]
        self._order = sorted(range(len(reports)), key=lambda place: ranks[place] or len(reports) + 1)
        called = run_names(answer["evaluations"])
        self._names = [called[place] for place in self._order]
        self._ids = [str(answer["evaluations"][place]["id"]) for place in self._order]
        self._reports = [reports[place] for place in self._order]
        self._pairs = [*combinations(range(len(reports)), 2)]
        self._task = task_of(reports[0]["input"]["kind"], reports[0]["input"])
        lowest = min((one for key in self._metrics for drawn in self._drawn(key) for one in drawn), default=0.0)
        self._start = min(0.9, floor(10 * lowest) / 10)

    def written(self, web: Web) -> bytes:
        """Return the page."""
        answer, design, pair = self._answer, self._answer["design"], len(self._order) == _PAIR
        datasets = list(dict.fromkeys(dataset_name(one["dataset"], version=True) for one in self._reports))
        said = [*(answer.get("findings") or ()), *disagreements(answer)[:_DISAGREEMENTS]]
        axis = sorted({self._start, round((self._start + 1.0) / 2, 2), 1.0})
        verdicts = [self._difference(key, *each)["verdict"] for key in self._metrics for each in self._pairs]
        rows = {key: self._row(key) for key in self._metrics}
        groups = [("", [*rows.values()])]
        if self._of_classes:
            # By what prevalence does to them.
            kinds = (("stays", False), ("moves", True))
            groups = [(name, [row for key, row in rows.items() if self._moves(key) is kind]) for name, kind in kinds]
        page = {
            "title": f"{self._names[0]} against {self._names[1]}" if pair else f"{len(self._order)} runs",
            "on": f"on {datasets[0]}" if len(datasets) == 1 else f"on {len(datasets)} datasets",
            "say": best_said(answer, self._first, self._task),
            "notes": [in_names(naming(one["message"], answer["metrics"])) for one in said],
            "runs": list(zip(self._names, self._ids, strict=True)),
            "best": self._may_be_best(self._first),
            "pairs": [
                {
                    "marks": each,
                    "said": " against ".join(self._names[place] for place in each),
                    "ids": [self._ids[place] for place in each],
                }
                for each in self._pairs
            ],
            "groups": groups,
            "axis": [{"at": self._at(one), "said": f"{one:g}"} for one in axis],
            "height": _LANE * len(self._order) + _LANE,
            "level": percent(design["level"], None).replace(" ", "\u00a0"),
            "signs": [(*sign, verdicts.count(verdict)) for verdict, sign in _SIGNS.items()],
            "classes": self._classes(),
            "metrics": _OF_CLASSES if self._of_classes else (),
            "full": self._in_full(web) if pair else None,
            "design": f"{'Paired' if design['paired'] else 'Not paired'}: {printable(design['reason'])}.",
            "rope": f"{design['rope']:g}",
            "method": f"{sentence(design['multiplicity']['method'])}: {design['multiplicity']['family']}",
            "remarks": [in_names(naming(sentence(one), answer["metrics"])) for one in answer["notes"]],
        }
        return write("compare.html", web, page=page)

    # --- one metric

    def _values(self, key: str) -> list[float | None]:
        values = self._metrics[key]["values"]
        return [values[place] for place in self._order]

    def _may_be_best(self, key: str) -> list[int]:
        metric = self._metrics[key]
        found = {str(metric["best"]), *may_be_as_good(metric)}
        return [place for place, one in enumerate(self._ids) if one in found]

    def _difference(self, key: str, a: int, b: int) -> Json:
        """Return the difference of one run to another, in the order of the page."""
        first, second = self._ids[a], self._ids[b]
        one = next(each for each in self._metrics[key]["differences"] if {each["a"], each["b"]} == {first, second})
        return turned(one, first)

    def _limits(self, key: str, place: int) -> tuple[float | None, float | None]:
        """Return the interval of a run in its own report; none where it was compared at another class prevalence."""
        value, report = self._values(key)[place], self._reports[place]
        own = recalls_of(report).get(self._of_classes[key]) if key in self._of_classes else overall(report).get(key)
        same = value is not None and own is not None and abs(value - own) < _SAME
        return ends_of(report, key) if same else (None, None)

    def _drawn(self, key: str) -> list[tuple[float, ...]]:
        """Return value and limits of each run as far as there are any; nothing of a metric that leaves 0 to 1."""
        found = [
            tuple(one for one in (value, *self._limits(key, place)) if one is not None)
            for place, value in enumerate(self._values(key))
        ]
        return found if all(0.0 <= one <= 1.0 for each in found for one in each) else []

    def _moves(self, key: str) -> bool:
        return key not in self._of_classes and key not in self._reports[0]["metrics"]["prevalence_insensitive"]

    # --- the table

    def _row(self, key: str) -> dict[str, Any]:
        values, ranks = self._values(key), self._metrics[key]["ranks"]
        best = next((place for place, at in enumerate(self._order) if ranks[at] == 1), None)
        said = [
            f"{name} {PAGE.said(value, *self._limits(key, place))}"
            for place, (name, value) in enumerate(zip(self._names, values, strict=True))
        ]
        return {
            "name": titled(key, self._task),
            "lower": self._metrics[key]["better"] == "lower",
            "best": best,
            "value": PAGE.absent if best is None else PAGE.value(values[best]),
            "alike": [place for place in self._may_be_best(key) if place != best],
            "equal": self._at_equal_shares(key),
            "lanes": [
                {"mark": place, "at": self._at(one[0]), "ends": [*map(self._at, one[1:])], "y": _LANE * (place + 1)}
                for place, one in enumerate(self._drawn(key))
                if one
            ],
            "said": "; ".join(said),
            "verdicts": [_SIGNS[self._difference(key, *pair)["verdict"]] for pair in self._pairs],
        }

    def _at(self, value: float) -> str:
        return f"{100 * (value - self._start) / (1.0 - self._start):.2f}%"

    def _at_equal_shares(self, key: str) -> tuple[int, str] | None:
        """Return the run that is best where all classes are equally frequent, and its value there."""
        twins = [one["metrics"].get("at_balanced_prevalence", {}).get(key) for one in self._reports]
        known = [(value, -place) for place, value in enumerate(twins) if value is not None]
        if not self._moves(key) or not known:
            return None
        value, place = max(known) if self._metrics[key]["better"] == "higher" else min(known)
        return -place, PAGE.value(value)

    # --- below the table

    def _classes(self) -> dict[str, Any] | None:
        """Return the cases of each class that each run recognises, the class of the lowest recall first."""
        if not self._of_classes:
            return None
        labels = self._reports[0]["input"]["labels"]
        alike = len({tuple(sum(row) for row in one["input"]["confusion_matrix"]) for one in self._reports}) == 1
        rows = []
        for place, label in enumerate(labels):
            counts = [one["input"]["confusion_matrix"][place] for one in self._reports]
            right, sizes = [row[place] for row in counts], [sum(row) for row in counts]
            known = [part / size for part, size in zip(right, sizes, strict=True) if size]
            if known:
                n = whole(sizes[0]) if alike else ""
                cells = [
                    (
                        whole(part) if alike else f"{whole(part)} of {whole(size)}",
                        bool(size) and part / size == max(known),
                    )
                    for part, size in zip(right, sizes, strict=True)
                ]
                rows.append((min(known), max(known) - min(known), printable(label), n, cells))
        rows.sort(key=lambda row: row[0])
        widest = max(rows, key=lambda row: row[1])
        word = class_word(self._reports[0])
        apart = (
            f"Runs differ most in {word} {widest[2]}" if widest[1] else f"Recalls of {class_word(self._reports[0], 2)}"
        )
        told = [{"label": label, "n": n, "cells": cells} for _, _, label, n, cells in rows]
        listed = fitting(len(told), _LISTED)
        return {"title": apart, "rows": told[:listed], "rest": told[listed:]}

    def _in_full(self, web: Web) -> dict[str, Any]:
        """Return the table of differences of two runs."""
        in_order, answer = self._order == sorted(self._order), {**self._answer, "metrics": self._metrics}
        document = comparison_document(answer if in_order else other_way_round(answer))
        section = next(one for one in document.sections if one.id == "differences")
        (table,) = (block for block in section.blocks if isinstance(block, Table))
        return {"table": table_view(table, web.at), "lede": section.lede}


# Values of one run that differ by less are one.
_SAME: Final = 1e-9
