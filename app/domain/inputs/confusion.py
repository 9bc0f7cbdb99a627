"""Confusion matrices: of classes, and of classes and decisions that need not be classes, as to treat or to wait."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.domain.asked import LabelOf
from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.columns import read_table
from app.domain.inputs.content import DECISIONS_FACT, IGNORED_FACT, Content
from app.domain.inputs.ignored import IGNORED, classes_left
from app.domain.inputs.kind import (
    POSITIVE,
    ClassNames,
    Entry,
    Facts,
    Ignored,
    Input,
    Matrix,
    PerClass,
    UnitKind,
    Values,
    option,
)
from app.domain.inputs.labels import label_text
from app.domain.inputs.matrices import (
    MatrixInput,
    check_class_count,
    check_entries,
    names_of,
    positive_index,
    whole_or_weights,
)
from app.domain.members import number
from app.domain.wording import classes, listed, names
from app.kernel.metrics.card import INPUTS_OF, Task, constant_costs, relative_cost, total_cost
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import wilson
from app.kernel.uncertainty.units import TableUnits

_COUNT_NAMES = (("tn", "fp"), ("fn", "tp"))
# With fewer samples of a class little is known of what is decided about it.
_FEW = 10
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix(Input):
    """A confusion matrix of counts, weights or rates."""

    kind: ClassVar[str] = "confusion_matrix"
    in_folds: ClassVar[bool] = True

    matrix: Matrix = option("K x K, non-negative; K x M with `decisions`.", required=True)
    labels: ClassNames | None = option('The K classes; "0" to "K-1" when left out.')
    orientation: Literal["actual_rows", "predicted_rows"] = option(
        "What the rows are. Answers always have the actual classes in rows.", "actual_rows"
    )
    positive: LabelOf | None = option(POSITIVE)
    ignore: Ignored = option(IGNORED, ())
    normalized: bool = option("The entries are rates, not counts: no intervals can be given.", default=False)
    decisions: ClassNames | None = option(
        "What was decided, a name for each column, where these are not the classes, such as to treat, to test or to "
        "wait: the matrix may have any shape then. It has rates, and costs by `options.costs`."
    )

    def read(self, pointer: str) -> MatrixInput:
        """Counts where all entries are whole, weights otherwise, rates where they are ``normalized``.

        Of classes to ignore the row goes, and the column if nothing else is in it. Decisions that are the classes, in
        whatever order, make a matrix of classes.
        """
        where = f"{pointer}/matrix"
        table = self._square(pointer) if self.decisions is None else read_table(self.matrix, where)
        check_entries(table, where)
        actual = np.ascontiguousarray(table.T if self.orientation == "predicted_rows" else table)
        check_class_count(len(actual), where)
        count, width = actual.shape
        labels = names_of(self.labels, count, f"labels for {count} rows", f"{pointer}/labels")
        if self.decisions is not None:
            what = f"decisions for {width} columns"
            decisions = names_of(self.decisions, width, what, f"{pointer}/decisions")
            if set(labels) != set(decisions):
                self._refuse_choices_of_classes(pointer)
                return self._made(actual, labels, None, {DECISIONS_FACT: list(decisions)})
            actual = actual[:, [decisions.index(one) for one in labels]]
        facts: dict[str, Any] = {}
        content = self._content(actual)
        if self.ignore:
            actual, labels, facts[IGNORED_FACT] = classes_left(actual, labels, self.ignore, pointer)
            check_class_count(len(labels), f"{pointer}/ignore")
        positive = positive_index(self.positive, labels, f"{pointer}/positive")
        return self._made(actual, labels, positive, facts, content)

    def _square(self, pointer: str) -> NDArray[np.float64]:
        count = len(self.matrix)
        check_class_count(count, f"{pointer}/matrix")
        for index, row in enumerate(self.matrix):
            if len(row) != count:
                raise InvalidInput.at(
                    f"{pointer}/matrix/{index}",
                    "not_square",
                    f"expected {count} entries as there are {count} rows, got {len(row)}; name what was decided in "
                    "`decisions` if the columns are no classes",
                )
        return np.array(self.matrix, dtype=np.float64)

    def _content(self, matrix: NDArray[np.float64]) -> Content:
        return Content.rates if self.normalized else whole_or_weights(matrix)

    def _made(
        self,
        matrix: NDArray[np.float64],
        labels: tuple[str, ...],
        positive: int | None,
        facts: Facts,
        content: Content | None = None,
    ) -> MatrixInput:
        content = content or self._content(matrix)
        counts = np.ascontiguousarray(matrix).astype(np.int64 if content is Content.counts else np.float64, copy=False)
        return MatrixInput(self.kind, labels, positive, content, counts, facts=facts)

    def _refuse_choices_of_classes(self, pointer: str) -> None:
        for name, given in (("positive", self.positive is not None), ("ignore", bool(self.ignore))):
            if given:
                raise InvalidInput.at(
                    f"{pointer}/{name}",
                    "not_for_decisions",
                    f"expected no {name} beside decisions that are no classes: it is about classes that are decided "
                    "for",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryCounts(Input):
    """The four counts of two classes."""

    kind: ClassVar[str] = "binary_counts"
    in_folds: ClassVar[bool] = True

    tp: Entry = option("True positives.", required=True)
    fn: Entry = option("False negatives.", required=True)
    fp: Entry = option("False positives.", required=True)
    tn: Entry = option("True negatives.", required=True)
    negative: LabelOf = option("Name of the negative class.", "0")
    positive: LabelOf = option("Name of the positive class.", "1")

    def read(self, pointer: str) -> MatrixInput:
        """The matrix [[tn, fp], [fn, tp]]."""
        matrix = np.array([[self.tn, self.fp], [self.fn, self.tp]], dtype=np.float64)
        check_entries(matrix, pointer, lambda row, column: f"{pointer}/{_COUNT_NAMES[row][column]}")
        labels = label_text(self.negative), label_text(self.positive)
        if labels[0] == labels[1]:
            raise InvalidInput.at(
                f"{pointer}/positive", "duplicate_label", f"expected two different names, got {labels[0]!r} twice"
            )
        content = whole_or_weights(matrix)
        counts = matrix.astype(np.int64) if content is Content.counts else matrix
        return MatrixInput(self.kind, labels, 1, content, counts)


# --- classes and what was decided about them, where that is no class -------------------------------------------------


class Share(TypedDict):
    """A share with Wilson's limits, `null` where there are none."""

    value: float | None
    low: float | None
    high: float | None


class ConstantDecision(TypedDict):
    """The cheapest constant decision, and its mean cost of a sample."""

    decision: str
    expected_cost: float


class DecisionCosts(TypedDict):
    """Costs of the decisions.

    Attributes:
        expected_cost: Mean cost of a sample.
        normalized_cost: As a share of what the best constant decision costs; `null` where that costs nothing.
        cost_savings: 1 less the normalized cost.
    """

    expected_cost: float
    normalized_cost: float | None
    cost_savings: float | None
    best_constant: ConstantDecision


class DecisionRates(TypedDict):
    """Shares of the decisions, over all samples and by class.

    Attributes:
        share: How often each decision is taken.
        share_of_class: By class, how often each decision is taken about it. Prevalence does not move these.
        share_of_decision: By decision, how often it is taken about each class.
        costs: What the decisions cost, with `options.costs`.
    """

    share: Mapping[str, Share]
    share_of_class: Mapping[str, Mapping[str, Share]]
    share_of_decision: Mapping[str, Mapping[str, Share]]
    costs: NotRequired[DecisionCosts]


def _details(source: MatrixInput, _: Subject, level: float, costs: Array | None) -> Facts:
    counts = source.counts.astype(np.float64)
    counted = source.content is Content.counts
    decided, actual, total = counts.sum(axis=0), counts.sum(axis=1), counts.sum()
    decisions: Sequence[str] = source.facts[DECISIONS_FACT]

    def by_name(hits: Array, among: Array, columns: Sequence[str]) -> dict[str, Share]:
        return dict(zip(columns, _shares(hits, among, level, counted=counted), strict=True))

    found: DecisionRates = {
        "share": by_name(decided, np.full(decided.shape, total), decisions),
        "share_of_class": {
            label: by_name(row, np.full(row.shape, size), decisions)
            for label, row, size in zip(source.labels, counts, actual, strict=True)
        },
        "share_of_decision": {
            name: by_name(column, np.full(column.shape, size), source.labels)
            for name, column, size in zip(decisions, counts.T, decided, strict=True)
        },
    }
    if costs is not None:
        found["costs"] = costs_of(counts, costs, decisions)
    return {"decisions": found}


def _shares(hits: Array, among: Array, level: float, *, counted: bool) -> list[Share]:
    with silently():
        values = hits / among
        low, high = wilson(hits, among, level) if counted else np.full((2, *values.shape), np.nan)
    rows = zip(values.tolist(), low.tolist(), high.tolist(), strict=True)
    return [{"value": number(value), "low": number(below), "high": number(above)} for value, below, above in rows]


def costs_of(counts: Array, costs: Array, decisions: Sequence[str]) -> DecisionCosts:
    """Cost of decisions (K, M), and of the best constant one."""
    actual = counts.sum(axis=1)
    with silently():
        relative = float(relative_cost(counts, actual, costs))
    constant = constant_costs(actual, costs) / actual.sum()
    cheapest = int(constant.argmin())
    return DecisionCosts(
        expected_cost=float(total_cost(counts, costs) / actual.sum()),
        normalized_cost=number(relative),
        cost_savings=number(1.0 - relative),
        best_constant=ConstantDecision(decision=decisions[cheapest], expected_cost=float(constant[cheapest])),
    )


def _findings(source: MatrixInput, _: Subject, __: Values, ___: PerClass) -> Iterator[Finding]:
    decisions, decided = source.facts[DECISIONS_FACT], source.counts.sum(axis=0)
    never = [name for name, size in zip(decisions, decided.tolist(), strict=True) if not size]
    if never:
        yield Finding.note(
            "decisions_never_taken",
            f"{names(never)} {'are' if never[1:] else 'is'} never decided.",
            decisions=never[:_MOST_NAMED],
        )
    sizes = source.counts.sum(axis=1).tolist()
    few = [label for label, size in zip(source.labels, sizes, strict=True) if size < _FEW]
    if few and source.content is Content.counts:
        yield Finding.warning(
            "classes_with_few_samples",
            f"There are fewer than {_FEW} samples of {classes(few)}: little is known of what is decided about "
            f"{'them' if few[1:] else 'it'}.{listed(few)}",
            classes=few[:_MOST_NAMED],
        )


DECISIONS = UnitKind(
    task=Task.DECISIONS,
    judged="decisions",
    shape=lambda n_classes, facts: (n_classes, len(facts[DECISIONS_FACT])),
    needs_samples=lambda _: False,
    inputs=lambda _: INPUTS_OF[Task.DECISIONS],
    units=lambda source: TableUnits(source.counts.astype(np.float64)),
    restricted=lambda source, places: replace(source, samples=source.known_samples.taken(places)),
    shown=lambda source: {"decision_matrix": source.counts.tolist()},
    findings=_findings,
    details=_details,
)
