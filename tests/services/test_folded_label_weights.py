"""Reports of weighted samples with labels that went by in parts, beside those of the same rows at hand."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.api.bodies.referenced import PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.errors import BeyondMemory, InvalidInput, TooLarge
from app.kernel.folds.labels import WeightedLabelFold
from app.kernel.samples.label_units import LabelSets
from app.services.evaluate.folding.weighted_labels import WeightedLabelFolding
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.parted import merged
from tests.services.test_folded_labels import LABELS, RESAMPLED, ROWS, asked, check_same, said, table

BUDGET = 1 << 20


def weights(seed: int = 2) -> NDArray[np.float64]:
    """Of all sizes, a fifth of them 0, and all of the first pieces."""
    random = np.random.default_rng(seed)
    found = random.lognormal(sigma=1.5, size=ROWS) * (random.random(ROWS) > 0.2)
    found[:250] = 0.0
    return found


def written(folder: Path, each: NDArray[np.float64], order: NDArray[np.intp] | None = None, **options: object) -> Json:
    truth, predicted = table()
    chosen = np.arange(ROWS) if order is None else order
    folder.mkdir()
    columns = {f"y_true.{label}": truth[chosen, place] for place, label in enumerate(LABELS)}
    columns |= {f"y_pred.{label}": predicted[chosen, place] for place, label in enumerate(LABELS)}
    rows = pa.table({**columns, "sample_weight": each[chosen]})
    for start in range(0, ROWS, 500):
        pq.write_table(rows.slice(start, 500), folder / f"{start:05}.parquet", row_group_size=200)
    return {"input": {"kind": "multilabel", "labels": LABELS, "data": {"uri": str(folder)}}, "options": options}


def folded(body: Json, folder: Path, budget: int = BUDGET) -> Json:
    return said(
        with_parts(json.dumps(body).encode(), PartsOfData(*asked(body)), engine=ENGINE, budget=budget, folder=folder)
    )


def whole(body: Json) -> Json:
    return said(with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30))))


@pytest.mark.parametrize("alike", [False, True])
def test_the_report_is_that_of_all_rows_at_once(alike: bool, tmp_path: Path) -> None:
    each = np.where(weights() > 0, 2.5, 0.0) if alike else weights()
    body = written(tmp_path / "data", each, metrics=["gps(recall@a, precision@a)", "samples_f1"])
    expected, found = whole(body), folded(body, tmp_path)
    resampled = {name for name, one in found["intervals"].items() if one.get("reason") == RESAMPLED}
    assert not resampled & {"h_mean", "macro_f1", "subset_accuracy", "samples_f1", "recall@a", "precision@b"}
    for name in resampled:
        assert "bootstrap" in expected["intervals"].pop(name)["method"]
        del found["intervals"][name]
    check_same(found, expected)
    assert found["weights"]["n_samples"] == np.count_nonzero(each)
    assert found["input"]["rows"] == ROWS
    assert found["intervals"]["recall@a"]["method"] == "weighted_wilson"


def test_random_splits_and_orders_say_the_same(tmp_path: Path) -> None:
    random, each = np.random.default_rng(5), weights()
    expected = folded(written(tmp_path / "data", each), tmp_path)
    del expected["input"]["data"]
    for number in range(3):
        body = written(tmp_path / str(number), each, random.permutation(ROWS))
        text, parts = json.dumps(body).encode(), PartsOfData(*asked(body))
        fold = WeightedLabelFolding(BUDGET)
        merged(fold, partial(WeightedLabelFolding, BUDGET), text, parts, random)
        found = said(fold.finish(parts.facts(fold.rows)))
        fold.close()
        del found["input"]["data"]
        assert found == expected


def test_sums_of_weights_are_those_of_brute_force() -> None:
    random = np.random.default_rng(7)
    truth, predicted, each = random.random((60, 3)) < 0.5, random.random((60, 3)) < 0.5, random.random(60)
    fold = WeightedLabelFold(3)
    fold.add(truth, predicted, each)
    left = fold.finish().pairs
    values, own = random.normal(size=(3, 4)), LabelSets(truth, predicted)
    summed = own.pairs.sums(values)
    away = summed - each @ summed / each.sum()
    assert left.squares(values) == pytest.approx((each**2) @ away**2, rel=1e-12)
    effect = 60 * left.squares(values) / (each.sum() * (each @ away**2))
    assert left.design_effect(values) == pytest.approx(effect, rel=1e-12)
    assert np.isnan(left.design_effect(np.ones((3, 4))))
    assert left.cells.sum(axis=1) == pytest.approx([each.sum()] * 3, rel=1e-15)


def test_samples_of_which_one_weighs_something_have_no_limits(tmp_path: Path) -> None:
    each = np.zeros(ROWS)
    each[1700] = 3.0
    body = written(tmp_path / "data", each)
    check_same(folded(body, tmp_path), whole(body))


def test_what_weighs_nothing_or_too_much_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="got none above 0"):
        folded(written(tmp_path / "nothing", np.zeros(ROWS)), tmp_path)
    with pytest.raises(InvalidInput, match=r"sample_weight: expected entries that sum to at most 2\^53"):
        folded(written(tmp_path / "much", np.full(ROWS, 2.0**43)), tmp_path)
    with pytest.raises(InvalidInput, match="row 1234 of those read: expected a finite weight of 0 or more, got -1"):
        folded(written(tmp_path / "less", np.where(np.arange(ROWS) == 1234, -1.0, 1.0)), tmp_path)
    with pytest.raises(TooLarge, match="where samples have weights"):
        folded(written(tmp_path / "labels", weights()), tmp_path, budget=400_000)
    with pytest.raises(ValueError, match="at least one sample"):
        WeightedLabelFold(3).finish()
    fold = WeightedLabelFolding(BUDGET)
    fold.merge(WeightedLabelFolding(BUDGET))
    with pytest.raises(InvalidInput, match="at least one row"):
        fold.finish({"uri": "", "format": "csv", "rows": 0, "files": 1, "bytes": 1, "digest": ""})


@pytest.mark.parametrize(("column", "why"), [("group_id", "not with both"), ("probabilities", "without probabilities")])
def test_weights_go_by_without_groups_and_probabilities(column: str, why: str, tmp_path: Path) -> None:
    body = written(tmp_path / "data", weights())
    names: Json = {kind: [f"{kind}.{one}" for one in LABELS] for kind in ("y_true", "y_pred")}
    names["sample_weight"] = "sample_weight"
    if column == "group_id":
        names[column] = "y_true.a"
    else:
        names[column] = names.pop("y_pred")
    body["input"]["data"]["columns"] = names
    with pytest.raises(BeyondMemory, match=why):
        PartsOfData(*asked(body))
