"""Reports of sets of labels that went by in parts, beside those of the same rows at hand."""

import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput, TooLarge
from app.kernel.folds.entries import NotFolded
from app.kernel.folds.labels import LabelFold
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import NewEvaluation, evaluate_alone
from app.services.evaluate.folding.labels import LabelFolding
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.parted import merged

ROWS = 3000
MEMORY = 16384
LABELS = ["a", "b", "c", "d", "e"]
RESAMPLED = "they need all samples at once, and there are more than were held in memory"


def table(seed: int = 3) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels that come together, one that is rare and one that is never predicted."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(ROWS, 1))
    truth = common + random.normal(size=(ROWS, 5)) > [0.0, 0.5, 1.0, 3.5, 1.5]
    predicted = truth ^ (random.random((ROWS, 5)) < 0.1)
    predicted[:, 4] = False
    return truth, predicted


def written(folder: Path, truth: NDArray[Any], predicted: NDArray[Any], **options: Any) -> Json:
    folder.mkdir()
    columns = {f"y_true.{label}": truth[:, place].astype(int) for place, label in enumerate(LABELS)}
    columns |= {f"y_pred.{label}": predicted[:, place].astype(int) for place, label in enumerate(LABELS)}
    rows = pa.table({**columns, "sample_id": np.arange(len(truth))})
    for start in range(0, len(truth), 500):
        pq.write_table(rows.slice(start, 500), folder / f"{start:05}.parquet", row_group_size=200)
    return {"input": {"kind": "multilabel", "labels": LABELS, "data": {"uri": str(folder)}}, "options": options}


def asked(body: Json, memory: int = MEMORY) -> tuple[DataPlaces, Asked]:
    uri = body["input"]["data"]["uri"]
    reference = DataReference(uri, DataFormat.PARQUET, body["input"]["data"].get("columns"))
    return DataPlaces((uri,)), Asked(reference, "multilabel", LABELS, memory, piece_rows=300)


def said(new: NewEvaluation) -> Json:
    answer: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return answer


def whole_and_folded(body: Json, folder: Path) -> tuple[Json, Json]:
    text = json.dumps(body).encode()
    whole = said(with_columns(text, read_data(*asked(body, 1 << 30))))
    with pytest.raises(BeyondMemory):
        read_data(*asked(body))
    return whole, said(with_parts(text, PartsOfData(*asked(body)), engine=ENGINE, budget=MEMORY, folder=folder))


def check_same(found: Any, expected: Any, where: str = "") -> None:
    """Everything but how sums were rounded."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, one in expected.items():
            check_same(found[name], one, f"{where}/{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, one in enumerate(expected):
            check_same(found[place], one, f"{where}/{place}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), where
    else:
        assert found == expected, where


def test_the_report_is_that_of_all_rows_at_once(tmp_path: Path) -> None:
    body = written(tmp_path / "data", *table(), metrics=["gps(recall@*, precision@a)", "samples_f1"])
    whole, found = whole_and_folded(body, tmp_path)
    assert found["input"]["data"].pop("sample_ids_unchecked")
    assert found["findings"].pop()["code"] == "sample_ids_unchecked"
    resampled = {name for name, one in found["intervals"].items() if one.get("reason") == RESAMPLED}
    assert not resampled & {"h_mean", "subset_accuracy", "hamming_loss", "samples_f1", "recall@a", "samples_jaccard"}
    for name in resampled:
        assert whole["intervals"].pop(name)["method"].startswith("bootstrap")
        del found["intervals"][name]
    check_same(found, whole)
    assert whole["intervals"]["h_mean"]["low"] is not None


def test_what_has_to_be_resampled_has_a_reason(tmp_path: Path) -> None:
    """What has limits without being asked for has the same when all are asked for: there is nothing to draw from."""
    truth, predicted = table()
    body = written(tmp_path / "data", truth, predicted, intervals="all", draws=200)
    whole, found = whole_and_folded(body, tmp_path)
    _, quick = whole_and_folded(written(tmp_path / "quick", truth, predicted), tmp_path)
    assert found["intervals"].keys() == whole["intervals"].keys()
    drawn = {name for name, one in whole["intervals"].items() if one["method"].startswith("bootstrap")}
    closed = {name for name, one in quick["intervals"].items() if one["low"] is not None}
    assert "macro_f1" in drawn & closed
    for name, one in found["intervals"].items():
        if name in closed:
            check_same(one, quick["intervals"][name], name)
        elif name in drawn:
            assert one["low"] is not None or one["reason"]
        else:
            check_same(one, whole["intervals"][name], name)
    assert any(one.get("reason") == RESAMPLED for one in found["intervals"].values())


@pytest.mark.slow
def test_many_labels_are_read_in_batches_of_fewer_rows(tmp_path: Path) -> None:
    """A batch holds so many entries, however many columns there are."""
    random, rows, names = np.random.default_rng(2), 90_000, [f"l{place}" for place in range(300)]
    truth = random.random((rows, 300)) < 0.1
    columns = {f"y_true.{name}": truth[:, place].astype(np.int8) for place, name in enumerate(names)}
    columns |= {f"y_pred.{name}": column for name, column in zip(names, list(columns.values()), strict=True)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet", row_group_size=rows)
    reference = DataReference(str(tmp_path / "wide.parquet"), DataFormat.PARQUET, None)
    parts = PartsOfData(DataPlaces((str(tmp_path),)), Asked(reference, "multilabel", names, 1 << 26, piece_rows=rows))
    sizes = [part.facts["rows"] for part in parts.read()]
    assert sum(sizes) == rows
    assert max(sizes) * 600 <= 1 << 22


def test_random_splits_and_orders_say_the_same(tmp_path: Path) -> None:
    random, (truth, predicted) = np.random.default_rng(5), table()
    text = json.dumps(body := written(tmp_path / "data", truth, predicted)).encode()
    expected = said(with_parts(text, PartsOfData(*asked(body)), engine=ENGINE, budget=MEMORY, folder=tmp_path))
    del expected["input"]["data"]
    for number in range(4):
        chosen = random.permutation(ROWS)
        body = written(tmp_path / str(number), truth[chosen], predicted[chosen])
        text, parts = json.dumps(body).encode(), PartsOfData(*asked(body))
        with closing(LabelFolding(MEMORY, None)) as fold:
            merged(fold, partial(LabelFolding, MEMORY, None), text, parts, random)
            found = said(fold.finish(parts.facts(fold.rows)))
        assert found["input"].pop("data")["rows"] == ROWS
        assert found == expected


def test_faults_of_rows_are_told_by_their_place_among_all(tmp_path: Path) -> None:
    body = written(tmp_path / "data", *table())
    columns = {f"{name}.{label}": [0, None, 1] for name in ("y_true", "y_pred") for label in LABELS}
    pq.write_table(pa.table({**columns, "sample_id": [1, 2, 3]}), tmp_path / "data" / "9.parquet")
    with pytest.raises(InvalidInput, match=f"'y_true.a' at row {ROWS + 1}"):
        with_parts(json.dumps(body).encode(), PartsOfData(*asked(body)), engine=ENGINE, budget=MEMORY, folder=tmp_path)


@pytest.mark.parametrize("labels", [LABELS, ["0", "1", "2", "3", "4"]])
def test_what_is_neither_0_nor_1_is_told_by_its_own_row(labels: list[str], tmp_path: Path) -> None:
    """Whole and in parts; columns have a name for each label, so no row is a list of labels, whatever these are."""
    truth, predicted = (members.astype(int) for members in table())
    truth[1234, 2] = 2
    body = written(tmp_path / "data", truth, predicted)
    source = body["input"]
    source["labels"] = labels
    source["data"]["columns"] = {name: [f"{name}.{label}" for label in LABELS] for name in ("y_true", "y_pred")}
    places, large = asked(body, 1 << 30)
    small = replace(large, labels=labels, memory_bytes=MEMORY)
    expected = f"y_true, row 1234 of those read: expected 0 or 1 for the label '{labels[2]}', got 2"
    text = json.dumps(body).encode()

    def whole() -> NewEvaluation:
        return with_columns(text, read_data(places, replace(large, labels=labels)))

    def in_parts() -> NewEvaluation:
        return with_parts(text, PartsOfData(places, small), engine=ENGINE, budget=MEMORY, folder=tmp_path)

    for read in (whole, in_parts):
        with pytest.raises(InvalidInput, match=expected) as caught:
            read()
        assert caught.value.faults[0].pointer == "/input/data"


def test_too_many_labels_and_no_rows(tmp_path: Path) -> None:
    body = written(tmp_path / "data", *table())
    with pytest.raises(TooLarge, match="got 5 labels"):
        with_parts(json.dumps(body).encode(), PartsOfData(*asked(body)), engine=ENGINE, budget=7000, folder=tmp_path)
    fold = LabelFolding(MEMORY, None)
    fold.merge(LabelFolding(MEMORY, None))
    with pytest.raises(InvalidInput, match="at least one row"):
        fold.finish({"uri": "", "format": "csv", "rows": 0, "files": 1, "bytes": 1, "digest": ""})
    with pytest.raises(ValueError, match="at least one sample"):
        LabelFold(3).finish()


def test_what_went_by_is_not_drawn() -> None:
    fold = LabelFold(5)
    fold.add(*table())
    left = fold.finish()
    assert (left.n_units, left.at_hand) == (ROWS, False)
    with pytest.raises(NotFolded, match="no weights"):
        left.subject(np.ones(ROWS))
    with pytest.raises(NotFolded, match="cannot be chosen"):
        left.part(np.arange(3))
