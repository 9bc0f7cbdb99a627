"""Reports of samples with labels in groups that went by in parts, beside those of the same rows at hand."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.api.bodies.referenced import PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.errors import InvalidInput, TooLarge
from app.kernel.folds.labels import OF_SETS, LabelFold, ValuesInGroups
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.folding.labels import LabelFolding
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.parted import merged
from tests.services.test_folded_label_scores import FEW, MEMORY, probabilities
from tests.services.test_folded_labels import LABELS, RESAMPLED, ROWS, asked, check_same, said, table

OF_SAMPLES = ["samples_precision", "samples_recall", "samples_f1", "samples_jaccard", "subset_accuracy", "hamming_loss"]
OF_SCORES = ["label_ranking_average_precision", "label_ranking_loss", "coverage_error", "one_error"]


def households(n_groups: int = 150, seed: int = 8) -> NDArray[np.str_]:
    """Some large, some of one sample."""
    random = np.random.default_rng(seed)
    shares = random.exponential(size=n_groups)
    return np.char.add("house ", random.choice(n_groups, ROWS, p=shares / shares.sum()).astype(str))


def written(folder: Path, what: str, groups: NDArray[np.str_], order: NDArray[np.intp] | None = None) -> Json:
    """Samples of one group that are alike, by sets or by probabilities."""
    chosen = np.arange(ROWS) if order is None else order
    truth, predicted = table()
    # The first sample of a group says what half of them are like.
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    alike = first[codes]
    alike[1::2] = np.arange(1, ROWS, 2)
    said_of = predicted.astype(int) if what == "y_pred" else probabilities(truth)
    folder.mkdir()
    columns = {f"y_true.{label}": truth[alike, place][chosen] for place, label in enumerate(LABELS)}
    columns |= {f"{what}.{label}": said_of[alike, place][chosen] for place, label in enumerate(LABELS)}
    rows = pa.table({**columns, "group_id": groups[chosen]})
    for start in range(0, ROWS, 500):
        pq.write_table(rows.slice(start, 500), folder / f"{start:05}.parquet", row_group_size=200)
    options = {"intervals": "all", "draws": 200, "seed": 1}
    return {"input": {"kind": "multilabel", "labels": LABELS, "data": {"uri": str(folder)}}, "options": options}


def folded(body: Json, folder: Path) -> Json:
    return said(
        with_parts(
            json.dumps(body).encode(), PartsOfData(*asked(body, MEMORY)), engine=ENGINE, budget=FEW, folder=folder
        )
    )


@pytest.mark.parametrize("what", ["y_pred", "probabilities"])
def test_limits_count_the_groups_as_of_all_rows_at_once(what: str, tmp_path: Path) -> None:
    body = written(tmp_path / "data", what, households())
    whole, found = (
        said(with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30)))),
        folded(body, tmp_path),
    )
    limits, expected = found.pop("intervals"), whole.pop("intervals")
    assert limits.keys() == expected.keys()
    drawn = {name for name, one in expected.items() if one["method"].startswith("cluster_bootstrap")}
    # What is picked of several values has limits where these have some.
    drawn |= {name for name, one in expected.items() if one["method"] == "simultaneous"}
    for name in expected.keys() - drawn:
        check_same(limits[name], expected[name], name)
    of_scores = [*OF_SCORES, "roc_auc_ovr_macro", "roc_auc@a", "roc_auc@d", "roc_gini@b"]
    named = {*OF_SAMPLES, *(of_scores if what == "probabilities" else ())}
    assert named <= expected.keys() - drawn
    assert {limits[name]["given"] for name in named} == {"groups"}
    for name in drawn:
        assert limits[name]["low"] is None
        assert limits[name]["reason"] in (RESAMPLED, expected[name].get("reason")), name
    for one, of_whole in zip(*(said_of.pop("headline")["metrics"].items() for said_of in (found, whole)), strict=True):
        assert (one[0], one[1]["value"]) == (of_whole[0], pytest.approx(of_whole[1]["value"], rel=1e-12))
    check_same(found, whole)
    assert found["input"]["n_groups"] == len(np.unique(households()))


@pytest.mark.parametrize("what", ["y_pred", "probabilities"])
def test_random_splits_and_orders_say_the_same(what: str, tmp_path: Path) -> None:
    random, groups = np.random.default_rng(5), households()
    expected = folded(written(tmp_path / "data", what, groups), tmp_path)
    del expected["input"]["data"]
    for number in range(2):
        body = written(tmp_path / str(number), what, groups, random.permutation(ROWS))
        text, parts = json.dumps(body).encode(), PartsOfData(*asked(body, MEMORY))
        with closing(LabelFolding(1 << 19, tmp_path)) as fold:
            merged(fold, partial(LabelFolding, FEW, None), text, parts, random)
            found = said(fold.finish(parts.facts(fold.rows)))
        del found["input"]["data"]
        assert found == expected


def test_the_first_part_may_be_of_one_group_and_all_may_not(tmp_path: Path) -> None:
    names = np.sort(households(3))
    assert len(set(names[:500])) == 1
    assert folded(written(tmp_path / "data", "y_pred", names), tmp_path)["input"]["n_groups"] == 3
    with pytest.raises(InvalidInput, match="at least two groups"):
        folded(written(tmp_path / "one", "probabilities", np.full(ROWS, "all")), tmp_path)


def test_more_groups_than_memory_are_too_many(tmp_path: Path) -> None:
    names = np.char.add("g", np.arange(ROWS).astype(str))
    with pytest.raises(TooLarge, match=f"got {ROWS}, which take"):
        folded(written(tmp_path / "data", "probabilities", names), tmp_path)


def test_labels_that_nobody_has_leave_their_mean_without_limits(tmp_path: Path) -> None:
    body = written(tmp_path / "data", "probabilities", households())
    for path in (tmp_path / "data").iterdir():
        rows = pq.read_table(path)
        none = pa.array(np.zeros(len(rows), dtype=bool))
        pq.write_table(rows.set_column(0, "y_true.a", none), path, row_group_size=200)
    found = folded(body, tmp_path)["intervals"]
    assert "roc_auc@a" not in found
    assert found["roc_auc@b"]["low"] is not None
    assert found["roc_auc_ovr_macro"]["reason"] == "the metric is undefined for these samples"


def test_all_metrics_of_sets_are_added_up() -> None:
    known = catalogue().reported.for_task(Task.MULTILABEL, frozenset({Inputs.LABELS})).metrics
    assert [metric.key for metric in OF_SETS] == [metric.key for metric in known]


def test_samples_with_groups_and_without_do_not_go_together() -> None:
    truth, predicted = table()
    with pytest.raises(ValueError, match="groups of all samples, or of none"):
        LabelFold(5, grouped=True).add(truth, predicted)
    kept = ValuesInGroups(OF_SETS)
    assert (kept.knows("hamming_loss"), kept.knows("recall")) == (True, False)
