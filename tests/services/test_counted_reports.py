"""Reports of predictions whose rows were counted, beside those of the same rows at hand."""

import json
import pickle
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.bodies.files import counted
from app.api.bodies.files.counted import RowCounts
from app.api.bodies.referenced import Asked, read_data
from app.api.v1.requests.referenced import with_columns
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput, TooLarge
from app.outbound.data import DataPlaces
from app.services.evaluate.answers import Evaluation
from app.services.evaluate.apart import evaluate_alone

ROWS = 2000
MEMORY = 30_000
RANDOM = np.random.default_rng(7)
CLASSES = np.array(["a", "b", "c"])
TRUTH = RANDOM.integers(0, 3, ROWS)
GUESS = np.where(RANDOM.random(ROWS) < 0.7, TRUTH, RANDOM.integers(0, 3, ROWS))
WEIGHTS = np.where(RANDOM.random(ROWS) < 0.05, 0.0, RANDOM.lognormal(0.0, 2.0, ROWS))
TABLE = pa.table(
    {
        "y_true": CLASSES[TRUTH],
        "y_pred": CLASSES[GUESS],
        "sample_id": np.arange(ROWS) // 2,
        "group_id": [f"household {one}" for one in RANDOM.integers(0, 60, ROWS)],
        "sample_weight": WEIGHTS,
    }
)
BESIDE = {
    "ids": ["sample_id"],
    "groups": ["group_id"],
    "weights": ["sample_weight"],
    "all of them": ["sample_id", "group_id", "sample_weight"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("counted")
    # Ids that differ, for those who look at them.
    table = TABLE.set_column(2, "sample_id", pa.array(np.arange(ROWS)))
    for start in range(0, ROWS, 500):
        pq.write_table(table.slice(start, 500), place / f"{start:04}.parquet", row_group_size=200)
    return place


def both(folder: Path, beside: list[str], **members: Any) -> tuple[Evaluation, Evaluation]:
    """The evaluation of all rows at hand, and that of counted ones."""
    columns = {name: name for name in ["y_true", "y_pred", *beside]}
    source = {"kind": "predictions", "data": {"uri": str(folder), "format": "parquet", "columns": columns}}
    options = members.pop("options", {})
    body = json.dumps({"input": source | members, "options": options}).encode()
    reference, places = DataReference(str(folder), DataFormat.PARQUET, columns), DataPlaces((str(folder),))
    whole = with_columns(body, read_data(places, Asked(reference, "predictions", None, 1 << 30)))
    with pytest.raises(BeyondMemory):
        read_data(places, Asked(reference, "predictions", None, MEMORY))
    found = with_columns(body, read_data(places, Asked(reference, "predictions", None, 10 * MEMORY), counted=True))
    assert found.source.samples is None or found.source.samples.size < ROWS // 2
    return evaluate_alone(whole, None)[0], evaluate_alone(found, None)[0]


def check_close(own: Any, others: Any) -> None:
    """The same, but for the rounding of sums of weights."""
    if isinstance(own, dict):
        assert own.keys() == others.keys()
        for name, value in own.items():
            check_close(value, others[name])
    elif isinstance(own, float) or isinstance(others, float):
        assert others == pytest.approx(own, rel=1e-11, abs=1e-12)
    else:
        assert others == own


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("members", [{}, {"ignore": ["c"]}], ids=["all", "without c"])
def test_the_report_is_that_of_the_rows(folder: Path, beside: list[str], members: dict[str, Any]) -> None:
    first, second = (one.report for one in both(folder, beside, options={"seed": 1}, **members))
    exact = "sample_weight" not in beside
    for name in ("metrics", "per_class", "intervals", "balanced_intervals", "groups", "weights"):
        own, others = getattr(first, name), getattr(second, name)
        if exact:
            assert others == own
        else:
            check_close(own, others)
    assert second.input.confusion_matrix is not None
    assert first.input.confusion_matrix is not None
    np.testing.assert_allclose(second.input.confusion_matrix, first.input.confusion_matrix, rtol=1e-13)
    facts = dict(second.input.facts)
    assert facts["data"].pop("sample_ids_unchecked", False) is ("sample_id" in beside)
    check_close(dict(first.input.facts), facts)
    codes = [one.code for one in second.findings]
    assert ("sample_ids_unchecked" in codes) is ("sample_id" in beside)
    assert [code for code in codes if code != "sample_ids_unchecked"] == [one.code for one in first.findings]


def test_intervals_of_everything_by_groups_are_those_of_the_rows(folder: Path) -> None:
    options = {"intervals": "all", "draws": 200}
    first, second = (one.report for one in both(folder, ["group_id"], options=options))
    assert second.intervals == first.intervals
    assert second.groups == first.groups


def counts(table: pa.Table, weight: str | None = "sample_weight", memory: int = 1 << 20) -> RowCounts:
    keys = ["y_true", "y_pred", "group_id"]
    made = RowCounts(table.schema, keys, keys[:2], weight, memory)
    for batch in table.to_batches(max_chunksize=130):
        made.add(batch)
    return made


def told(state: RowCounts) -> list[bytes]:
    """Everything that is counted, bit by bit."""
    table, tally = state.finish()
    assert tally.weights is not None
    sums = (tally.times, tally.weights.used, tally.weights.squares, tally.weights.lightest, tally.weights.heaviest)
    return [repr(table.to_pydict()).encode(), *(one.tobytes() for one in sums)]


def test_no_order_and_no_split_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = told(counts(TABLE))
    monkeypatch.setattr(counted, "_GATHERED", 64)
    random = np.random.default_rng(3)
    for _ in range(8):
        table = TABLE.take(random.permutation(ROWS))
        ends = [0, *np.sort(random.integers(0, ROWS, 3)).tolist(), ROWS]
        states = [counts(table.slice(a, b - a)) for a, b in pairwise(ends)]
        while len(states) > 1:
            first, second = (states.pop(random.integers(len(states))) for _ in range(2))
            states.append(first.merge(pickle.loads(pickle.dumps(second))))  # noqa: S301 - its own
        assert states[0].rows == ROWS
        assert told(states[0]) == expected


def test_sums_of_weights_are_rounded_once() -> None:
    """Beside exact fractions, of weights of very different sizes."""
    weights = np.array([0.1, 1e15, 3e-12, 0.1, 1e15, 1e-300, 5e-324, 2.0**53, 0.0, 7.0 / 3.0] * 20)
    table = pa.table(
        {"y_true": ["a"] * 200, "y_pred": ["b"] * 200, "group_id": ["x", "y"] * 100, "sample_weight": weights}
    )
    found, tally = counts(table).finish()
    assert tally.weights is not None
    for place, name in enumerate(["x", "y"]):
        own = weights[place::2]
        assert found["group_id"][place].as_py() == name
        assert found["sample_weight"][place].as_py() == float(sum(map(Fraction, own.tolist())))
        assert tally.weights.squares[place] == float(sum(map(Fraction, (own * own).tolist())))
        assert (tally.times[place], tally.weights.used[place]) == (100, np.count_nonzero(own))
        assert tally.weights.lightest[place] == own[own > 0].min()
        assert tally.weights.heaviest[place] == own.max()


@pytest.mark.parametrize(("weight", "code"), [(-1.0, "bad_weight"), (np.inf, "bad_weight"), (1e16, "total_too_large")])
def test_weights_that_are_none_are_refused(weight: float, code: str) -> None:
    wrong = TABLE.set_column(4, "sample_weight", pa.array(np.where(np.arange(ROWS) == 150, weight, 1.0)))
    with pytest.raises(InvalidInput) as raised:
        counts(wrong)
    assert raised.value.faults[0].code == code
    assert code != "bad_weight" or "row 150 of those read" in raised.value.faults[0].detail


def test_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLarge, match="PREVAIL_DATA_MEMORY_BYTES"):
        counts(TABLE, None, 1000).finish()
    monkeypatch.setattr(counted, "MOST_GROUPS", 59)
    with pytest.raises(TooLarge, match="at most 59 groups, got 60"):
        counts(TABLE, None).finish()


def test_too_many_labels_are_refused_before_all_are_read() -> None:
    names = pa.array([f"c{index}" for index in range(3000)])
    table = pa.table({"y_true": names, "y_pred": names})
    state = RowCounts(table.schema, ["y_true", "y_pred"], ["y_true", "y_pred"], None, MEMORY)

    def read() -> None:
        for _ in range(1000):
            state.add(*table.to_batches())

    with pytest.raises(InvalidInput, match="at most 1000 classes, got more in the column 'y_true'"):
        read()
    assert state.rows < 1_000_000
