"""Runs of more samples than memory holds, paired: what pairing all of them at once says, whatever is read when."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.errors import IncomparableRuns, InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.inputs.classified import Predictions
from app.domain.inputs.matrices import MatrixInput
from app.services.compare.in_parts import Rereading, pair_in_parts
from app.services.ports import SampleLabels
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples, Pairing, PairingMode
from app.services.stored import unkept_record
from tests.engine import ENGINE
from tests.services.referenced import Parts, Threads

ROWS = 900
LABELS = ["a", "b", "c"]
RANDOM = np.random.default_rng(22)
TRUTH = RANDOM.integers(0, 3, ROWS)
DATA: Any = {"data": {"columns": {"sample_id": "id"}}}


def source_of(rows: Any, predicted: Any, labels: list[str]) -> MatrixInput:
    names = np.array(LABELS)
    truth, said = names[TRUTH[rows]].tolist(), names[predicted[rows]].tolist()
    return Predictions(y_true=truth, y_pred=said, labels=[*labels], sample_ids=rows.tolist()).read("/input")


def made(count: int = 3) -> tuple[list[tuple[Any, Any, list[str]]], list[EvaluationRecord], KeptSamples]:
    """Runs on most of the samples in any order, their labels in any order: rows and predictions, and what is kept."""
    runs: list[tuple[Any, Any, list[str]]] = []
    for _ in range(count):
        guess = np.where(RANDOM.random(ROWS) < 0.7, TRUTH, RANDOM.integers(0, 3, ROWS))
        runs.append((RANDOM.permutation(ROWS)[: ROWS - 20], guess, RANDOM.permutation(LABELS).tolist()))
    sources = [source_of(*run) for run in runs]
    records = [replace(unkept_record(replace(one, facts=DATA)), id=new_id()) for one in sources]
    samples = [SampleLabels.of(one.samples) for one in sources if one.samples is not None]
    pairs = zip(records, samples, strict=True)
    return runs, records, KeptSamples({record.id: one for record, one in pairs if one is not None})


def split(run: tuple[Any, Any, list[str]]) -> list[MatrixInput]:
    """Parts of any size, in any order."""
    rows, predicted, labels = run
    cuts = np.sort(RANDOM.choice(np.arange(1, rows.size), RANDOM.integers(1, 30), replace=False))
    parts = [source_of(some, predicted, labels) for some in np.split(rows, cuts)]
    return [parts[place] for place in RANDOM.permutation(len(parts))]


def check_same(found: Pairing, expected: Pairing) -> None:
    assert (found.design, found.reason, found.n_common) == (expected.design, expected.reason, expected.n_common)
    assert found.joint is not None
    assert expected.joint is not None
    for name in ("truth", "predictions", "counts"):
        assert np.array_equal(getattr(found.joint, name), getattr(expected.joint, name))


@pytest.mark.parametrize("chosen", [[0, 1], [2, 0, 1]])
def test_splits_orders_memory_and_processes_change_nothing(tmp_path: Path, chosen: list[int]) -> None:
    runs, records, kept = made()
    records = [records[one] for one in chosen]
    aligned = Runs.align(records)
    expected = aligned.pair(kept, PairingMode.TRUE, minimum_matched=0.9).pairing
    for number in range(25):
        parts = Parts({record.id: split(runs[one]) for record, one in zip(records, chosen, strict=True)})
        folder = tmp_path / str(number)
        folder.mkdir()
        cluster = Threads() if number % 3 == 0 else None
        memory = int(RANDOM.choice([14_000, 40_000, 1 << 20]))
        reading = Rereading(parts, memory, folder, ENGINE, cluster)
        check_same(pair_in_parts(reading, aligned, KeptSamples(), 0.9).pairing, expected)
        assert cluster is None or cluster.tasks >= 1
    # One whose samples were kept needs no reading.
    first = replace(records[0], extra={})
    mixed = Runs.align([first, *records[1:]])
    check_same(pair_in_parts(Rereading(parts, 40_000, tmp_path, ENGINE), mixed, kept, 0.9).pairing, expected)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    runs, records, _ = made(2)
    aligned = Runs.align(records)
    parts = {record.id: split(run) for record, run in zip(records, runs, strict=True)}

    def paired(minimum: float = 0.9, **changed: Any) -> Pairing:
        second = {"second": records[1].id}
        now = parts | {second[name]: value for name, value in changed.items()}
        return pair_in_parts(Rereading(Parts(now), 40_000, tmp_path, ENGINE), aligned, KeptSamples(), minimum).pairing

    with pytest.raises(IncomparableRuns, match=r"only \d+ of 880 sample ids are common to all runs"):
        paired(1.0)
    again = [*parts[records[1].id][1:], parts[records[1].id][-1]]
    with pytest.raises(InvalidInput, match="other ones were read") as changed:
        paired(second=again[:-1])
    assert (changed.value.faults[0].pointer, changed.value.faults[0].code) == ("/evaluations/1", "data_changed")
    # The same counts, by naming the samples of one part as those of another.
    one = parts[records[1].id][0]
    assert one.samples is not None
    ids = one.samples.ids
    assert ids is not None
    other = next(part.samples for part in parts[records[1].id][1:] if part.samples is not None)
    assert other.ids is not None
    taken = replace(one, samples=replace(one.samples, ids=np.concatenate([other.ids[:1], ids[1:]])))
    with pytest.raises(InvalidInput, match="more than once") as repeated:
        paired(second=[taken, *parts[records[1].id][1:]])
    assert repeated.value.faults[0].code == "duplicate_sample_id"
    unnamed = replace(one, samples=replace(one.samples, ids=None))
    with pytest.raises(IncomparableRuns, match="came without sample ids"):
        paired(second=[unnamed])
    with pytest.raises(IncomparableRuns, match="came without sample ids"):
        pair_in_parts(
            Rereading(Parts(parts), 40_000, tmp_path, ENGINE),
            Runs.align([replace(records[0], extra={}), records[1]]),
            KeptSamples(),
            0.9,
        )
