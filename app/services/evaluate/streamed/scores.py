"""Probabilities or scores of any number of samples: parts of an input go into an engine."""

from collections import Counter
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.inputs.classified import assumed_threshold
from app.domain.inputs.columns import designed
from app.domain.inputs.content import GROUPS_FACT, WEIGHTS_FACT, Content
from app.domain.inputs.matrices import MatrixInput, class_counts
from app.domain.inputs.samples import Samples
from app.kernel.streamed.rows import Rows
from app.kernel.streamed.scores import StreamedScores
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.streamed.units import StreamedParts, alike, check_groups, check_weights, taken

# Facts of a part that are numbers of samples.
_COUNTED: Final = ("rows", "ties", "renormalized")
# Bytes of what is known of each class in each group.
_BYTES_OF_GROUP: Final = 128


def streamed_scores(read: StreamedParts) -> NewEvaluation:
    """One evaluation of probabilities or scores.

    Raises:
        InvalidInput: what is asked cannot be given.
        TooLarge: there are too many groups.
        EngineError: the engine fails.
    """
    summed = _Summed(read.source)
    rows = taken(read.engine, (summed.columns(*part) for part in read.inputs()))
    whole, names = read.whole(summed.whole), rows.names
    weighted, grouped, size, n_groups = "w" in names, False, len(whole.labels), 0
    if "g" in names:
        rows, n_groups = rows.coded("g", "c")
        whole = replace(whole, facts={**whole.facts, GROUPS_FACT: n_groups})
        # Groups of one sample each are none.
        grouped = n_groups < summed.n_samples
    if grouped:
        rows = rows.having(g="c").kept()
        check_groups(n_groups, size, _BYTES_OF_GROUP * size * n_groups, read.budget)
    if whole.facts.get("threshold_assumed"):
        rows, whole = _with_threshold(rows, whole)
    if grouped or weighted:
        whole = _designed(whole, _decided(rows, weighted=weighted, grouped=grouped))
        weighted = whole.known_samples.weights is not None
    scores = StreamedScores(
        rows.where("w > 0") if weighted else rows,
        size,
        probabilities=not whole.has_scores,
        weighted=weighted,
        n_groups=n_groups if grouped else 0,
        mirrored=summed.mirrored,
        n_samples=summed.n_samples,
    )
    return read.reported(RunData(whole, streamed=scores))


class _Summed:
    """Parts as batches for an engine, and what adds up of them meanwhile.

    Attributes:
        n_samples: Of all parts.
        mirrored: Are there two classes, and does one score say the other in every row?
    """

    def __init__(self, source: MatrixInput) -> None:
        self._first, self._counts, self._counted = source, 0 * source.counts, Counter[str]()
        self.n_samples, self.mirrored = 0, True

    @property
    def whole(self) -> MatrixInput:
        """All parts as one input, without samples."""
        return replace(self._first, counts=self._counts, facts={**self._first.facts, **self._counted})

    def columns(self, source: MatrixInput, samples: Samples) -> pa.RecordBatch:
        """One row for each sample: its class, its scores, its group, its weight and what was decided."""
        outputs = samples.known_outputs
        self.n_samples += samples.size
        self._counts = self._counts + source.counts
        self._counted.update({name: source.facts[name] for name in _COUNTED if name in source.facts})
        found: dict[str, NDArray[Any]] = {"y": samples.truth.astype(np.int32)}
        if outputs.ndim == 1:
            # The kernel's scores are higher for class 1.
            found["s"] = -outputs if source.positive == 0 else outputs
        else:
            found |= {f"p{code}": np.ascontiguousarray(column) for code, column in enumerate(outputs.T)}
            one_says_all = len(found) == 3 and not source.has_scores and np.array_equal(found["p0"], 1.0 - found["p1"])
            self.mirrored = self.mirrored and one_says_all
        if samples.groups is not None:
            found["g"] = samples.groups
        if samples.weights is not None:
            found["w"] = samples.weights
        if samples.groups is not None or samples.weights is not None:
            found["d"] = samples.predicted.astype(np.int32)
        return pa.RecordBatch.from_arrays([pa.array(column) for column in found.values()], [*found])


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


def _designed(whole: MatrixInput, samples: Samples) -> MatrixInput:
    """The input of samples in groups or with weights. Raises InvalidInput as of weights that are sent."""
    if samples.weights is not None:
        check_weights(class_counts(samples, len(whole.labels)))
    samples, beside = designed(samples)
    facts = {name: fact for name, fact in whole.facts.items() if name != WEIGHTS_FACT}
    return replace(
        whole,
        content=Content.counts if samples.weights is None else Content.weights,
        counts=class_counts(samples, len(whole.labels)),
        facts={**facts, **beside},
        samples=samples,
    )
