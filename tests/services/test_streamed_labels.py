"""Reports of streamed samples with labels, weighted and in groups too, beside those of the same rows in memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, NamedRows
from app.domain.data import DataFormat, DataReference
from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import DataFacts
from app.kernel.samples.label_units import LabelSets
from app.kernel.streamed.labels import LabelMoments, LabelSums, StreamedLabels
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import NewEvaluation, evaluate_alone
from app.services.evaluate.streamed.units import StreamedParts
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.named_data import with_columns, with_parts
from tests.services.streamed import check_same

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow

ROWS = 3000
MEMORY = 1 << 14
BUDGET = 1 << 20
LABELS = ["a", "b", "c", "d", "e"]
RESAMPLED = "they need all samples at once, and there are more than were held in memory"
# Relative: covariances of areas are read off some points of the curves.
AREAS = 1e-4


@dataclass(frozen=True)
class Design:
    """Samples with labels.

    Attributes:
        truth: (n, L).
        said: (n, L), predicted labels or probabilities.
        beside: Columns of weights and groups.
        thresholds: Of probabilities.
    """

    truth: NDArray[np.bool_]
    said: NDArray[Any]
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    thresholds: Any = 0.5

    @property
    def scored(self) -> bool:
        return self.said.dtype.kind == "f"

    def written(self, folder: Path, **options: Any) -> Json:
        """Files of Parquet, and a request that names them."""
        folder.mkdir()
        name = "probabilities" if self.scored else "y_pred"
        columns: dict[str, Any] = {f"y_true.{label}": self.truth[:, place] for place, label in enumerate(LABELS)}
        columns |= {f"{name}.{label}": self.said[:, place] for place, label in enumerate(LABELS)}
        rows = pa.table({**columns, **self.beside})
        for start in range(0, len(self.truth), 500):
            pq.write_table(rows.slice(start, 500), folder / f"{start:05}.parquet", row_group_size=200)
        source: Json = {"kind": "multilabel", "labels": LABELS, "data": {"uri": str(folder)}}
        if self.scored:
            source["thresholds"] = self.thresholds
        return {"input": source, "options": options}

    def reordered(self, order: NDArray[np.intp]) -> "Design":
        beside = {name: column[order] for name, column in self.beside.items()}
        return replace(self, truth=self.truth[order], said=self.said[order], beside=beside)


def table(seed: int = 3) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels that come together, one that is rare and one that is never predicted."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(ROWS, 1))
    truth = common + random.normal(size=(ROWS, 5)) > [0.0, 0.5, 1.0, 3.5, 1.5]
    predicted = truth ^ (random.random((ROWS, 5)) < 0.1)
    predicted[:, 4] = False
    return truth, predicted


def probabilities(truth: NDArray[np.bool_], seed: int = 4) -> NDArray[np.float64]:
    """Better than chance, some of them equal, and those of one label with few values."""
    random = np.random.default_rng(seed)
    found = 1.0 / (1.0 + np.exp(-random.normal(size=truth.shape) - 1.5 * truth))
    found[:, 1] = np.round(found[:, 1], 1)
    found[::7] = np.round(found[::7], 2)
    return np.asarray(found, dtype=np.float64)


def weights(seed: int = 2) -> NDArray[np.float64]:
    """Of all sizes, a fifth of them 0, and all of the first parts."""
    random = np.random.default_rng(seed)
    found = random.lognormal(sigma=1.5, size=ROWS) * (random.random(ROWS) > 0.2)
    found[:250] = 0.0
    return np.asarray(found, dtype=np.float64)


def households(n_groups: int = 150, seed: int = 8) -> NDArray[np.str_]:
    """Some large, some of one sample."""
    random = np.random.default_rng(seed)
    shares = random.exponential(size=n_groups)
    return np.char.add("house ", random.choice(n_groups, ROWS, p=shares / shares.sum()).astype(str))


def design(what: str) -> Design:
    """By the letters in it: probabilities (p), weights (w), groups of samples that are alike (g)."""
    truth, predicted = table()
    truth[:40], truth[40:80] = False, True
    said = probabilities(truth) if "p" in what else predicted
    beside: dict[str, NDArray[Any]] = {"sample_weight": weights()} if "w" in what else {}
    if "g" in what:
        # The first sample of a group says what half of them are like.
        _, first, codes = np.unique(groups := households(), return_index=True, return_inverse=True)
        alike = first[codes]
        alike[1::2] = np.arange(1, ROWS, 2)
        truth, said, beside["group_id"] = truth[alike], said[alike], groups
    return Design(truth, said, beside, [0.5, 0.4, 0.3, 0.2, 0.6])


def asked(body: Json, memory: int = MEMORY) -> tuple[DataPlaces, Asked]:
    uri = body["input"]["data"]["uri"]
    reference = DataReference(uri, DataFormat.PARQUET, body["input"]["data"].get("columns"))
    return DataPlaces((uri,)), Asked(reference, "multilabel", LABELS, memory)


def said(new: NewEvaluation) -> Json:
    answer: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return answer


def streamed(body: Json, folder: Path, budget: int = BUDGET) -> Json:
    text, parts = json.dumps(body).encode(), NamedRows(*asked(body))
    return said(with_parts(text, parts, engine=ENGINE, budget=budget, folder=folder))


def whole(body: Json) -> Json:
    return said(with_columns(json.dumps(body).encode(), NamedRows(*asked(body, 1 << 30)).whole()))


@pytest.mark.parametrize("what", ["p", "w", "pwg"])
def test_what_has_to_be_resampled_has_a_reason(what: str, tmp_path: Path) -> None:
    """What has limits without being asked for has the same when all are asked for: there is nothing to draw from."""
    means = ["mean(roc_auc@a, roc_auc@b)", "mean(one_error, coverage_error)"] if "p" in what else []
    options: Json = {"intervals": "all", "draws": 200, "metrics": [*means, "mean(subset_accuracy, samples_f1)"]}
    body = design(what).written(tmp_path / "data", **options)
    expected, found = whole(body), streamed(body, tmp_path)
    quick = streamed({**body, "options": {}}, tmp_path)["intervals"]
    limits, of_whole = found["intervals"], expected["intervals"]
    assert limits.keys() == of_whole.keys()
    check_same(found["requested"], expected["requested"])
    of_draws = ("bootstrap", "best_cut", "simultaneous")
    drawn = {name for name, one in of_whole.items() if any(word in one["method"] for word in of_draws)}
    for name in limits.keys() - {*options["metrics"]}:
        one = limits[name]
        if name in quick and quick[name]["low"] is not None:
            check_same(one, quick[name], name)
        elif name in drawn:
            assert one["low"] is not None or one["reason"]
        else:
            check_same(
                one,
                of_whole[name],
                name,
                rel=1e-3 if "average_precision" in name else AREAS if "roc_" in name else 1e-9,
            )
    assert {limits[name]["reason"] for name in options["metrics"]} == {RESAMPLED}


@pytest.mark.parametrize("what", ["pw", "pwg"])
def test_the_order_of_the_rows_changes_nothing(what: str, tmp_path: Path) -> None:
    own = design(what)
    expected = streamed(own.written(tmp_path / "data"), tmp_path)
    order = np.random.default_rng(5).permutation(ROWS)
    found = streamed(own.reordered(order).written(tmp_path / "other"), tmp_path)
    del found["input"]["data"], expected["input"]["data"]
    check_same(found, expected)


def test_limits_of_the_mean_area_follow_from_all_labels_together(tmp_path: Path) -> None:
    body = design("p").written(tmp_path / "data", intervals="all", draws=2000, seed=3)
    expected, found = (one["intervals"]["roc_auc_ovr_macro"] for one in (whole(body), streamed(body, tmp_path)))
    width = expected["high"] - expected["low"]
    assert found["high"] - found["low"] == pytest.approx(width, rel=0.1)


def test_what_needs_the_samples_again_is_not_streamed(tmp_path: Path) -> None:
    one, every, known = ["partial_roc_auc(max_fpr=0.3)@a", "partial_roc_auc(max_fpr=0.3)@*", "roc_auc@a"]
    body = design("p").written(tmp_path / "data", metrics=[one, every, known], intervals="all", draws=200)
    expected, found = whole(body), streamed(body, tmp_path)
    assert found["requested"][one] is None
    assert found["requested"][every] == dict.fromkeys(LABELS)
    assert found["requested"][known] == pytest.approx(expected["requested"][known], rel=1e-12)
    gaps = [gap for gap in found["undefined"] if gap["metric"] in (one, every)]
    assert [gap["code"] for gap in gaps] == ["not_folded"] * 6
    assert not {one, every} & found["intervals"].keys()


@pytest.mark.parametrize("what", ["p", "pg"])
def test_labels_that_nobody_or_everybody_has_have_no_areas(what: str, tmp_path: Path) -> None:
    own = design(what)
    own.truth[:, 1], own.truth[:, 2] = False, True
    body = own.written(tmp_path / "data", intervals="all", draws=200)
    expected, found = whole(body), streamed(body, tmp_path)
    check_same(found["undefined"], expected["undefined"])
    check_same(found["per_class"], expected["per_class"])
    assert {gap["code"] for gap in found["undefined"] if gap["metric"] == "roc_auc"} == {
        "no_actual_samples",
        "no_other_samples",
    }
    assert "roc_auc@b" not in found["intervals"]
    assert found["intervals"]["roc_auc@a"]["low"] is not None
    assert found["intervals"]["roc_auc_ovr_macro"]["reason"] == "the metric is undefined for these samples"


def test_sums_of_weights_are_those_of_brute_force() -> None:
    random = np.random.default_rng(7)
    truth, predicted, each = random.random((60, 3)) < 0.5, random.random((60, 3)) < 0.5, random.random(60)
    found = LabelMoments(3, weighted=True)
    for part in (slice(0, 25), slice(25, 60)):
        found.add_labels(truth[part], predicted[part], each[part])
    values, own = random.normal(size=(3, 4)), LabelSets(truth, predicted)
    summed = own.pairs.sums(values)
    away = summed - each @ summed / each.sum()
    squares, plain = found.centred.squares(values), found.plain.squares(values)
    assert squares == pytest.approx((each**2) @ away**2, rel=1e-12)
    effect = 60 * squares / (each.sum() * (each @ away**2))
    assert found.design_effect(squares, plain) == pytest.approx(effect, rel=1e-12)
    assert found.centred.squares(np.ones((3, 4))) == 0.0
    assert found.cells.sum(axis=1) == pytest.approx([each.sum()] * 3, rel=1e-15)
    assert found.sides(1)[0].squares == pytest.approx((each**2) @ truth[:, 1], rel=1e-15)


def test_samples_of_which_one_weighs_something_have_no_limits(tmp_path: Path) -> None:
    each = np.where(np.arange(ROWS) == 1700, 3.0, 0.0)
    body = replace(design("w"), beside={"sample_weight": each}).written(tmp_path / "data")
    check_same(streamed(body, tmp_path), whole(body))


def test_what_weighs_nothing_or_too_much_is_refused(tmp_path: Path) -> None:
    def body(name: str, each: NDArray[Any]) -> Json:
        return replace(design("w"), beside={"sample_weight": each}).written(tmp_path / name)

    with pytest.raises(InvalidInput, match="got nothing but zeros"):
        streamed(body("nothing", np.zeros(ROWS)), tmp_path)
    with pytest.raises(InvalidInput, match=r"sample_weight: expected entries that sum to at most 2\^53"):
        streamed(body("much", np.full(ROWS, 2.0**43)), tmp_path)
    with pytest.raises(InvalidInput, match="row 1234 of those read: expected a finite weight of 0 or more, got -1"):
        streamed(body("less", np.where(np.arange(ROWS) == 1234, -1.0, 1.0)), tmp_path)


def test_the_first_part_may_be_of_one_group_and_all_may_not(tmp_path: Path) -> None:
    names = np.sort(households(3))
    assert len(set(names[:500])) == 1
    own = design("pg")
    body = replace(own, beside={"group_id": names}).written(tmp_path / "data")
    assert streamed(body, tmp_path)["input"]["n_groups"] == 3
    body = replace(own, beside={"group_id": np.full(ROWS, "all")}).written(tmp_path / "one")
    with pytest.raises(InvalidInput, match="at least two groups"):
        streamed(body, tmp_path)


def test_too_many_labels_and_groups_and_no_rows(tmp_path: Path) -> None:
    body = design("").written(tmp_path / "data")
    with pytest.raises(TooLarge, match="got 5 labels"):
        streamed(body, tmp_path, 7000)
    names = np.char.add("g", (np.arange(ROWS) // 2).astype(str))
    body = replace(design("pg"), beside={"group_id": names}).written(tmp_path / "groups")
    with pytest.raises(TooLarge, match=f"got {ROWS // 2}, which take"):
        streamed(body, tmp_path, 1 << 17)
    nothing: DataFacts = {"uri": "", "format": "csv", "rows": 0, "files": 1, "bytes": 1, "digest": ""}
    with ENGINE.opened(tmp_path) as engine, pytest.raises(InvalidInput, match="at least one row"):
        StreamedParts([], lambda _: nothing, engine, BUDGET)


def test_faults_of_rows_are_told_by_their_place_among_all(tmp_path: Path) -> None:
    body = design("").written(tmp_path / "data")
    columns = {f"{name}.{label}": [False, None, True] for name in ("y_true", "y_pred") for label in LABELS}
    pq.write_table(pa.table(columns), tmp_path / "data" / "9.parquet")
    with pytest.raises(InvalidInput, match=f"'y_true.a' at row {ROWS + 1}"):
        streamed(body, tmp_path)


@pytest.mark.parametrize("labels", [LABELS, ["0", "1", "2", "3", "4"]])
def test_what_is_neither_0_nor_1_is_told_by_its_own_row(labels: list[str], tmp_path: Path) -> None:
    """Whole and in parts; columns have a name for each label, so no row is a list of labels, whatever these are."""
    truth, predicted = (members.astype(int) for members in table())
    truth[1234, 2] = 2
    body = Design(truth, predicted).written(tmp_path / "data")
    source = body["input"]
    source["labels"] = labels
    source["data"]["columns"] = {name: [f"{name}.{label}" for label in LABELS] for name in ("y_true", "y_pred")}
    places, large = asked(body, 1 << 30)
    large = replace(large, labels=labels)
    text = json.dumps(body).encode()

    def at_once() -> NewEvaluation:
        return with_columns(text, NamedRows(places, large).whole())

    def in_parts() -> NewEvaluation:
        parts = NamedRows(places, replace(large, memory_bytes=MEMORY))
        return with_parts(text, parts, engine=ENGINE, budget=BUDGET, folder=tmp_path)

    expected = f"y_true, row 1234 of those read: expected 0 or 1 for the label '{labels[2]}', got 2"
    for read in (at_once, in_parts):
        with pytest.raises(InvalidInput, match=expected) as caught:
            read()
        assert caught.value.faults[0].pointer == "/input/data"


def test_streamed_samples_are_not_drawn() -> None:
    sums = LabelSums(5, weighted=False, scored=False)
    sums.add(*table(), None, None)
    left = StreamedLabels(sums)
    assert (left.n_units, left.at_hand) == (ROWS, False)
    with pytest.raises(TypeError, match="no weights"):
        left.subject(np.ones(ROWS))
    with pytest.raises(TypeError, match="cannot be chosen"):
        left.part(np.arange(3))
