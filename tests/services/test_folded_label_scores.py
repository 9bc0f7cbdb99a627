"""Reports of probabilities of labels that went by in parts, beside those of the same rows at hand."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.api.bodies.referenced import PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.errors import BeyondMemory, TooLarge
from app.kernel.folds.labels import OF_SAMPLES, LabelFold, LabelScoresFold
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.samples.label_units import LabelScores
from app.services.evaluate.folding.labels import LabelFolding
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.parted import merged
from tests.services.test_folded_labels import LABELS, RESAMPLED, ROWS, asked, check_same, said, table

MEMORY = 1 << 18
FEW = 1 << 17


def probabilities(truth: NDArray[np.bool_], seed: int = 4) -> NDArray[np.float64]:
    """Better than chance, some of them equal, and those of one label with few values."""
    random = np.random.default_rng(seed)
    found = 1.0 / (1.0 + np.exp(-random.normal(size=truth.shape) - 1.5 * truth))
    found[:, 1] = np.round(found[:, 1], 1)
    found[::7] = np.round(found[::7], 2)
    return found


def written(
    folder: Path, truth: NDArray[np.bool_], scores: NDArray[np.float64], thresholds: Any = 0.5, **options: Any
) -> Json:
    folder.mkdir()
    columns: dict[str, Any] = {f"y_true.{label}": truth[:, place] for place, label in enumerate(LABELS)}
    columns |= {f"probabilities.{label}": scores[:, place] for place, label in enumerate(LABELS)}
    rows = pa.table(columns)
    for start in range(0, len(truth), 500):
        pq.write_table(rows.slice(start, 500), folder / f"{start:05}.parquet", row_group_size=200)
    source = {"kind": "multilabel", "labels": LABELS, "thresholds": thresholds, "data": {"uri": str(folder)}}
    return {"input": source, "options": options}


def whole_and_folded(body: Json, folder: Path, budget: int = FEW) -> tuple[Json, Json]:
    text = json.dumps(body).encode()
    whole = said(with_columns(text, read_data(*asked(body, 1 << 30))))
    with pytest.raises(BeyondMemory):
        read_data(*asked(body, 1 << 14))
    return whole, said(with_parts(text, PartsOfData(*asked(body, MEMORY)), engine=ENGINE, budget=budget, folder=folder))


def test_the_report_is_that_of_all_rows_at_once(tmp_path: Path) -> None:
    truth, _ = table()
    truth[:40] = False
    truth[40:80] = True
    body = written(tmp_path / "data", truth, probabilities(truth), [0.5, 0.4, 0.3, 0.2, 0.6])
    whole, found = whole_and_folded(body, tmp_path)
    resampled = {name for name, one in found["intervals"].items() if one.get("reason") == RESAMPLED}
    assert not resampled & {"h_mean", "label_ranking_loss", "coverage_error", "samples_f1", "recall@a"}
    for name in resampled:
        assert whole["intervals"].pop(name)["method"].startswith("bootstrap")
        del found["intervals"][name]
    check_same(found, whole)
    assert found["metrics"]["prevalence_sensitive"]["one_error"] > 0
    assert found["intervals"]["label_ranking_average_precision"]["low"] is not None
    assert found["input"]["threshold"] == [0.5, 0.4, 0.3, 0.2, 0.6]


def test_what_has_to_be_resampled_has_a_reason(tmp_path: Path) -> None:
    truth, _ = table()
    means = ["mean(roc_auc@a, roc_auc@b)", "mean(subset_accuracy, samples_f1)", "mean(one_error, coverage_error)"]
    body = written(tmp_path / "data", truth, probabilities(truth), intervals="all", draws=200, metrics=means)
    whole, found = whole_and_folded(body, tmp_path)
    assert found["intervals"].keys() == whole["intervals"].keys()
    check_same(found["metrics"], whole["metrics"])
    check_same(found["requested"], whole["requested"])
    for name in ("roc_auc@a", "roc_auc@d", "roc_gini@b", "coverage_error", "one_error", "hamming_loss"):
        check_same(found["intervals"][name], whole["intervals"][name], name)
    for name in (*means, "roc_auc_ovr_macro", "average_precision@a", "ks_statistic@c"):
        one = found["intervals"][name]
        assert (one["low"], one["reason"]) == (None, RESAMPLED), name


def test_what_needs_the_samples_again_is_not_folded(tmp_path: Path) -> None:
    truth, _ = table()
    options = {"metrics": ["partial_roc_auc(max_fpr=0.3)@a", "partial_roc_auc(max_fpr=0.3)@*", "roc_auc@a"]}
    body = written(tmp_path / "data", truth, probabilities(truth), **options, intervals="all", draws=200)
    whole, found = whole_and_folded(body, tmp_path)
    one, every, known = options["metrics"]
    assert found["requested"][one] is None
    assert found["requested"][every] == dict.fromkeys(LABELS)
    assert found["requested"][known] == pytest.approx(whole["requested"][known], rel=1e-12)
    gaps = [gap for gap in found["undefined"] if gap["metric"] in (one, every)]
    assert [gap["code"] for gap in gaps] == ["not_folded"] * 6
    assert not {one, every} & found["intervals"].keys()


def test_labels_that_nobody_or_everybody_has_have_no_areas(tmp_path: Path) -> None:
    truth, _ = table()
    scores = probabilities(truth)
    truth[:, 1], truth[:, 2] = False, True
    whole, found = whole_and_folded(written(tmp_path / "data", truth, scores), tmp_path)
    check_same(found["undefined"], whole["undefined"])
    check_same(found["per_class"], whole["per_class"])
    assert {gap["code"] for gap in found["undefined"] if gap["metric"] == "roc_auc"} == {
        "no_actual_samples",
        "no_other_samples",
    }


@pytest.mark.parametrize("budget", [FEW, 1 << 22])
def test_random_splits_and_orders_say_the_same(budget: int, tmp_path: Path) -> None:
    random, (truth, _) = np.random.default_rng(5), table()
    scores, options = probabilities(truth), {"intervals": "all", "draws": 200}
    text = json.dumps(body := written(tmp_path / "data", truth, scores, **options)).encode()
    expected = said(with_parts(text, PartsOfData(*asked(body, MEMORY)), engine=ENGINE, budget=FEW, folder=tmp_path))
    del expected["input"]["data"]
    for number in range(3):
        chosen = random.permutation(ROWS)
        body = written(tmp_path / str(number), truth[chosen], scores[chosen], **options)
        text, parts = json.dumps(body).encode(), PartsOfData(*asked(body, MEMORY))
        with closing(LabelFolding(budget, tmp_path)) as fold:
            merged(fold, partial(LabelFolding, budget, None), text, parts, random)
            found = said(fold.finish(parts.facts(fold.rows)))
        assert found["input"].pop("data")["rows"] == found["input"]["rows"] == ROWS
        assert found == expected
    assert not [*tmp_path.glob("run-*")]


def test_a_sample_says_the_same_alone_and_beside_others() -> None:
    """To the last bit, since sums do not depend on what came together."""
    random = np.random.default_rng(1)
    for n_labels in (2, 3, 7, 8, 9, 130, 300):
        truth, scores = random.random((40, n_labels)) < 0.4, np.round(random.random((40, n_labels)), 2)
        for metric in OF_SAMPLES:
            terms: Any = metric.card.inference.terms
            alone = [terms(LabelScores(truth[[row]], scores[[row]])).above[0] for row in range(40)]
            assert np.array_equal(terms(LabelScores(truth, scores)).above, alone)
            assert (terms(LabelScores(truth, scores)).below == 1).all()


def test_all_metrics_of_how_samples_order_their_labels_are_added_up() -> None:
    known = catalogue().reported.for_task(Task.MULTILABEL, frozenset({Inputs.LABEL_SCORES})).metrics
    assert [metric.key for metric in OF_SAMPLES] == [metric.key for metric in known]


def test_one_sample_and_two_labels(tmp_path: Path) -> None:
    with LabelScoresFold(2, 1 << 16, tmp_path) as fold:
        fold.add(np.array([[True, False]]), np.array([[0.4, 0.6]]))
        left = fold.finish()
        assert (left.n_samples, left.n.item(), left.rest.tolist()) == (1, 1.0, [0.0, 1.0])
        assert not left.is_mirrored
        assert np.isnan(left.in_samples.sums["one_error"].variance)
    with pytest.raises(ValueError, match="at least one sample"):
        LabelScoresFold(2, 1 << 16, None).finish()


def test_too_many_labels_and_samples_without_probabilities(tmp_path: Path) -> None:
    truth, predicted = table()
    body = written(tmp_path / "data", truth, probabilities(truth))
    text = json.dumps(body).encode()
    with pytest.raises(TooLarge, match="orders of 16384 bytes"):
        with_parts(text, PartsOfData(*asked(body, MEMORY)), engine=ENGINE, budget=80_000, folder=tmp_path)
    with pytest.raises(ValueError, match="of all samples, or of none"):
        LabelFold(5).add(truth, predicted, probabilities(truth))


def test_states_without_samples_are_merged_and_different_ones_are_not() -> None:
    truth, predicted = np.eye(3, dtype=bool), np.ones((3, 3), dtype=bool)
    empty, other = LabelFold(3), LabelFold(3)
    empty.add(truth[:0], predicted[:0])
    empty.merge(LabelFold(3))
    with pytest.raises(ValueError, match="at least one sample"):
        empty.finish()
    other.add(truth, predicted)
    empty.merge(other)
    assert empty.finish().n_units == 3
    scored = LabelFold(3, LabelScoresFold(3, 1 << 16, None))
    scored.add(truth, predicted, np.full((3, 3), 0.5))
    for one, two, named in (
        (LabelFold(3), LabelFold(4), "of 3 and of 4 labels"),
        (LabelFold(3), scored, "with probabilities and without"),
        (scored, LabelFold(3), "with probabilities and without"),
        (LabelFold(3), LabelFold(3, grouped=True), "with groups and without"),
    ):
        with pytest.raises(ValueError, match=named):
            one.merge(two)
    assert scored.finish().n_units == 3


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1])
def test_what_is_refused_is_not_counted(wrong: float) -> None:
    truth, refused = np.ones((2, 3), dtype=bool), np.array([[0.1, wrong, 0.2], [0.1, 0.2, 0.3]])
    alone = LabelScoresFold(3, 1 << 16, None)
    fold = LabelFold(3, LabelScoresFold(3, 1 << 16, None))
    for rows, named in ((refused, "numbers in"), (refused[:1], "expected two tables")):
        with pytest.raises(ValueError, match=named):
            alone.add(truth, rows)
        with pytest.raises(ValueError, match=named):
            fold.add(truth, truth, rows)
    with pytest.raises(ValueError, match="expected two tables"):
        fold.add(truth, truth[:1], np.full((2, 3), 0.5))
    assert alone.rows == 0
    fold.add(truth, truth, np.full((2, 3), 0.5))
    left = fold.finish()
    assert (left.n_units, left.subject().parts[Inputs.PROBABILITIES].n_samples) == (2, 2)
