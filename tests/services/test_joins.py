"""Runs joined by sample id in parts: what joining all of them at once gives, whatever the parts."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, InvalidInput
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.services.runs.joins import CommonWeights, Compared, Part, Question, SpilledRun, joined, keys_of, numbers_of
from app.services.runs.pairing import common_weights

CLASSES = 3
RANDOM = np.random.default_rng(15)
Samples = dict[int | str, tuple[int, int]]


def run_of(truth: dict[int | str, int], ids: list[int | str]) -> Samples:
    """Predictions for some ids."""
    return {one: (truth[one], int(RANDOM.integers(CLASSES))) for one in ids}


def column(ids: list[int | str], *, as_text: bool) -> NDArray[Any]:
    """Ids as the domain has them."""
    return np.array([str(one) for one in ids]) if as_text else np.array(ids)


def spilled(folder: Path, name: str, run: Samples, parts: int, budget: int, *, as_text: bool) -> SpilledRun:
    found = SpilledRun(folder, name, parts, budget)
    ids = [*run]
    for start in range(0, len(ids), 64):
        some = ids[start : start + 64]
        codes = np.array([run[one][0] * CLASSES + run[one][1] for one in some])
        found.add(column(some, as_text=as_text), code=codes)
    found.finish()
    return found


def by_hand(runs: list[Samples]) -> JointCounts:
    """Id by id."""
    named = [{str(one): labels for one, labels in run.items()} for run in runs]
    common = sorted(set.intersection(*map(set, named)))
    truth = np.array([named[0][one][0] for one in common])
    return combine(truth, np.array([[run[one][1] for one in common] for run in named]), CLASSES)


def check_same(found: JointCounts, expected: JointCounts) -> None:
    for name in ("truth", "predictions", "counts"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("parts", [1, 2, 7, 50])
@pytest.mark.parametrize("budget", [0, 4000, 1 << 20])
def test_parts_and_budgets_change_nothing(tmp_path: Path, parts: int, budget: int) -> None:
    numbers: list[int | str] = [*RANDOM.permutation(500).tolist(), -7, 10**18, -(10**18), 2**63 - 1]
    texts: list[int | str] = ["", "a", "aa", "007", "-0", "+3", "3.0", "é", "日本", "x" * 256, "9" * 30]
    truth = {one: int(RANDOM.integers(CLASSES)) for one in [*numbers, *texts]}
    runs = [
        run_of(truth, numbers),
        run_of(truth, [*RANDOM.permutation(np.array(numbers[:450])).tolist(), *numbers[-4:], *texts]),
        run_of(truth, [*texts, *numbers]),
    ]
    as_text = [False, True, True]
    for chosen in ([0, 1], [1, 2], [0, 1, 2], [0, 0]):
        sides = [
            spilled(tmp_path, f"{place}-{chosen}", runs[one], parts, budget, as_text=as_text[one])
            for place, one in enumerate(chosen)
        ]
        pairs = [pair for number in range(parts) for pair in zip(*(side.part(number) for side in sides), strict=True)]
        found = [one.counts(CLASSES) for pair in pairs if (one := joined(pair, CLASSES)) is not None]
        expected = by_hand([runs[one] for one in chosen])
        check_same(merged(found, len(chosen), CLASSES), expected)
        halves = [merged(found[::2], len(chosen), CLASSES), merged(found[1::2], len(chosen), CLASSES)]
        check_same(merged(halves[::-1], len(chosen), CLASSES), expected)
    assert expected.counts.sum() == len(numbers)


def test_a_hash_does_not_depend_on_the_column() -> None:
    alone = [keys_of(np.array([text]))[1].hashes[0] for text in ("a", "bcd", "é" * 40)]
    together = keys_of(np.array(["a", "bcd", "é" * 40]))[1].hashes
    assert together.tolist() == alone
    assert len(set(alone)) == 3
    whole, none = keys_of(np.array(["12", "-5"]))
    assert not len(none.ids)
    assert whole.hashes.tolist() == keys_of(np.array([12, -5]))[0].hashes.tolist()
    spread = np.bincount((keys_of(np.arange(100_000))[0].hashes % np.uint64(100)).astype(np.int64))
    assert spread.min() > 800
    assert spread.max() < 1200


def test_an_id_that_comes_again_and_a_truth_that_differs_are_faults(tmp_path: Path) -> None:
    first, second = SpilledRun(tmp_path, "a", 1, 0), SpilledRun(tmp_path, "b", 1, 0)
    for ids in (["x", "y"], ["x"]):
        first.add(np.array(ids), code=np.zeros(len(ids), dtype=np.int64))
    second.add(np.array(["x", "1"]), code=np.array([CLASSES, CLASSES]))
    for one in (first, second):
        one.finish()
    ((_, twice), (number, other)) = (tuple(one.part(0)) for one in (first, second))
    with pytest.raises(InvalidInput, match="got 'x' more than once") as repeated:
        joined([other, twice], CLASSES)
    assert repeated.value.faults[0].pointer == "/evaluations/1"
    with pytest.raises(InvalidInput):
        joined([None, twice], CLASSES)
    assert joined([number, None], CLASSES) is None
    third = SpilledRun(tmp_path, "c", 1, 0)
    third.add(np.array(["x"]), code=np.array([0]))
    third.finish()
    with pytest.raises(IncomparableRuns, match="sample x has another true class in run 2 than in the first"):
        joined([other, [*third.part(0)][1]], CLASSES)


def test_whatever_is_known_of_an_id_stays_with_it(tmp_path: Path) -> None:
    ids, weights, marks = RANDOM.permutation(300), RANDOM.random(300), RANDOM.integers(0, 2, 300)
    with closing(SpilledRun(tmp_path, "a", 3, 1000, {"weight": pa.float64(), "mark": pa.int64()})) as run:
        for some in np.split(np.arange(300), 10):
            run.add(ids[some], weight=weights[some], mark=marks[some])
        run.finish()
        parts = [part for number in range(3) for part in run.part(number) if part is not None]
    assert len(parts) == 3
    found = {
        one: known
        for part in parts
        for one, *known in zip(
            part.ids.to_pylist(), part.columns["weight"].tolist(), part.columns["mark"].tolist(), strict=True
        )
    }
    expected = zip(ids.tolist(), weights.tolist(), marks.tolist(), strict=True)
    assert found == {one: known for one, *known in expected}


def grouped(names: NDArray[np.int64], others: NDArray[np.int64]) -> Compared:
    """Samples of one part, in a group of each of two runs."""
    rows, columns = pa.array(np.arange(names.size)), {"code": np.zeros(names.size, dtype=np.int64)}
    parts = [Part(rows, {**columns, "group": numbers_of(one)}) for one in (names, others)]
    return Compared.of(Question(2, CLASSES, grouped=(True, True)), parts)


def test_what_was_added_up_is_not_sorted_again_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, sizes = 200, []
    unique = np.unique

    def counted(values: NDArray[Any], **others: Any) -> Any:
        sizes.append(values.size)
        return unique(values, **others)

    parts = [grouped(names, names + 10**6) for names in np.split(RANDOM.permutation(100 * rows), 100)]
    monkeypatch.setattr(np, "unique", counted)
    whole = Compared(Question(2, CLASSES, grouped=(True, True)), 20_000)
    for part in parts:
        whole.merge(part)
    assert whole.groups is not None
    assert whole.groups.same
    assert whole.groups.counts.groups.size == 100 * rows
    # Sorted once for each part, samples would be looked at a million times and more.
    assert max(sizes) <= 100 * rows
    assert sum(sizes) < 600_000


@pytest.mark.parametrize("waiting", [0, 1 << 20])
def test_groups_that_meet_two_others_are_found_in_any_order(waiting: int) -> None:
    names = np.arange(12) // 2
    for others, same in ((names + 7, True), (np.where(names == 3, 2, names), False), (np.arange(12), False)):
        for order in (np.arange(6), np.arange(6)[::-1], RANDOM.permutation(6)):
            whole = Compared(Question(2, CLASSES, grouped=(True, True)), waiting)
            for place in order:
                whole.merge(grouped(names[place::6], others[place::6]))
            assert whole.groups is not None
            assert whole.groups.same is same


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_run_that_weighs_otherwise_is_named_where_samples_weigh_nothing(size: int) -> None:
    for last in ([5.0, 1.0, 1.0], [0.0, 1.0, 2.0], [0.0, 3.0, 3.0]):
        weights = [np.array(one) for one in ([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], last)]
        expected = common_weights(weights, [np.arange(3)] * 3)
        parts = []
        for start in range(0, 3, size):
            parts.append(CommonWeights(3))
            parts[-1].add([one[start : start + size] for one in weights])
        for one in parts[:-1]:
            parts[-1].merge(one)
        assert parts[-1].fault() == (expected if isinstance(expected, str) else None)
