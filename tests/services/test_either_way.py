"""Reports on streamed rows, member by member beside those of the same rows in memory: all kinds in all designs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.answers import write_json
from app.api.bodies.referenced import Asked
from app.api.v1.evaluations import referenced
from app.domain.data import DataFormat, DataReference
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import evaluate_alone
from tests.engine import ENGINE
from tests.services.named_data import new_evaluation

Json = dict[str, Any]
ROWS = 3000
RANDOM = np.random.default_rng(11)
CODES = RANDOM.integers(0, 3, ROWS)
SHARES = RANDOM.dirichlet(np.ones(3), ROWS) + 0.5 * np.eye(3)[CODES] * RANDOM.random((ROWS, 1))
SHARES = (SHARES / SHARES.sum(axis=1, keepdims=True)).round(3)
SHARES[:, 0] = 1.0 - SHARES[:, 1:].sum(axis=1)
SURE = (1.0 / (1.0 + np.exp(-RANDOM.normal(size=ROWS) - (CODES > 0)))).round(3)
LABELS = RANDOM.normal(size=(ROWS, 3)) + RANDOM.normal(size=(ROWS, 1)) > [0.0, 0.5, 1.5]
GUESSED = LABELS ^ (RANDOM.random((ROWS, 3)) < 0.1)
SAID = (1.0 / (1.0 + np.exp(-RANDOM.normal(size=(ROWS, 3)) - 1.5 * LABELS))).round(3)
NAMES = ["a", "b", "c"]
KIND = np.array(NAMES)[CODES]
OF_TWO = np.where(CODES > 0, "yes", "no")
COLUMNS: dict[str, Any] = {
    "kind": KIND,
    "guess": np.where(RANDOM.random(ROWS) < 0.7, KIND, np.array(NAMES)[RANDOM.integers(0, 3, ROWS)]),
    "two": OF_TWO,
    "p": SURE,
    "q": 1.0 - SURE,
    "score": np.log(SURE + 0.001).round(2),
    **{f"p{place}": own for place, own in enumerate(SHARES.clip(0.0, 1.0).T)},
    **{f"s{place}": own for place, own in enumerate(SHARES.T + RANDOM.normal(size=(3, ROWS)).round(2))},
    **{f"t{place}": own for place, own in enumerate(LABELS.T)},
    **{
        f"g{place}": own
        for place, own in enumerate(((LABELS ^ (RANDOM.random((ROWS, 3)) < 0.1)) & [True, True, False]).T)
    },
    **{f"l{place}": own for place, own in enumerate(SAID.T)},
    "query": [f"q{one}" for one in RANDOM.integers(0, 120, ROWS)],
    "grade": np.floor(4.0 * SURE * RANDOM.random(ROWS)),
    # Nothing of the first piece counts.
    "w": RANDOM.lognormal(0.0, 1.0, ROWS) * (RANDOM.random(ROWS) > 0.1) * (np.arange(ROWS) >= 500),
    "row": np.arange(ROWS),
    "even": np.full(ROWS, 0.1),
    "house": np.char.add("house ", RANDOM.integers(0, 200, ROWS).astype(str)),
}
OF_CLASSES = {"labels": NAMES}
KINDS: dict[str, tuple[Json, Json]] = {
    "predictions": ({"kind": "predictions"}, {"y_true": "kind", "y_pred": "guess"}),
    "probabilities of two": (
        {"kind": "probabilities", "labels": ["no", "yes"]},
        {"y_true": "two", "probabilities": ["q", "p"]},
    ),
    "probabilities of three": (
        {"kind": "probabilities", **OF_CLASSES},
        {"y_true": "kind", "probabilities": ["p0", "p1", "p2"]},
    ),
    "scores of two": ({"kind": "scores", "labels": ["no", "yes"]}, {"y_true": "two", "score": "score"}),
    # Each says the other as probabilities do.
    "scores of two columns": (
        {"kind": "scores", "labels": ["no", "yes"]},
        {"y_true": "two", "score": ["q", "p"]},
    ),
    "scores of three": ({"kind": "scores", **OF_CLASSES}, {"y_true": "kind", "score": ["s0", "s1", "s2"]}),
    "labels": (
        {"kind": "multilabel", **OF_CLASSES},
        {"y_true": ["t0", "t1", "t2"], "y_pred": ["g0", "g1", "g2"]},
    ),
    "probabilities of labels": (
        {"kind": "multilabel", **OF_CLASSES, "thresholds": [0.5, 0.4, 0.3]},
        {"y_true": ["t0", "t1", "t2"], "probabilities": ["l0", "l1", "l2"]},
    ),
    "scores of three labels": (
        {"kind": "multilabel", **OF_CLASSES, "thresholds": [0.0, 0.4, -0.1]},
        {"y_true": ["t0", "t1", "t2"], "score": ["s0", "s1", "s2"]},
    ),
    "ranking": ({"kind": "ranking"}, {"query_id": "query", "relevance": "grade", "score": "p"}),
}
DESIGNS: dict[str, Json] = {
    "plain": {},
    "weights": {"sample_weight": "w"},
    "groups": {"group_id": "house"},
    "both": {"sample_weight": "w", "group_id": "house"},
}
# Weights that are all the same.
EVEN = {"even": {}, "even in groups": {"group_id": "house"}}
DESIGNS |= {name: {"sample_weight": "even", **beside} for name, beside in EVEN.items()}


# What goes wrong with weights or groups alone goes wrong with both.
def is_slow(kind: str, design: str) -> bool:
    """Is it left to the slow tests? Rows with weights and groups pass what those with one of them pass, and two classes
    most of what three do.
    """
    of_classes = kind.startswith(("scores", "probabilities"))
    return design in ("weights", "groups") or (of_classes and (design == "both" or "three" in kind))


CASES = [
    pytest.param(kind, design, marks=[pytest.mark.slow] if is_slow(kind, design) else [])
    for kind in KINDS
    for design in DESIGNS
    if design not in EVEN and (kind != "ranking" or design == "plain")
]
# Limits of areas, in their width.
AREAS = 1e-4
# Values that need all samples at once, or another reading.
LEFT_OUT = {
    "au_imcp_trapezoid",
    "macro_pr_auc",
    "roc_auc_ovo_macro",
    "roc_auc_ovo_weighted",
    "roc_auc_ovr_micro",
    "top_k_accuracy",
}
# Said of streamed rows alone.
ABOUT_STREAMING = {"samples_folded", "sample_ids_unchecked"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("either") / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), place, row_group_size=500)
    return place


def report(file: Path, kind: str, design: str, options: Json, *, streamed: bool) -> Json:
    members, columns = KINDS[kind]
    named = {**columns, **DESIGNS[design]}
    body = {
        "input": {**members, "data": {"uri": str(file), "format": "parquet", "columns": named}},
        "options": options,
    }
    asked = Asked(
        DataReference(str(file), DataFormat.PARQUET, named),
        members["kind"],
        members.get("labels"),
        1 << 30,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(referenced, "STREAMED_FROM", 100 if streamed else ROWS)
        text = json.dumps(body).encode()
        new = new_evaluation(text, DataPlaces((str(file),)), asked, ENGINE, file.parent / "spilled")
    found: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return found


def differences(own: Any, other: Any, where: str = "") -> list[str]:
    """Places where two answers are not the same to a rounding."""
    if isinstance(own, dict) and isinstance(other, dict):
        missing = [f"{where}/{name}: one has it" for name in own.keys() ^ other.keys()]
        both = own.keys() & other.keys()
        return missing + [line for name in both for line in differences(own[name], other[name], f"{where}/{name}")]
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        pairs = enumerate(zip(own, other, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{where}/{place}")]
    if isinstance(own, float) and isinstance(other, float):
        same = own == pytest.approx(other, rel=1e-11, abs=1e-12)
    else:
        same = own == other
    return [] if same else [f"{where}: {other} in memory, {own} streamed"]


def without_limits(one: Json) -> Json:
    return {name: value for name, value in one.items() if name not in ("low", "high", "method")}


def differences_of_limits(name: str, own: Json, other: Json) -> list[str]:
    """Limits by a closed form are the same, those that were drawn have the same distribution or a reason."""
    if own["low"] is None and own["high"] is None:
        folded = own.get("reason") == "they need all samples at once, and there are more than were held in memory"
        drawn = "bootstrap" in other["method"] or other["method"] in ("posterior", "simultaneous")
        return [] if own.get("reason") == other.get("reason") or (folded and drawn) else [f"{name}: {own}, {other}"]
    if own["method"].removeprefix("folded_") != other["method"]:
        return [f"{name}: {own['method']} and {other['method']}"]
    width, drawn = other["high"] - other["low"], own["method"].startswith("folded_")
    # Draws of their own, of which the gaps of calibration vary most.
    near = (0.4 if "inverted" in own["method"] else 0.25) if drawn else AREAS
    if "average_precision" in name:
        # Precision between the points of a curve is interpolated.
        near = 1e-3
    # What is 0 but for a rounding has rounded limits.
    off = max(abs(own[end] - other[end]) for end in ("low", "high")) / width if width > 1e-12 else 0.0
    found = [] if off <= near else [f"{name}: limits are off by {off} of their width"]
    return found if drawn else found + differences(without_limits(own), without_limits(other), name)


def by_chance(one: Json) -> Json:
    """What was simulated, apart from the rest."""
    simulated: Json = (one.get("probabilities") or {}).pop("calibration", {})
    for finding in one["findings"]:
        if finding["code"] == "miscalibrated":
            del finding["message"], finding["evidence"]["expected_if_calibrated"], finding["evidence"]["p_value"]
    return simulated


def options_of(kind: str) -> Json:
    """Everything, as far as labels are not resampled one way and computed the other."""
    if "labels" in kind:
        return {"seed": 3}
    more = ["calibration_slope@*", "calibration_intercept@*", "l2_calibration_error"]
    return {"seed": 3, "intervals": "all", "draws": 400, "metrics": more if kind.startswith("probabilities") else []}


@pytest.mark.parametrize(("kind", "design"), CASES)
def test_the_report_is_the_same_by_either_way(file: Path, kind: str, design: str) -> None:
    options = options_of(kind)
    own, other = (report(file, kind, design, options, streamed=streamed) for streamed in (True, False))
    own["findings"] = [one for one in own["findings"] if one["code"] not in ABOUT_STREAMING]
    own["input"].get("data", {}).pop("sample_ids_unchecked", None)
    gaps = [one for one in own["undefined"] if one["code"] == "not_folded"]
    for one in (*own["findings"], *other["findings"]):
        if one["code"] == "intervals_of_biased_values":
            # Those of averages over more than two classes are not drawn.
            one["evidence"]["metrics"] = [
                name for name in one["evidence"]["metrics"] if name != "classwise_calibration_error"
            ]
    own["undefined"] = [one for one in own["undefined"] if one["code"] != "not_folded"]
    left_out = {one["metric"] for one in gaps}
    assert left_out <= LEFT_OUT
    assert all(one["reason"] for one in gaps)
    simulated = by_chance(own), by_chance(other)
    assert simulated[1].keys() == simulated[0].keys()
    for name, one in simulated[0].items():
        assert one["observed"] == pytest.approx(simulated[1][name]["observed"], rel=1e-12)
        # Of all classes together nobody knows what is drawn.
        known = () if "reason" in one else ("expected_if_calibrated", "upper_if_calibrated")
        assert known or name == "classwise_calibration_error"
        for key in known:
            assert one[key] == pytest.approx(simulated[1][name][key], rel=0.1), (name, key)
    found = []
    limits, of_memory = own.pop("intervals"), other.pop("intervals")
    assert all(of_memory[name]["low"] is None or name in left_out for name in of_memory.keys() - limits.keys())
    for name, one in limits.items():
        found += differences_of_limits(name, one, of_memory[name])
    for part in [*own["metrics"].values(), *(group for one in own["per_class"].values() for group in one.values())]:
        for name in left_out & part.keys():
            assert part.pop(name) is None
    for part in [*other["metrics"].values(), *(group for one in other["per_class"].values() for group in one.values())]:
        for name in left_out & part.keys():
            del part[name]
    for one in (own, other):
        for value in (*one["headline"]["metrics"].values(), *one["headline"]["requested"].values()):
            # They are among the limits.
            del value["low"], value["high"]
    found += differences(own, other)
    assert not found, "\n".join(found)


def test_limits_of_a_nearly_perfect_model_that_rest_on_few_groups_are_a_note(tmp_path: Path) -> None:
    right = np.tile([False, True], 300)
    sure = np.where(right, 0.999, 0.001)
    sure[[1, 3]] = 0.7
    pairs = (np.arange(600) // 2).astype(str)
    columns = {
        "two": np.where(right, "yes", "no"),
        "p": sure,
        "q": 1.0 - sure,
        "house": pairs,
        "w": 1.0 + (np.arange(600) % 3),
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    for design in ("groups", "both"):
        for streamed in (True, False):
            found = report(tmp_path / "rows.parquet", "probabilities of two", design, {}, streamed=streamed)["findings"]
            few = [one["severity"] for one in found if one["code"] == "intervals_rest_on_few_samples"]
            assert few == ["note"], (design, streamed)


def test_groups_of_one_sample_each_leave_the_limits_as_they_are(file: Path) -> None:
    """A part cannot know that no group has another sample elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DESIGNS, "alone", {"group_id": "row"})
        options = {"seed": 3, "intervals": "all", "draws": 200}
        own, other = (report(file, "scores of two", "alone", options, streamed=streamed) for streamed in (True, False))
    assert own["intervals"]["macro_npv"] == other["intervals"]["macro_npv"]
    assert own["intervals"]["macro_npv"]["method"] == "posterior"


@pytest.mark.parametrize(
    "kind",
    [
        "predictions",
        "scores of two",
        "labels",
        pytest.param("probabilities of three", marks=pytest.mark.slow),
        pytest.param("probabilities of labels", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("even", EVEN)
def test_streamed_rows_that_all_weigh_the_same_have_no_weights(file: Path, kind: str, even: str) -> None:
    plain = "groups" if EVEN[even] else "plain"
    found, own = (report(file, kind, design, {"seed": 3}, streamed=True) for design in (even, plain))
    assert found["input"].pop("sample_weight") == 0.1
    for one in (found, own):
        one["input"].pop("rows", None)
        del one["input"]["data"]["columns"]
    assert not differences(found, own)
