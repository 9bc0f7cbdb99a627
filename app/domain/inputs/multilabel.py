"""Samples with any number of labels: those that they have, and those predicted or a probability or score of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import Fault, InvalidInput, TooLarge, moved_faults
from app.domain.findings import Finding
from app.domain.inputs.attributes import read_attributes
from app.domain.inputs.classified import Probabilities, Scores, assumed_threshold
from app.domain.inputs.columns import Rows, check_finite, check_range, design_facts, designed, samples_of
from app.domain.inputs.content import GROUPS_FACT, OUTPUTS_FACT, WEIGHTS_FACT, Content
from app.domain.inputs.kind import (
    ATTRIBUTES,
    POINTS,
    SETS_OF_LABELS,
    SHARES,
    AttributeColumns,
    Beyond,
    ClassNames,
    Facts,
    File,
    Input,
    PerClass,
    Spread,
    UnitKind,
    Values,
    column,
    groups,
    ids,
    option,
    weights,
)
from app.domain.inputs.labels import Column, Numbers, encode, place_in, shown
from app.domain.inputs.matrices import (
    MatrixInput,
    check_class_count,
    check_entries,
    check_found_labels,
    check_labels,
    names_of,
)
from app.domain.inputs.samples import DecidedBy, Samples
from app.domain.wording import described, names, number, share
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.label_sets import hamming_loss
from app.kernel.metrics.families.rate_means import g_mean, h_mean
from app.kernel.metrics.families.rates import precision, recall
from app.kernel.samples.label_units import LabelPairs
from app.kernel.uncertainty.units import LabelUnits

# Samples times labels: a table of so many bytes, of which some are held at once.
MOST_ENTRIES = 100_000_000
Members = NDArray[np.bool_]
_ROWS = "a list of labels for every sample, or a 0 or 1 for each of the `labels`"
_WITHOUT_SCORES = frozenset({Inputs.MATRIX, Inputs.LABELS})
# With fewer samples that have a label little is known of it.
_FEW = 10
# Labels that are found less often than this are weak, where nearly all answers are right.
_WEAK, _NEARLY_ALL = 0.5, 0.9
_MOST_NAMED = 20


def _label_units(source: MatrixInput) -> LabelUnits:
    """The samples with their labels. Raises ValueError where they are not known."""
    samples = source.known_samples
    return LabelUnits(np.asarray(samples.truth, dtype=bool), np.asarray(samples.predicted, dtype=bool), samples.outputs)


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    places = [labels.index(label) for label in source.labels]
    # Labels that are not its own have no outputs: such are merged only where all have those of the first.
    order, samples, facts = np.argsort(places), source.samples, dict(source.facts)
    counts = np.zeros((len(labels), 2, 2), source.counts.dtype)
    counts[places] = source.counts
    if samples is not None:
        wide = np.zeros((2, samples.size, len(labels)), dtype=samples.truth.dtype)
        wide[:, :, places] = samples.truth, samples.predicted
        outputs = None if samples.outputs is None else samples.outputs[:, order]
        samples = replace(samples, truth=wide[0], predicted=wide[1], outputs=outputs)
    if isinstance(facts.get("threshold"), list):
        facts["threshold"] = [facts["threshold"][place] for place in order]
    return replace(source, labels=labels, counts=counts, samples=samples, facts=facts)


def _restricted(source: MatrixInput, places: NDArray[np.intp]) -> MatrixInput:
    some = source.known_samples.taken(places)
    facts = {name: fact for name, fact in source.facts.items() if name not in (WEIGHTS_FACT, GROUPS_FACT)}
    facts |= {"rows": some.size} if "rows" in facts else {}
    return _of_samples(source.labels, {**facts, **design_facts(some)}, some)


def _of_samples(labels: tuple[str, ...], facts: Facts, samples: Samples) -> MatrixInput:
    """The canonical form of samples, with a table (2, 2) of each label: actual rows, absent before present."""
    weights = samples.weights
    counts = LabelPairs(samples.truth.astype(np.bool_), samples.predicted.astype(np.bool_)).counts(weights)
    content = Content.counts if weights is None else Content.weights
    return MatrixInput(Multilabel.kind, labels, None, content, counts.reshape(-1, 2, 2), facts=facts, samples=samples)


def as_classes(source: MatrixInput, label: str) -> MatrixInput:
    """A label and its absence as two classes with probabilities or scores, of which the label is the positive one.

    Raises:
        UnknownClass: there is no such label.
        ValueError: there are none.
    """
    samples, place, threshold = source.known_samples, place_in(source.labels, label), source.facts["threshold"]
    present = samples.known_outputs[:, place]
    return replace(
        source,
        kind=Scores.kind if source.has_scores else Probabilities.kind,
        labels=(f"not {label}", label),
        positive=1,
        counts=source.counts[place],
        facts={**source.facts, "threshold": threshold[place] if isinstance(threshold, list) else threshold},
        samples=replace(
            samples,
            truth=samples.truth[:, place].astype(np.intp),
            predicted=samples.predicted[:, place].astype(np.int64),
            outputs=present if source.has_scores else np.stack([1.0 - present, present], axis=1),
        ),
    )


def _findings(source: MatrixInput, _: Subject, values: Values, per_class: PerClass) -> Iterator[Finding]:
    found = source.counts.astype(np.float64)
    with_label, predicted = found[:, 1].sum(axis=-1), found[:, :, 1].sum(axis=-1)
    never = [
        label for label, said, there in zip(source.labels, predicted, with_label, strict=True) if there and not said
    ]
    if never:
        yield Finding.warning(
            "labels_never_predicted",
            f"No sample is predicted to have {names(never)}, though some do. The recall is 0 there, and so are "
            f"{g_mean.key} and {h_mean.key}; {precision.key} does not exist.",
            labels=never[:_MOST_NAMED],
        )
    if source.content is Content.counts:
        few = [label for label, there in zip(source.labels, with_label, strict=True) if 0 < there < _FEW]
        if few:
            yield Finding.warning(
                "labels_with_few_samples",
                f"Fewer than {_FEW} samples have the label{'s' if few[1:] else ''} {names(few)}: little is known of "
                f"{'them' if few[1:] else 'it'}.",
                labels=few[:_MOST_NAMED],
            )
    yield from _hidden(source, values, per_class)


def _hidden(source: MatrixInput, values: Values, per_class: PerClass) -> Iterator[Finding]:
    """Labels that are mostly missed while nearly every answer is right, since most labels are absent."""
    loss = values.get(hamming_loss.key)
    if loss is None or 1.0 - loss < _NEARLY_ALL:
        return
    recalls = {label: per_class[label]["prevalence_insensitive"].get(recall.key) for label in source.labels}
    weak = {label: value for label, value in recalls.items() if value is not None and value < _WEAK}
    if weak:
        worst = min(weak, key=weak.__getitem__)
        yield Finding.warning(
            "weak_labels_hidden",
            f"{hamming_loss.key} hides weak labels: it is {number(loss)}, because most answers are that a rare label "
            f"is absent. Less than half of the samples that have {names(list(weak))} are found; of {names([worst])} "
            f"it is {share(weak[worst])}.",
            recalls={label: weak[label] for label in list(weak)[:_MOST_NAMED]},
            hamming_loss=loss,
        )


_UNITS = UnitKind(
    task=Task.MULTILABEL,
    judged="labels",
    # Of each label a table of two by two: actual rows, absent before present.
    shape=lambda n_labels, _: (n_labels, 2, 2),
    size=lambda counts: counts[0].sum().item(),
    inputs=lambda source: INPUTS_OF[Task.MULTILABEL] if source.is_ordered else _WITHOUT_SCORES,
    ranked=(h_mean,),
    units=_label_units,
    reordered=_reordered,
    restricted=_restricted,
    shown=lambda source: {"label_matrices": dict(zip(source.labels, source.counts.tolist(), strict=True))},
    twin=lambda subject: Subject({Inputs.MATRIX: subject.parts[Inputs.MATRIX].balanced()}),
    balanced="were every label in half of the samples",
    findings=_findings,
    figure="per_class",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel(Input):
    """Samples with any number of labels: those that they have, and those predicted or a probability or score of each.

    Attributes:
        part: Are these some of the samples only, whose weights may add up to nothing?
    """

    kind: ClassVar[str] = "multilabel"
    units: ClassVar[UnitKind | None] = _UNITS
    beyond: ClassVar[Beyond | None] = Beyond.STREAMED

    y_true: Rows = column(
        SETS_OF_LABELS,
        f"The actual labels: {_ROWS}.",
        File("y_true", needed=True, spread=Spread.LABELS),
        required=True,
    )
    y_pred: Rows | None = column(
        SETS_OF_LABELS, f"The predicted labels: {_ROWS}.", File("y_pred", needed=True, spread=Spread.LABELS)
    )
    probabilities: Rows | None = column(
        SHARES,
        "n x L in place of `y_pred`, in the order of `labels`.",
        File("probabilities", needed=True, spread=Spread.LABELS),
        instead="y_pred",
    )
    scores: Rows | None = column(
        POINTS,
        "n x L of any real numbers in place of `y_pred`, higher for more likely labels. What needs probabilities has "
        "no value.",
        File("score", needed=True, spread=Spread.LABELS),
        instead="y_pred",
    )
    thresholds: float | list[float] | None = option(
        "A label is predicted from this probability or score on: one for all or one for each. When left out 0.5, or 0 "
        "if scores lie outside of 0 and 1."
    )
    labels: ClassNames | None = option(
        'The labels; those that occur, sorted, or "0" to "L-1" for columns, when left out.'
    )
    sample_ids: Column | None = ids()
    sample_weight: Numbers | None = weights()
    group_ids: Column | None = groups()
    attributes: AttributeColumns | None = option(ATTRIBUTES)
    part: bool = False

    def read(self, pointer: str) -> MatrixInput:
        """A table of two by two for each label, and the samples."""
        read = self.read_columns(pointer)
        if "y_pred" not in read:
            return self._with_outputs(read, pointer)
        if self.thresholds is not None:
            raise InvalidInput.at(f"{pointer}/thresholds", "thresholds_need_probabilities", "expected none with y_pred")
        return self._with_predictions(read, pointer)

    def _with_predictions(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        """Rows of 0 and 1 that are all as long as there are labels are columns. Without ``labels`` those that occur are
        taken, sorted, or for columns the numbers from 0 on.
        """
        declared = None if self.labels is None else check_labels(self.labels, f"{pointer}/labels")
        given = {name: read[name] for name in ("y_true", "y_pred")}
        tables = {one: _as_columns(rows, declared, f"{pointer}/{one}") for one, rows in given.items()}
        members = {one: table for one, table in tables.items() if table is not None}
        if declared is not None:
            lists = {one: rows for one, rows in given.items() if one not in members}
            labels, members = declared, members | _encoded(lists, declared, pointer)[1]
        elif len({table.shape for table in members.values()}) == 1 and len(members) == len(given):
            labels = check_labels([str(place) for place in range(members["y_true"].shape[1])], f"{pointer}/labels")
        else:
            labels, members = _encoded(given, None, pointer)
        return self._made(read, labels, members["y_true"], members["y_pred"], {}, pointer)

    def _with_outputs(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        name = next(one for one in ("probabilities", "scores") if one in read)
        outputs, facts = read[name], dict[str, Any]()
        size, width = outputs.shape
        _check_size(size, width, f"{pointer}/{name}")
        if name == "scores":
            check_finite(outputs, f"{pointer}/scores")
            facts[OUTPUTS_FACT] = "scores"
        else:
            check_range(outputs, f"{pointer}/probabilities", 0.0, 1.0, what="probability")
        labels = names_of(self.labels, width, f"labels for {width} columns", f"{pointer}/labels")
        chosen = self.thresholds
        if chosen is None:
            chosen = assumed_threshold(float(outputs.min()), float(outputs.max()))
            if name == "scores":
                facts["threshold_assumed"] = True
        levels = np.asarray(chosen, dtype=np.float64)
        if levels.ndim and len(levels) != width:
            raise InvalidInput.at(
                f"{pointer}/thresholds",
                "wrong_length",
                f"expected one threshold, or {width} as there are labels, got {len(levels)}",
            )
        if name == "probabilities":
            check_range(levels, f"{pointer}/thresholds", 0.0, 1.0, what="threshold")
        elif self.part and self.thresholds is None:
            where = f"{pointer}/thresholds"
            raise InvalidInput.at(
                where, "missing_field", "expected thresholds of scores that are more than memory holds"
            )
        truth = _as_columns(self.y_true, labels, f"{pointer}/y_true")
        if truth is None:
            truth = _encoded({"y_true": self.y_true}, labels, pointer)[1]["y_true"]
        threshold = chosen if isinstance(chosen, int | float) else list(chosen)
        facts |= {"rows": size, "rule": DecidedBy.THRESHOLD.value, "threshold": threshold}
        return self._made(read, labels, truth, outputs >= levels, facts, pointer, outputs)

    def _made(
        self,
        read: Mapping[str, Any],
        labels: tuple[str, ...],
        truth: Members,
        predicted: Members,
        facts: Facts,
        pointer: str,
        outputs: NDArray[np.float64] | None = None,
    ) -> MatrixInput:
        weighed, where = read.get("sample_weight"), f"{pointer}/sample_weight"
        if weighed is not None:
            facts = {"rows": len(truth), **facts}
            if weighed.any() or not self.part:
                check_entries(weighed, where)
        attributes = read_attributes(self.attributes, len(truth), f"{pointer}/attributes") if self.attributes else None
        samples = samples_of(read, truth.view(np.uint8), predicted.view(np.uint8), outputs, attributes=attributes)
        # How many groups there are, and what weights are worth, is known of all parts together.
        beside: Facts = {GROUPS_FACT: 0} if samples.groups is not None else {}
        if not self.part:
            samples, beside = designed(samples)
        return _of_samples(labels, {**facts, **beside}, samples)


def _as_columns(rows: Rows, labels: Sequence[str] | None, pointer: str) -> Members | None:
    """Rows of 0 and 1 as a table (n, L); None for lists of labels."""
    table = _as_table(rows)
    if table is None or not ((table == 0) | (table == 1)).all():
        return None
    if labels is not None and table.shape[1] != len(labels):
        if {"0", "1"} & set(labels):
            return None
        raise InvalidInput.at(
            f"{pointer}/0",
            "wrong_label_count",
            f"expected {len(labels)} entries as there are labels, got {table.shape[1]}",
        )
    members: Members = table != 0
    return members


def _as_table(rows: Rows) -> NDArray[Any] | None:
    """Rows of numbers that are all of one length; None for others."""
    if isinstance(rows, np.ndarray):
        return rows if rows.ndim == 2 and rows.dtype.kind in "buif" else None
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    if width == 0 or not all(isinstance(row, list) and len(row) == width for row in rows):
        return None
    return np.asarray(rows) if set(map(type, chain.from_iterable(rows))) <= {int, float, bool} else None


def _encoded(
    columns: dict[str, Rows], declared: tuple[str, ...] | None, pointer: str
) -> tuple[tuple[str, ...], dict[str, Members]]:
    """Lists of labels as tables (n, L)."""
    flat: dict[str, list[Any]] = {}
    lengths: dict[str, NDArray[np.int64]] = {}
    for name, rows in columns.items():
        listed = rows.tolist() if isinstance(rows, np.ndarray) else [*rows]
        for index, row in enumerate(listed):
            if not isinstance(row, list):
                raise InvalidInput.at(
                    f"{pointer}/{name}/{index}",
                    "not_a_row",
                    f"expected a list of labels, or a 0 or 1 for each label, got {described(row)}",
                )
        flat[name] = list(chain.from_iterable(listed))
        lengths[name] = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    filled = {name: entries for name, entries in flat.items() if entries}
    if not filled and declared is None:
        raise InvalidInput.at(f"{pointer}/labels", "labels_needed", "expected labels, since none occurs")
    codes: dict[str, NDArray[np.int64]] = dict.fromkeys(flat, np.zeros(0, dtype=np.int64))
    labels = declared or ()
    if filled:
        with moved_faults(partial(_in_row, lengths, pointer)):
            coded = encode(filled, declared, pointer)
            if declared is None:
                check_class_count(len(coded.labels), f"{pointer}/labels")
                check_found_labels(coded, pointer, fewest=1)
        codes |= coded.codes
        labels = coded.labels
    return labels, {name: _table(codes[name], lengths[name], labels, f"{pointer}/{name}") for name in columns}


def _table(codes: NDArray[np.int64], lengths: NDArray[np.int64], labels: Sequence[str], pointer: str) -> Members:
    _check_size(len(lengths), len(labels), pointer)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    members = np.zeros((len(lengths), len(labels)), dtype=bool)
    members[rows, codes] = True
    if np.count_nonzero(members) < codes.size:
        counts = np.zeros(members.shape, dtype=np.int64)
        np.add.at(counts, (rows, codes), 1)
        row, code = (int(place) for place in np.argwhere(counts > 1)[0])
        raise InvalidInput.at(
            f"{pointer}/{row}", "duplicate_label", f"expected labels that differ, got {shown(labels[code])} twice"
        )
    return members


def _in_row(lengths: Mapping[str, NDArray[np.int64]], pointer: str, fault: Fault) -> Fault:
    """A fault of an entry one after another, told by its place in a row."""
    name, _, place = fault.pointer.removeprefix(f"{pointer}/").partition("/")
    if name not in lengths or not place.isdigit():
        return fault
    ends = np.cumsum(lengths[name])
    row = int(np.searchsorted(ends, int(place), side="right"))
    return replace(fault, pointer=f"{pointer}/{name}/{row}/{int(place) - int(ends[row] - lengths[name][row])}")


def _check_size(n_samples: int, n_labels: int, pointer: str) -> None:
    if n_samples * n_labels > MOST_ENTRIES:
        raise TooLarge(
            f"expected at most {MOST_ENTRIES} samples times labels, got {n_samples} times {n_labels}", pointer=pointer
        )
