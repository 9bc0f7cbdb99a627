"""Reports of probabilities and scores in groups that were streamed, beside those of the same rows in memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.bodies.referenced import Asked, NamedRows
from app.api.v1.evaluations.referenced import each_part_again
from app.api.v1.requests.referenced import streamed
from app.api.v1.reread import DataAgain
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput, TooLarge
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.identifiers import new_id
from app.domain.report import Report
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import NewEvaluation, evaluate_alone
from app.services.evaluate.streamed import units
from tests.engine import ENGINE
from tests.services.named_data import with_columns, with_parts

ROWS = 3000
# Less than the rows take, so that their order goes into files.
MEMORY = 1 << 16
RANDOM = np.random.default_rng(21)
GROUPS = (60 * RANDOM.random(ROWS) ** 2).astype(int)
Body = dict[str, Any]


def rows_of(kind: str, classes: list[str]) -> dict[str, Any]:
    """Columns of samples that are more alike within their groups."""
    random = np.random.default_rng(22)
    truth = random.integers(0, len(classes), ROWS)
    known = 3.0 * random.random(60)[GROUPS]
    logits = random.normal(size=(ROWS, len(classes))) + known[:, None] * np.eye(len(classes))[truth]
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    shares = shares.round(2)
    shares[:, 0] = (1.0 - shares[:, 1:].sum(axis=1)).clip(0.0, 1.0)
    found = shares if kind == "probabilities" else logits.round(1)
    named = (
        {"score": found[:, 1]}
        if kind == "scores" and len(classes) == 2
        else {f"{kind}_{place}": found[:, place] for place in range(len(classes))}
    )
    return {"label": np.array(classes)[truth], **named}


def written(folder: Path, kind: str, classes: list[str], groups: Any, **options: Any) -> Body:
    """Parts of Parquet, and a request that names them."""
    (folder / "data").mkdir()
    (folder / "runs").mkdir()
    columns = rows_of(kind, classes)
    table = pa.table({**columns, "who": groups})
    for place in range(0, ROWS, 500):
        pq.write_table(table.slice(place, 500), folder / "data" / f"{place:04}.parquet", row_group_size=200)
    names = [name for name in columns if name != "label"]
    given = {"score": "score"} if names == ["score"] else {kind: names}
    data = {
        "uri": str(folder / "data"),
        "format": "parquet",
        "columns": {"y_true": "label", "group_id": "who", **given},
    }
    return {"input": {"kind": kind, "labels": classes, "data": data}, "options": options}


def asked(body: Body, memory: int) -> Asked:
    data, source = body["input"]["data"], body["input"]
    reference = DataReference(data["uri"], DataFormat.PARQUET, data["columns"])
    return Asked(reference, source["kind"], source["labels"], memory)


def places(body: Body) -> DataPlaces:
    return DataPlaces((body["input"]["data"]["uri"],))


def at_once(body: Body) -> Report:
    """The report of all rows in memory."""
    with pytest.raises(BeyondMemory):
        NamedRows(places(body), asked(body, MEMORY)).whole()
    new = with_columns(json.dumps(body).encode(), NamedRows(places(body), asked(body, 1 << 30)).whole())
    return evaluate_alone(new, None)[0].report


def in_parts(body: Body, folder: Path, budget: int = MEMORY) -> NewEvaluation:
    parts = NamedRows(places(body), asked(body, MEMORY))
    found = with_parts(json.dumps(body).encode(), parts, engine=ENGINE, budget=budget, folder=folder / "runs")
    assert not [*(folder / "runs").iterdir()]
    return found


def near(low: float | None, high: float | None, part: float) -> Any:
    """Limits made of places, or precision, that are interpolated, to a part of their width."""
    assert low is not None
    assert high is not None
    return pytest.approx((low, high), abs=part * (high - low))


def report_of(new: NewEvaluation) -> Report:
    return evaluate_alone(new, None)[0].report


NUMBERS = {
    "numbers": GROUPS - 5,
    "texts": [f"house {one}" for one in GROUPS],
    "both": [str(one) if one % 2 else f"house {one}" for one in GROUPS],
}
FORMS = {
    "two": ("probabilities", ["no", "yes"], "numbers"),
    "three": ("probabilities", ["a", "b", "c"], "texts"),
    "scores": ("scores", ["no", "yes"], "both"),
    "scores of three": ("scores", ["a", "b", "c"], "numbers"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ignored_classes_are_left_out_of_parts(form: tuple[str, list[str], str], tmp_path: Path) -> None:
    """Of some pieces nothing is left; a class that is declared and ignored stays one without samples."""
    kind, classes, names = form
    body = written(tmp_path, kind, classes, NUMBERS[names], metrics=["roc_auc@*"])
    random = np.random.default_rng(8)
    for place, path in enumerate(sorted((tmp_path / "data").iterdir())):
        table = pq.read_table(path)
        void = np.where(
            random.random(table.num_rows) < (0.1 if place % 2 else 1.0), random.choice(["void", "lost"]), ""
        )
        label = np.where(void == "", table["label"].to_numpy(zero_copy_only=False), void)
        pq.write_table(table.set_column(0, "label", pa.array(label)), path, row_group_size=200)
    body["input"]["ignore"] = ["lost", "void", "nowhere"]
    first, second = at_once(body), report_of(in_parts(body, tmp_path))
    assert second.input.facts == first.input.facts
    assert second.input.facts["ignored"]["nowhere"] == 0
    assert sum(second.input.facts["ignored"].values()) > ROWS // 2
    np.testing.assert_array_equal(second.input.confusion_matrix, first.input.confusion_matrix)
    assert second.requested["roc_auc@*"] == pytest.approx(first.requested["roc_auc@*"], rel=1e-12)
    body["input"]["ignore"] += classes
    with pytest.raises(InvalidInput, match="at least one sample of another class") as all_of_them:
        in_parts(body, tmp_path)
    with pytest.raises(InvalidInput, match="at least one sample of another class") as at_hand:
        at_once(body)
    assert all_of_them.value.faults == at_hand.value.faults


def test_one_group_and_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    body = written(tmp_path / "one", "probabilities", ["no", "yes"], ["same"] * ROWS)
    with pytest.raises(InvalidInput) as fault:
        in_parts(body, tmp_path / "one")
    assert (fault.value.faults[0].pointer, fault.value.faults[0].code) == ("/input/data", "one_group")
    (tmp_path / "many").mkdir()
    body = written(tmp_path / "many", "probabilities", ["no", "yes"], np.arange(ROWS) // 2)
    with pytest.raises(TooLarge, match="groups that take at most 65536 bytes"):
        in_parts(body, tmp_path / "many")
    monkeypatch.setattr(units, "MOST_GROUPS", 59)
    with pytest.raises(TooLarge, match="at most 59 groups, got 1500"):
        in_parts(body, tmp_path / "many")


@pytest.mark.parametrize(
    "edge",
    [
        "a class does not occur",
        pytest.param("one group has a class", marks=pytest.mark.slow),
        pytest.param("all are sure and right", marks=pytest.mark.slow),
    ],
)
def test_limits_that_do_not_exist_have_the_same_reasons(edge: str, tmp_path: Path) -> None:
    body = written(tmp_path, "probabilities", ["no", "yes"], GROUPS, intervals="all", interval_method="bootstrap")
    for path in (tmp_path / "data").iterdir():
        table = pq.read_table(path)
        label = table["label"].to_numpy(zero_copy_only=False)
        if edge == "one group has a class":
            label = np.where(table["who"].to_numpy() == 7, label, "no")
        elif edge == "a class does not occur":
            label = np.full(label.size, "yes")
        else:
            for place, name in enumerate(["no", "yes"]):
                column = pa.array((label == name).astype(float))
                table = table.set_column(1 + place, f"probabilities_{place}", column)
        pq.write_table(table.set_column(0, "label", pa.array(label)), path, row_group_size=200)
    first, second = at_once(body), report_of(in_parts(body, tmp_path))
    folds = {name: one for name, one in second.intervals.items() if "all samples at once" not in one.get("reason", "")}
    assert len(folds) > 20
    for name, one in folds.items():
        own = first.intervals[name]
        assert (one["method"].removeprefix("folded_"), one["given"]) == (own["method"], own["given"]), name
        # Kappa of one actual class has no variance but that of rounding, which the order of the groups decides.
        if name == "cohen_kappa" and edge == "a class does not occur":
            continue
        assert one.get("reason") == own.get("reason"), name
        if "seed" not in own and own["low"] is not None:
            # Precision varies more between the points of a curve than places do.
            part = 1e-3 if name.startswith("average_precision") else 1e-4
            assert (one["low"], one["high"]) == near(own["low"], own["high"], part), name
    undefined = {(gap.metric, gap.label, gap.code) for gap in second.undefined if gap.code != "not_folded"}
    assert undefined <= {(gap.metric, gap.label, gap.code) for gap in first.undefined}


def test_groups_of_one_evaluation_may_be_numbers_and_of_another_texts(tmp_path: Path) -> None:
    records = []
    for groups in (GROUPS, GROUPS.astype(str)):
        folder = tmp_path / groups.dtype.kind
        folder.mkdir()
        body = written(folder, "scores", ["no", "yes"], groups)
        new = with_columns(json.dumps(body).encode(), NamedRows(places(body), asked(body, 1 << 30)).whole())
        _, record = evaluate_alone(replace(new, model=ModelRef("m"), dataset=DatasetRef("d")), new_id())
        assert record is not None
        records.append(record)
    again = DataAgain(DataPlaces((str(tmp_path),)), ENGINE, tmp_path)
    found = streamed("scores", each_part_again(records, again, {}), lambda _: {}, again, 1 << 20)
    assert found.source.facts["n_groups"] == records[0].facts["n_groups"] == np.unique(GROUPS).size
    assert found.source.n_samples == 2 * ROWS
