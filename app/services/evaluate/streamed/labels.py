"""Sets of labels of any number of samples, and probabilities of labels, with weights and groups."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from app.domain.errors import TooLarge
from app.domain.inputs.content import GROUPS_FACT, WEIGHT_FACT, WEIGHTS_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples, Tally
from app.kernel.streamed.labels import LabelGroups, LabelSums, StreamedLabels, StreamedLabelScores
from app.kernel.streamed.rows import Rows
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.streamed.units import DATA, StreamedParts, check_groups, check_weights, taken

# What an input says of its own rows, and how labels are decided where there are probabilities.
_ROWS: Final = "rows"
_RULE: Final = "rule"
# Columns of the engine, beside the cell and the probability of each label, and what metrics say of a sample.
_GROUP, _CODE, _WEIGHT = "group", "g", "w"
# Bytes for each pair of labels: 9 pairs of cells, in sums and in what is made of them; as much again with weights, and
# with groups.
_PAIR_BYTES: Final = 9 * 8 * 5
# Bytes for each group and number that is added up of it.
_SUM_BYTES: Final = 16


def streamed_labels(read: StreamedParts) -> NewEvaluation:
    """One evaluation of samples with labels. The report is that of the same rows in memory, but for what has to be
    resampled.

    Raises:
        InvalidInput: all samples are in one group, or the weights are not as those of an input that is sent.
        TooLarge: there are too many labels or groups.
    """
    source = read.source
    read.question(source)
    n_labels, scored, weighted = len(source.labels), _RULE in source.facts, source.is_weighted
    pair = _PAIR_BYTES * (1 + weighted + source.is_grouped)
    left = read.budget - pair * n_labels**2
    if left < 0:
        raise TooLarge(
            f"expected labels with pairs of {pair} bytes in at most {read.budget} bytes (half of "
            f"PREVAIL_DATA_MEMORY_BYTES), got {n_labels} labels",
            pointer=DATA,
        )
    sums = LabelSums(n_labels, weighted=weighted, scored=scored)
    rows = taken(read.engine, _batches(read.samples(), sums))
    if weighted:
        check_weights(sums.moments.cells[0])
    weight = sums.common_weight
    if weight is not None:
        sums.leave_weights()
        rows = rows.having(**{_WEIGHT: "1.0::DOUBLE"})
        facts = {name: fact for name, fact in source.facts.items() if name != WEIGHTS_FACT}
        source = replace(source, content=Content.counts, facts={**facts, WEIGHT_FACT: weight})
    groups, scores, n_groups = None, None, 0
    if source.is_grouped:
        rows, n_groups = rows.coded(_GROUP, _CODE)
        source = replace(source, facts={**source.facts, GROUPS_FACT: n_groups})
    # Groups of one sample each are none.
    if 0 < n_groups < sums.rows:
        held = 2 * _SUM_BYTES * n_groups
        check_groups(n_groups, n_labels if scored else 0, held, left)
        # Read again for each label.
        rows = rows.kept() if scored else rows
        groups = _groups(rows, sums, n_groups, left - held)
    if scored:
        scores = StreamedLabelScores(rows.where(f"{_WEIGHT} > 0"), sums.moments, 0 if groups is None else n_groups)
    return read.reported(RunData(read.whole(_whole(source, sums, groups)), StreamedLabels(sums, groups, scores)))


def _values(sums: LabelSums) -> list[str]:
    return [f"v{place}" for place in range(len(sums.means.metrics))]


def _batches(parts: Iterable[Samples], sums: LabelSums) -> Iterator[pa.RecordBatch]:
    """Add up each part, and yield the columns of it that go into the engine."""
    for samples in parts:
        truth, predicted = samples.truth.view(bool), samples.predicted.view(bool)
        values = sums.add(truth, predicted, samples.outputs, samples.weights)
        columns: dict[str, Any] = {_WEIGHT: np.ones(samples.size) if samples.weights is None else samples.weights}
        if samples.groups is not None:
            columns |= {
                _GROUP: pa.array(samples.groups).cast(pa.string()),
                **dict(zip(_values(sums), values, strict=True)),
            }
        if samples.groups is not None or samples.outputs is not None:
            cells = 2 * truth.astype(np.uint8) + predicted
            columns |= {f"c{place}": np.ascontiguousarray(own) for place, own in enumerate(cells.T)}
        if samples.outputs is not None:
            columns |= {f"p{place}": np.ascontiguousarray(own) for place, own in enumerate(samples.outputs.T)}
        yield pa.record_batch({name: pa.array(column) for name, column in columns.items()})


def _groups(rows: Rows, sums: LabelSums, n_groups: int, left: int) -> LabelGroups:
    """Sums within groups, of so many groups at once as fit into the bytes that are left."""
    sizes = rows.sums(_CODE, sizes="1", weights=_WEIGHT)
    found = LabelGroups(sums.moments, len(sums.means.metrics), sizes["sizes"], sizes["weights"])
    places = range(sums.moments.n_labels)
    asked = {f"a{cell}_{place}": f"{_WEIGHT} * (c{place} = {cell})::INT" for cell in (1, 2, 3) for place in places}
    asked = {"weights": _WEIGHT, **asked, **{name: f"{_WEIGHT} * {name}" for name in _values(sums)}}
    step = max(left // (_SUM_BYTES * len(asked)), 1)
    for start in range(0, n_groups, step):
        some = rows if step >= n_groups else rows.where(f"{_CODE} >= {start} AND {_CODE} < {start + step}")
        of_some = some.sums(_CODE, **asked)
        found.add(np.column_stack([of_some[name] for name in asked]))
    return found


def _whole(source: MatrixInput, sums: LabelSums, groups: LabelGroups | None) -> MatrixInput:
    """The input of all parts, with its groups."""
    facts, moments, samples = {**source.facts}, sums.moments, None
    counts = moments.cells.reshape(-1, 2, 2)
    if _ROWS in facts:
        facts[_ROWS] = sums.rows
    if moments.worth is None:
        counts = counts.astype(np.int64)
    else:
        facts[WEIGHTS_FACT] = moments.worth[1]
        if moments.whole.used < 2:
            del facts[WEIGHTS_FACT]
    if groups is not None:
        # The samples are gone, and their groups are not.
        codes = np.arange(groups.sizes.size)
        nothing = np.zeros(codes.size, dtype=np.int64)
        samples = Samples(nothing, nothing, groups=codes, tally=Tally(groups.sizes.astype(np.int64)))
    return replace(source, counts=counts, facts=facts, samples=samples)
