"""Runs of more samples than memory holds, paired: what pairing all of them in memory says, whatever is read when."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.errors import IncomparableRuns, InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.inputs.classified import Predictions
from app.domain.inputs.matrices import MatrixInput
from app.services.compare.comparisons import compare, compare_again
from app.services.compare.elsewhere import Rereading, pair_streamed
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples, Pairing, PairingMode
from app.services.stored import unkept_record
from tests.engine import ENGINE
from tests.services import paired_models
from tests.services.referenced import Parts

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
    """Runs on most of the samples in any order, their labels in any order: rows and predictions, and what is saved."""
    runs: list[tuple[Any, Any, list[str]]] = []
    for _ in range(count):
        guess = np.where(RANDOM.random(ROWS) < 0.7, TRUTH, RANDOM.integers(0, 3, ROWS))
        runs.append((RANDOM.permutation(ROWS)[: ROWS - 20], guess, RANDOM.permutation(LABELS).tolist()))
    sources = [source_of(*run) for run in runs]
    records = [replace(unkept_record(replace(one, facts=DATA)), id=new_id()) for one in sources]
    samples = [one.samples.labels for one in sources if one.samples is not None]
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
def test_splits_and_orders_change_nothing(tmp_path: Path, chosen: list[int]) -> None:
    runs, records, kept = made()
    records = [records[one] for one in chosen]
    aligned = Runs.align(records)
    expected = aligned.pair(kept, PairingMode.TRUE, minimum_matched=0.9).pairing
    for number in range(5):
        parts = Parts({record.id: split(runs[one]) for record, one in zip(records, chosen, strict=True)})
        folder = tmp_path / str(number)
        folder.mkdir()
        reading = Rereading(parts, 40_000, folder, ENGINE)
        check_same(pair_streamed(reading, aligned, KeptSamples(), 0.9).pairing, expected)
        assert not [*folder.iterdir()]
    # One whose samples were kept needs no reading.
    first = replace(records[0], facts={})
    mixed = Runs.align([first, *records[1:]])
    check_same(pair_streamed(Rereading(parts, 40_000, tmp_path, ENGINE), mixed, kept, 0.9).pairing, expected)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    runs, records, _ = made(2)
    aligned = Runs.align(records)
    parts = {record.id: split(run) for record, run in zip(records, runs, strict=True)}

    def paired(minimum: float = 0.9, **changed: Any) -> Pairing:
        second = {"second": records[1].id}
        now = parts | {second[name]: value for name, value in changed.items()}
        return pair_streamed(Rereading(Parts(now), 40_000, tmp_path, ENGINE), aligned, KeptSamples(), minimum).pairing

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
        pair_streamed(
            Rereading(Parts(parts), 40_000, tmp_path, ENGINE),
            Runs.align([replace(records[0], facts={}), records[1]]),
            KeptSamples(),
            0.9,
        )


def named(ids: list[Any], truth: dict[str, str], predicted: list[str]) -> MatrixInput:
    """Samples by their ids, integers or texts."""
    labels = [truth[str(one)] for one in ids]
    found = Predictions(y_true=labels, y_pred=predicted, labels=[*LABELS], sample_ids=ids).read("/input")
    return replace(found, facts=DATA)


def paired_by_id(folder: Path, sources: list[MatrixInput]) -> tuple[Pairing, Pairing]:
    """The pairing of the same runs streamed and in memory."""
    records = [replace(unkept_record(one), id=new_id()) for one in sources]
    by_record = {record.id: one for record, one in zip(records, sources, strict=True)}
    aligned, samples = Runs.align(records), {name: one.samples for name, one in by_record.items()}
    kept = KeptSamples({name: one for name, one in samples.items() if one is not None})
    parts = Parts({name: [one] for name, one in by_record.items()})
    found = pair_streamed(Rereading(parts, 40_000, folder, ENGINE), aligned, KeptSamples(), 0.01).pairing
    return found, aligned.pair(kept, PairingMode.TRUE, minimum_matched=0.01).pairing


def test_integers_and_texts_are_the_same_ids(tmp_path: Path) -> None:
    numbers: list[Any] = [*RANDOM.permutation(50).tolist(), -7, 10**18, -(10**18), 2**63 - 1]
    texts: list[Any] = ["", "a", "aa", "007", "-0", "+3", "3.0", "é", "日本", "x" * 256, "9" * 30]
    truth = {str(one): str(RANDOM.choice(LABELS)) for one in [*numbers, *texts]}
    as_texts = [str(one) for one in [*numbers[:40], *numbers[-4:], *texts]]
    runs = [
        named(ids, truth, RANDOM.choice(LABELS, len(ids)).tolist())
        for ids in (numbers, as_texts, [*reversed(as_texts)], [*reversed(numbers)])
    ]
    for chosen, matched in ([0, 1], 44), ([1, 2], 55), ([0, 1, 2], 44), ([0, 3], 54):
        found, expected = paired_by_id(tmp_path, [runs[one] for one in chosen])
        check_same(found, expected)
        assert found.n_common == matched


def test_a_sample_of_another_truth_is_named(tmp_path: Path) -> None:
    runs = [named(["x", "y"], {"x": "a", "y": last}, ["a", "b"]) for last in "bc"]
    with pytest.raises(IncomparableRuns, match="sample y has another true class in run 2 than in the first"):
        paired_by_id(tmp_path, runs)


def test_an_id_that_comes_twice_is_found_in_any_run(tmp_path: Path) -> None:
    truth = dict.fromkeys("xyz", "a")
    whole, first, last, again = (named([*ids], truth, [*"aba"][: len(ids)]) for ids in ("xyz", "xy", "z", "x"))
    record = unkept_record(whole)
    for place, twice in ((1, (1,)), (0, (0, 1)), (2, (2,))):
        records = [replace(record, id=new_id()) for _ in range(3)]
        parts = {one.id: [first, again if number in twice else last] for number, one in enumerate(records)}
        reading = Rereading(Parts(parts), 40_000, tmp_path, ENGINE)
        with pytest.raises(InvalidInput, match="got 'x' more than once") as raised:
            pair_streamed(reading, Runs.align(records), KeptSamples(), 0.5)
        assert raised.value.faults[0].pointer == f"/evaluations/{place}"


@pytest.mark.parametrize("metric", ["accuracy", "brier_score"])
def test_weights_and_groups_that_say_nothing_are_left_aside(tmp_path: Path, metric: str) -> None:
    """Samples that weigh the same, each a group of its own, are those without weights and groups."""
    runs = [
        one._replace(weights=np.full(paired_models.ROWS, 0.1), groups=np.arange(paired_models.ROWS))
        for one in paired_models.models(2)
    ]
    asked, kept = paired_models.asked_of(runs, [metric], paired_tests=True)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.design.resampling.n_groups is None
    paired_models.check_close(asdict(paired_models.streamed(asked, runs, tmp_path)), asdict(expected))


@pytest.mark.parametrize("perfect", [False, True], ids=["good", "perfect"])
def test_runs_that_say_the_same_of_every_sample_are_the_same(tmp_path: Path, *, perfect: bool) -> None:
    """Whatever varies: perfect runs leave no variance, and neither do values that no sample has."""
    first, _ = paired_models.models(3)
    first = first._replace(weights=RANDOM.lognormal(size=paired_models.ROWS))
    if perfect:
        first = first._replace(outputs=np.eye(3)[first.truth])
    runs = [first, first._replace(rows=first.rows[::-1])]
    asked, kept = paired_models.asked_of(runs, ["roc_auc@c1", "brier_score", "fraction_uncertain"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    found = paired_models.streamed(asked, runs, tmp_path)
    for name, one in expected.metrics.items():
        assert found.metrics[name].differences[0].identical is one.differences[0].identical is True
        assert found.metrics[name].differences[0].verdict is one.differences[0].verdict


def test_groups_of_merged_runs_may_be_numbers_in_one_part_and_texts_in_another(tmp_path: Path) -> None:
    half, rows = paired_models.ROWS // 2, np.arange(paired_models.ROWS)
    groups = np.array([*(rows[:half] % 50).tolist(), *(f"g{row % 50}" for row in rows[half:])], dtype=object)
    runs = [one._replace(groups=groups, rows=rows) for one in paired_models.models(2)]
    asked, kept = paired_models.asked_of(runs, ["accuracy"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    merged = tuple(replace(one, parts=(one, one)) for one in asked.runs.records)
    asked = replace(asked, runs=replace(asked.runs, records=merged))
    of_both = [[run.source(slice(half)), run.source(slice(half, None))] for run in runs]
    parts = Parts({record.id: own for record, own in zip(merged, of_both, strict=True)})
    found = compare_again(asked, KeptSamples(), Rereading(parts, 1 << 20, tmp_path, ENGINE), identifier=merged[0].id)
    paired_models.check_close(asdict(found), asdict(expected))


@pytest.mark.parametrize("what", ["weights", "groups"])
def test_runs_that_were_named_are_told_to_be_read_again_for_their_weights_and_groups(what: str) -> None:
    size = paired_models.ROWS
    designs: dict[str, Any] = {"weights": RANDOM.lognormal(size=size), "groups": np.arange(size) // 7}
    runs = [one._replace(**{what: designs[what]}) for one in paired_models.models(2)]
    asked, _ = paired_models.asked_of(runs, ["accuracy"])
    asked = replace(asked, new=replace(asked.new, paired=PairingMode.AUTO))
    with pytest.raises(IncomparableRuns, match="with `paired: true` read again"):
        compare(asked, KeptSamples(), identifier=asked.runs.records[0].id)
