"""Reports of probabilities that were streamed, beside those of the same rows in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.bodies.referenced import Asked, NamedRows
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import Evaluation, evaluate_alone
from tests.engine import ENGINE
from tests.services.named_data import with_columns, with_parts

ROWS = 3000
# Much less than the rows take, so that some of their order goes into files.
MEMORY = 4096


def written(folder: Path, classes: list[str], seed: int) -> dict[str, Any]:
    """Parts of Parquet, and a request that names them."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.ones(len(classes)), ROWS).round(3)
    rows[:, 0] = 1.0 - rows[:, 1:].sum(axis=1)
    return stored(folder, classes, random.integers(0, len(classes), ROWS), rows)


def stored(folder: Path, classes: list[str], codes: Codes, rows: Array) -> dict[str, Any]:
    """The same of rows that are given."""
    truth = [classes[code] for code in codes]
    names = [f"p{place}" for place in range(len(classes))]
    table = pa.table({"label": truth, **dict(zip(names, np.clip(rows, 0, 1).T, strict=True))})
    for place in range(0, ROWS, 500):
        pq.write_table(table.slice(place, 500), folder / f"{place:04}.parquet", row_group_size=200)
    columns = {"y_true": "label", "probabilities": names}
    data = {"uri": str(folder), "format": "parquet", "columns": columns}
    return {"input": {"kind": "probabilities", "labels": classes, "data": data}}


def asked(body: dict[str, Any], memory: int) -> Asked:
    data, source = body["input"]["data"], body["input"]
    return Asked(
        DataReference(data["uri"], DataFormat.PARQUET, data["columns"]), "probabilities", source["labels"], memory
    )


def both(body: dict[str, Any], folder: Path) -> tuple[Evaluation, Evaluation]:
    """The evaluation of all rows at once, and that of parts."""
    places = DataPlaces((body["input"]["data"]["uri"],))
    text = json.dumps(body).encode()
    whole = with_columns(text, NamedRows(places, asked(body, 1 << 30)).whole())
    with pytest.raises(BeyondMemory):
        NamedRows(places, asked(body, MEMORY)).whole()
    parts = with_parts(text, NamedRows(places, asked(body, MEMORY)), engine=ENGINE, budget=MEMORY, folder=folder)
    assert not [*folder.iterdir()]
    return evaluate_alone(whole, None)[0], evaluate_alone(parts, None)[0]


def check_groups(own: Any, others: Any, folded: set[str]) -> None:
    """The same values, none for those that do not fold."""
    for group, values in own.items():
        known = {key: value for key, value in values.items() if value is not None and key not in folded}
        found = {key: value for key, value in others[group].items() if value is not None}
        assert found == pytest.approx(known, rel=1e-12, abs=1e-12)
        assert others[group].keys() == values.keys()


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]], ids=["two", "three"])
def test_what_varies_by_rounding_alone_has_a_reason_both_ways(classes: list[str], tmp_path: Path) -> None:
    """Every actual class has the probability .7, and classes are equally frequent: losses are the same."""
    (tmp_path / "data").mkdir()
    (tmp_path / "runs").mkdir()
    codes = np.arange(ROWS) % len(classes)
    rows = np.full((ROWS, len(classes)), 0.3 / (len(classes) - 1))
    rows[np.arange(ROWS), codes] = 0.7
    body = stored(tmp_path / "data", classes, codes, rows)
    body["options"] = {"intervals": "all", "draws": 200}
    first, second = (one.report.intervals for one in both(body, tmp_path / "runs"))
    same = ("log_loss", "brier_score", "brier_skill_score", "spherical_score", "au_mcp", "au_imcp")
    for name in (*same, *(f"mean_phi@{label}" for label in classes)):
        assert first[name]["low"] is None, name
        assert "variance is zero" in first[name]["reason"]
        assert {**first[name], "value": None} == {**second[name], "value": None}, name


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]], ids=["two", "three"])
def test_areas_of_equal_scores_have_the_same_limits_both_ways(classes: list[str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "runs").mkdir()
    rows = np.full((ROWS, len(classes)), 0.7 / (len(classes) - 1))
    rows[:, -1] = 0.3
    codes = np.minimum(np.arange(ROWS) % 7, len(classes) - 1)
    body = stored(tmp_path / "data", classes, codes, rows)
    body["options"] = {"intervals": "all", "draws": 200}
    first, second = (one.report.intervals for one in both(body, tmp_path / "runs"))
    for name in ("roc_auc_ovr_macro", "roc_auc_ovr_weighted", *(f"roc_{key}@{classes[1]}" for key in ("auc", "gini"))):
        own, other = first[name], second[name]
        assert (own["method"], own.get("reason")) == (other["method"], other.get("reason")), name
        ends = [(one["low"], one["high"]) for one in (own, other) if one["low"] is not None and one["high"] is not None]
        assert len(ends) == (0 if len(classes) == 3 and "ovr" in name else 2)
        for low, high in ends:
            assert (low, high) == pytest.approx(ends[0], rel=1e-9), name
            assert high - low > 0.01


def test_a_good_order_that_misses_a_class_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "runs").mkdir()
    random = np.random.default_rng(8)
    codes = (random.random(ROWS) < 0.05).astype(np.intp)
    of_one = 1.0 / (1.0 + np.exp(4.0 - 3.0 * codes - random.normal(size=ROWS)))
    of_one[:4] = 0.5
    rows = np.stack([1.0 - of_one, of_one], axis=1)
    reports = [one.report for one in both(stored(tmp_path / "data", ["fine", "fraud"], codes, rows), tmp_path / "runs")]
    told = [{one.code: one for one in report.findings} for report in reports]
    for code in ("auc_hides_class", "ties_broken_by_order"):
        whole, parts = (found[code] for found in told)
        assert parts.message == whole.message
    (whole,), (parts,) = (found["auc_hides_class"].evidence["classes"] for found in told)
    assert whole["class"] == parts["class"] == "fraud"
    assert parts["auc_low"] == pytest.approx(whole["auc_low"], rel=1e-9)


def test_a_class_that_does_not_occur_has_its_own_reason(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "runs").mkdir()
    body = written(tmp_path / "data", ["a", "b"], 4)
    body["input"] |= {"labels": ["a", "b"], "data": body["input"]["data"] | {"filter": "label = 'a'"}}
    places = DataPlaces((str(tmp_path),))
    data = body["input"]["data"]
    reference = DataReference(data["uri"], DataFormat.PARQUET, data["columns"], data["filter"])
    parts = NamedRows(places, Asked(reference, "probabilities", ["a", "b"], MEMORY))
    found = with_parts(json.dumps(body).encode(), parts, engine=ENGINE, budget=MEMORY, folder=tmp_path / "runs").report
    assert found is not None
    gaps = {(gap.metric, gap.label): gap for gap in found.undefined}
    assert gaps["roc_auc", "b"].code != "not_folded"
    assert "b" in gaps["roc_auc", "b"].reason


def test_faults_of_rows_are_told_by_their_place_among_all(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    body = written(tmp_path / "data", ["a", "b"], 5)
    wrong = pa.table({"label": ["a", "b", "a"], "p0": [0.5, 0.5, 0.9], "p1": [0.5, 0.5, 0.9]})
    pq.write_table(wrong, tmp_path / "data" / "9.parquet")
    parts = NamedRows(DataPlaces((str(tmp_path),)), asked(body, MEMORY))
    with pytest.raises(InvalidInput, match=f"row {ROWS + 2} of those read"):
        with_parts(json.dumps(body).encode(), parts, engine=ENGINE, budget=MEMORY, folder=tmp_path)


@pytest.mark.parametrize("positive", ["no", "yes"])
@pytest.mark.parametrize("inside", [True, False], ids=["within 0 and 1", "anywhere"])
def test_scores_fold_too(inside: bool, positive: str, tmp_path: Path) -> None:
    """The threshold that nobody names is that of all scores, although those of most parts lie between 0 and 1."""
    (tmp_path / "data").mkdir()
    (tmp_path / "runs").mkdir()
    random = np.random.default_rng(9)
    scores = random.random(ROWS)
    if not inside:
        scores[-40:] = random.normal(size=40)
    truth = np.where(random.random(ROWS) < scores, "yes", "no")
    for place in range(0, ROWS, 500):
        part = slice(place, place + 500)
        pq.write_table(
            pa.table({"t": truth[part], "s": scores[part]}),
            tmp_path / "data" / f"{place:04}.parquet",
            row_group_size=200,
        )
    columns = {"y_true": "t", "score": "s"}
    data = {"uri": str(tmp_path / "data"), "format": "parquet", "columns": columns}
    source = {"kind": "scores", "labels": ["no", "yes"], "positive": positive, "data": data}
    body = {"input": source, "options": {"metrics": ["roc_auc@yes", "average_precision@*", "log_loss"]}}
    reference, places = DataReference(str(tmp_path / "data"), DataFormat.PARQUET, columns), DataPlaces((str(tmp_path),))
    text, few = json.dumps(body).encode(), Asked(reference, "scores", ["no", "yes"], MEMORY)
    assert few.streams
    whole = evaluate_alone(
        with_columns(text, NamedRows(places, Asked(reference, "scores", ["no", "yes"], 1 << 30)).whole()), None
    )
    parts = with_parts(text, NamedRows(places, few), engine=ENGINE, budget=MEMORY, folder=tmp_path / "runs")
    first, second = whole[0].report, evaluate_alone(parts, None)[0].report
    assert second.input.facts == first.input.facts
    assert second.input.facts["threshold"] == (0.5 if inside else 0.0)
    np.testing.assert_array_equal(second.input.confusion_matrix, first.input.confusion_matrix)
    folded = {gap.metric for gap in second.undefined if gap.code == "not_folded"}
    assert not folded & {"roc_auc", "average_precision", "h_measure", "ks_statistic", "log_loss", "brier_score"}
    gaps = {(gap.metric, gap.code, gap.label) for gap in second.undefined if gap.code != "not_folded"}
    assert gaps == {(gap.metric, gap.code, gap.label) for gap in first.undefined}
    check_groups(first.metrics, second.metrics, folded)
    for label in ("no", "yes"):
        check_groups(first.per_class[label], second.per_class[label], folded)
    for name, value in first.requested.items():
        assert second.requested[name] == (None if value is None else pytest.approx(value, rel=1e-12))
    own, other = (one.intervals["roc_auc@yes"] for one in (first, second))
    assert (own["method"], own["given"]) == (other["method"], other["given"])
    assert (own["low"], own["high"]) == pytest.approx((other["low"], other["high"]), rel=1e-9)
