"""Probabilities or scores of any number of samples: parts of an input go into an engine."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.classified import assumed_threshold
from app.domain.inputs.columns import weight_facts
from app.domain.inputs.content import DATA_FACT, GROUPS_FACT, IGNORED_FACT, WEIGHTS_FACT
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.report import SectionName
from app.kernel.matrix.table import confusion_counts
from app.kernel.streamed.rows import Rows
from app.kernel.streamed.scores import StreamedScores
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.designs import group_section, weight_section
from app.services.evaluate.sections.probability import probability_section
from app.services.evaluate.streamed.units import DATA, alike, check_groups, check_weights, with_facts
from app.services.ports import OpenEngine

# Facts of a part that are numbers of samples.
_COUNTED: Final = ("rows", "ties", "renormalized")
# Bytes of what is known of each class in each group.
_BYTES_OF_GROUP: Final = 128


@dataclass(frozen=True, slots=True)
class NoPart:
    """Rows of which none is left, since all are of classes that are ignored."""

    rows: int
    fault: NothingLeft


def streamed_scores(
    parts: Iterable[NewEvaluation | NoPart],
    facts_of: Callable[[int], Mapping[str, Any]],
    *,
    engine: OpenEngine,
    budget: int,
) -> NewEvaluation:
    """One evaluation made of parts; nothing of them is left in memory.

    Args:
        parts: With their samples, of data that was named, and with the same labels.
        facts_of: Facts of the input, of all of the data, by its number of rows.
        engine: Holds the samples.
        budget: Bytes of memory that sums within groups may take.

    Raises:
        InvalidInput: there is no part, or what is asked cannot be given.
        TooLarge: there are too many groups.
        EngineError: the engine fails.
    """
    read = _Read(parts)
    first = read.first
    source = first.source
    names = read.columns.schema.names
    rows = engine.take(read.columns.schema, read.batches())
    weighted, grouped = "w" in names, "g" in names
    n_groups = 0
    if grouped:
        rows, n_groups = rows.coded("g", "c")
        rows = rows.having(g="c").kept()
        size = len(source.labels)
        check_groups(n_groups, size, _BYTES_OF_GROUP * size * n_groups, budget)
    whole = read.whole(facts_of(read.rows))
    if whole.facts.get("threshold_assumed"):
        rows, whole = _with_threshold(rows, whole)
    samples = None
    if grouped or weighted:
        samples = _decided(rows, weighted=weighted, grouped=grouped)
        whole = replace(whole, facts={**whole.facts, **({GROUPS_FACT: n_groups} if grouped else {})})
        whole = _weighed(whole, samples) if weighted else whole
    question = ask(whole, first.options, sliceable=False)
    scores = StreamedScores(
        rows.where("w > 0") if weighted else rows,
        len(source.labels),
        probabilities=not source.has_scores,
        weighted=weighted,
        n_groups=n_groups,
        mirrored=read.mirrored,
        n_samples=read.n_samples,
    )
    run = RunData(replace(whole, samples=samples), streamed=scores)
    sections = {SectionName.PROBABILITIES: probability_section(question, run)}
    if grouped:
        sections[SectionName.GROUPS] = group_section(question, run)
    elif whole.is_weighted:
        sections[SectionName.WEIGHTS] = weight_section(question, run)
    return replace(first, source=whole, report=report_alone(question, sections))


class _Read:
    """Parts as batches for an engine, and what adds up of them meanwhile. Raises InvalidInput without a part with
    samples.

    Attributes:
        first: The first part with samples, without these.
        columns: Of the first part.
        mirrored: Are there two classes, and is one probability 1 less the other in every row?
    """

    def __init__(self, parts: Iterable[NewEvaluation | NoPart]) -> None:
        self.rows, self.n_samples = 0, 0
        self._parts, self._left_out = iter(parts), Counter[str]()
        self.mirrored = True
        part = self._following()
        if part is None:
            raise InvalidInput.at(DATA, "no_samples", "expected at least one sample, got none")
        self.first, self._whole = part, replace(part.source, samples=None)
        self.columns = self._columns(part.source)

    def _following(self) -> NewEvaluation | None:
        """The next part with samples; raises what is wrong where there is none at all."""
        fault = None
        for part in self._parts:
            if isinstance(part, NewEvaluation):
                self.rows += part.source.facts[DATA_FACT]["rows"]
                self._left_out.update(part.source.facts.get(IGNORED_FACT, {}))
                return part
            self.rows += part.rows
            self._left_out.update(part.fault.left_out)
            fault = part.fault
        if fault is not None and not hasattr(self, "first"):
            raise fault
        return None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The samples of all parts, to be gone through once."""
        yield self.columns
        while (part := self._following()) is not None:
            self._whole = _together(self._whole, part.source)
            yield self._columns(part.source)

    def _columns(self, source: MatrixInput) -> pa.RecordBatch:
        """One row for each sample: its class, its scores, its group, its weight and what was decided."""
        samples = source.samples
        if samples is None or samples.outputs is None:
            raise ValueError("expected parts with probabilities or scores")
        self.n_samples += samples.size
        outputs = samples.outputs
        found: dict[str, NDArray[Any]] = {"y": samples.truth.astype(np.int32)}
        if outputs.ndim == 1:
            # The kernel's scores are higher for class 1.
            found["s"] = -outputs if source.positive == 0 else outputs
        else:
            found |= {f"p{code}": np.ascontiguousarray(column) for code, column in enumerate(outputs.T)}
            self.mirrored = self.mirrored and len(found) == 3 and np.array_equal(found["p0"], 1.0 - found["p1"])
        if samples.groups is not None:
            found["g"] = samples.groups
        if samples.weights is not None:
            found["w"] = samples.weights
        if samples.groups is not None or samples.weights is not None:
            found["d"] = samples.predicted.astype(np.int32)
        return pa.RecordBatch.from_arrays([pa.array(column) for column in found.values()], [*found])

    def whole(self, facts: Mapping[str, Any]) -> MatrixInput:
        """All parts as one input, without samples."""
        ignored = {IGNORED_FACT: dict(self._left_out)} if IGNORED_FACT in self._whole.facts else {}
        return with_facts(self._whole, {**ignored, **facts})


def _together(whole: MatrixInput, part: MatrixInput) -> MatrixInput:
    facts: dict[str, Any] = {**whole.facts}
    facts |= {
        name: whole.facts.get(name, 0) + part.facts.get(name, 0)
        for name in _COUNTED
        if name in whole.facts or name in part.facts
    }
    return replace(whole, counts=whole.counts + part.counts, facts=facts)


def _with_threshold(rows: Rows, whole: MatrixInput) -> tuple[Rows, MatrixInput]:
    """Rows decided ``d`` by the threshold that nobody has to name, which all scores together say, and their counts."""
    # Scores ``s`` are higher for class 1.
    score, positive = "-s" if whole.positive == 0 else "s", whole.positive or 0
    ends = rows.totals((), {}, {"lowest": score, "highest": f"-({score})"})
    threshold = assumed_threshold(float(ends["lowest"][0]), -float(ends["highest"][0]))
    rows = rows.having(d=f"CASE WHEN {score} >= {threshold!r} THEN {positive} ELSE {1 - positive} END")
    found, counts = rows.sums("y", "d", n="1"), np.zeros((2, 2), dtype=np.int64)
    counts[found["y"], found["d"]] = found["n"]
    return rows, replace(whole, counts=counts, facts={**whole.facts, "threshold": threshold})


def _decided(rows: Rows, *, weighted: bool, grouped: bool) -> Samples:
    """Samples of one actual and predicted class, and of one group, as one entry each."""
    by = [*(["g"] if grouped else []), "y", "d"]
    found, weights, tally = alike(rows, by, weighted=weighted)
    truth, predicted = found["y"].astype(np.int64), found["d"].astype(np.int64)
    groups = found["g"].astype(np.int64) if grouped else None
    return Samples(truth, predicted, weights=weights, groups=groups, tally=tally)


def _weighed(whole: MatrixInput, samples: Samples) -> MatrixInput:
    """The input with the sums of the weights, and what these are worth. Raises InvalidInput as of weights that are
    sent.
    """
    size = len(whole.labels)
    counts = confusion_counts(samples.truth, samples.predicted, size, samples.weights)
    check_weights(counts)
    # Parts are worth something else.
    facts = {name: value for name, value in whole.facts.items() if name != WEIGHTS_FACT}
    return replace(whole, counts=counts, facts={**facts, **weight_facts(samples.weights, samples.tally)})
