"""Causes in comparisons: parts that add up, a sentence, limits of paired and unpaired runs."""

from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.compare.answers import RunComparison
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import compare, keep, keep_labels, only
from tests.api.plots.world import check_specification, layer
from tests.api.test_probabilities import make

BEFORE = [[819, 91], [18, 72]]
AFTER = [[864, 96], [10, 30]]


def explained(client: httpx.Client, *runs: str, metrics: list[str], **members: object) -> Json:
    answer = compare(client, *runs, metrics=metrics, explain=True, **members)
    answer_model(RunComparison).model_validate(answer)
    return answer


def test_a_class_that_became_rarer_is_the_cause_and_the_parts_are_those_by_hand(client: httpx.Client) -> None:
    after, before = keep(client, AFTER, "new"), keep(client, BEFORE, "old")
    answer = explained(client, after, before, metrics=["precision@1", "recall@1", "macro_f1"], baseline=before)
    causes = only(answer, "precision@1")["causes"]
    assert causes["kind"] == "matrix"
    assert causes["difference"] == pytest.approx(-697 / 3423)
    assert [(one["factor"], one["class"]) for one in causes["items"]] == [
        ("prevalence", None),
        ("recognition", "0"),
        ("recognition", "1"),
    ]
    values = [one["value"] for one in causes["items"]]
    assert values == pytest.approx([-1647125 / 8680728, 0.0, -120467 / 8680728], abs=1e-12)
    assert all(one["low"] < one["value"] < one["high"] for one in causes["items"])
    # Prevalence does not move recall.
    assert "causes" not in only(answer, "recall@1")
    of_f1 = only(answer, "macro_f1")["causes"]
    observed = answer["metrics"]["macro_f1"]["observed_values"]
    assert sum(one["value"] for one in of_f1["items"]) == pytest.approx(observed[0] - observed[1], abs=1e-12)
    (said,) = (one for one in answer["findings"] if one["evidence"]["metric"] == "precision@1")
    assert said["code"] == "cause_of_difference"
    assert said["message"] == (
        "precision@1 fell by 0.204 from old to new; 0.190 of it because 1 became rarer (9 % to 4 %, 90 of 1,000 to 40 "
        "of 1,000)."
    )


def test_a_class_whose_share_is_the_same_is_not_what_became_rarer(client: httpx.Client) -> None:
    """A tenth of class 1 is taken for class 0, and none of class 2: fewer of class 1 leave class 0 alone."""
    before, after = [[270, 0, 30], [60, 540, 0], [0, 0, 100]], [[270, 0, 30], [10, 90, 0], [0, 0, 600]]
    runs = keep(client, after, "new"), keep(client, before, "old")
    answer = explained(client, *runs, metrics=["precision@0"], baseline=runs[1])
    said = "because 1 became rarer (60 % to 10 %, 600 of 1,000 to 100 of 1,000)"
    assert only(answer, "precision@0")["causes"]["because"].endswith(said)
    shares = {"prevalence": {"0": 0.3, "1": 0.1, "2": 0.6}, "metrics": ["precision@0"]}
    projected = client.post(f"/v1/evaluations/{runs[1]}/projections", json=shares).json()
    causes = projected["metrics"]["precision@0"]["causes"]
    assert causes["because"] == "all of it because 1 becomes rarer (60 % to 10 %)"


def test_a_waterfall_has_the_parts_one_after_the_other(client: httpx.Client) -> None:
    after, before = keep(client, AFTER, "new"), keep(client, BEFORE, "old")
    answer = explained(client, after, before, metrics=["precision@1", "accuracy"], baseline=before)
    where = f"/v1/comparisons/{answer['id']}/plots/causes"
    drawn = check_specification(client.get(f"{where}.json"))
    assert len(drawn["vconcat"]) == 2
    bars, limits = (layer(drawn["vconcat"][0], name)["data"]["values"] for name in ("parts", "limits"))
    parts = sorted(only(answer, "precision@1")["causes"]["items"], key=lambda one: -abs(one["value"]))
    assert [row["cause"] for row in bars] == [
        *("class prevalence", "recognition of 1", "recognition of 0", "all together"),
    ]
    assert [row["to"] - row["from"] for row in bars[:3]] == pytest.approx([one["value"] for one in parts])
    assert [row["from"] for row in bars] == pytest.approx([0, bars[0]["to"], bars[1]["to"], 0])
    assert bars[3]["to"] == pytest.approx(-697 / 3423)
    assert [row["low"] - row["from"] for row in limits] == pytest.approx([one["low"] for one in parts])
    assert "class prevalence -0.190 (-0.2" in drawn["description"]
    assert client.get(f"{where}.svg").headers["content-type"] == "image/svg+xml"
    assert "Causes of the differences" in client.get(f"/v1/comparisons/{answer['id']}/report").text


def test_nothing_is_said_unless_asked(client: httpx.Client) -> None:
    answer = compare(client, keep(client, AFTER, "new"), keep(client, BEFORE, "old"), metrics=["precision@1"])
    assert "causes" not in only(answer, "precision@1")
    assert not any(one["code"] == "cause_of_difference" for one in answer.get("findings") or ())
    check_problem(client.get(f"/v1/comparisons/{answer['id']}/plots/causes.json"), 422, "no_figure")


def test_of_the_same_samples_prevalence_is_no_cause_and_pairs_make_limits_narrower(client: httpx.Client) -> None:
    random = np.random.default_rng(5)
    truth = random.choice(3, 900, p=[0.6, 0.3, 0.1])
    first = np.where(random.random(900) < 0.9, truth, (truth + 1) % 3)
    second = np.where((random.random(900) < 0.3) & (truth == 2), 0, first)
    runs = [keep_labels(client, truth, one, f"m{place}") for place, one in enumerate((first, second))]
    paired, alone = (
        only(explained(client, *runs, metrics=["macro_f1"], paired=how), "macro_f1")["causes"] for how in (True, False)
    )
    assert [one["value"] for one in paired["items"]] == [one["value"] for one in alone["items"]]
    shares = paired["items"][0]
    assert (shares["value"], shares["low"], shares["high"]) == (0, 0, 0)
    # Which predictions belong together does not matter for that.
    without_ids = [
        keep_labels(client, truth, one, f"n{place}", sample_ids=None) for place, one in enumerate((first, second))
    ]
    of_one_set = only(explained(client, *without_ids, metrics=["macro_f1"]), "macro_f1")["causes"]["items"][0]
    assert (of_one_set["value"], of_one_set["low"], of_one_set["high"]) == (0, 0, 0)
    narrow, wide = (one["items"][3]["high"] - one["items"][3]["low"] for one in (paired, alone))
    assert narrow < 0.95 * wide
    grouped = [
        keep_labels(client, truth, one, f"g{place}", group_ids=(np.arange(900) // 9).tolist())
        for place, one in enumerate((first, second))
    ]
    of_groups = only(explained(client, *grouped, metrics=["macro_f1"]), "macro_f1")["causes"]["items"][3]
    assert of_groups["value"] == pytest.approx(paired["items"][3]["value"])
    assert of_groups["high"] - of_groups["low"] == pytest.approx(narrow, rel=0.5)


def probabilities(seed: int, share: float, slope: float) -> Json:
    """A run of two classes: its share of the positive one, and by how much it is sure of itself."""
    rng = np.random.default_rng(seed)
    hit = rng.random(400) < share
    chance = 1 / (1 + np.exp(-slope * (1.5 * hit - 0.75 + rng.normal(size=400))))
    return {
        "kind": "probabilities",
        "labels": ["no", "yes"],
        "positive": "yes",
        "y_true": np.where(hit, "yes", "no").tolist(),
        "probabilities": np.column_stack([1 - chance, chance]).tolist(),
    }


def test_a_loss_is_split_into_prevalence_calibration_and_refinement(client: httpx.Client) -> None:
    sure, usual = (
        str(create(client, evaluation(model=name, input=given))["id"])
        for name, given in (("sure", probabilities(1, 0.25, 4.0)), ("usual", probabilities(2, 0.4, 2.5)))
    )
    answer = explained(client, sure, usual, metrics=["log_loss", "brier_score"], baseline=usual)
    for metric in ("log_loss", "brier_score"):
        causes, values = only(answer, metric)["causes"], answer["metrics"][metric]["observed_values"]
        assert (causes["kind"], causes["difference"]) == ("loss", pytest.approx(values[0] - values[1], abs=1e-12))
        assert [one["factor"] for one in causes["items"]] == ["prevalence", "calibration", "refinement"]
        assert sum(one["value"] for one in causes["items"]) == pytest.approx(causes["difference"], abs=1e-12)
        lead = causes["items"][1]
        assert 0 < lead["low"] < lead["value"] < lead["high"]
    said = [one["message"] for one in answer["findings"] if one["code"] == "cause_of_difference"]
    assert "because errors of calibration cost more" in said[0] or "errors of calibration cost more alone" in said[0]
    text = client.get(f"/v1/comparisons/{answer['id']}", headers={"Accept": "text/plain"}).text
    assert "refinement" in text


def test_calibration_has_no_limits_beside_a_run_whose_probabilities_are_true(client: httpx.Client) -> None:
    """Scores of both classes are normal and 1.5 apart, so that log odds are 1.5 times a score."""
    sure, true = (
        str(create(client, evaluation(model=name, input=given))["id"])
        for name, given in (("sure", probabilities(1, 0.5, 4.0)), ("true", probabilities(2, 0.5, 1.5)))
    )
    causes = only(explained(client, sure, true, metrics=["log_loss"], baseline=true), "log_loss")["causes"]
    known = {one["factor"]: (one["low"] is not None, one["high"] is not None) for one in causes["items"]}
    assert known == {"prevalence": (True, True), "calibration": (False, False), "refinement": (True, True)}


def test_a_slice_and_the_rest_have_the_causes_of_two_runs_on_them(client: httpx.Client) -> None:
    sure, usual = probabilities(1, 0.25, 4.0), probabilities(2, 0.4, 2.5)
    both = {name: sure[name] + usual[name] for name in ("y_true", "probabilities")}
    site = {"site": ["A"] * 400 + ["B"] * 400}
    metrics = ["precision@yes", "log_loss", "brier_score"]
    asked = {"input": {**sure, **both, "attributes": site}, "by": ["site"], "metrics": metrics}
    kept = create(client, evaluation(input=asked.pop("input")))["id"]
    reply = client.post(f"/v1/evaluations/{kept}/slices", json=asked)
    assert reply.status_code == 200, reply.text
    (found,) = (one["metrics"] for one in reply.json()["slices"] if one["where"] == {"site": "A"})
    runs = [str(create(client, evaluation(input=one))["id"]) for one in (sure, usual)]
    answer = explained(client, *runs, metrics=metrics, baseline=runs[1], paired="false")
    for metric in metrics:
        causes, known = found[metric]["causes"], only(answer, metric)["causes"]
        assert causes["kind"] == known["kind"]
        for one, other in zip(causes["items"], known["items"], strict=True):
            assert one == other | {name: pytest.approx(other[name], abs=2e-4) for name in ("low", "high")} | {
                "value": pytest.approx(other["value"], abs=1e-12)
            }
    assert found["precision@yes"]["causes"]["items"][0]["low"] is not None
    params = {"by": "site", "metric": "precision@yes"}
    figure = check_specification(client.get(f"/v1/evaluations/{kept}/slices/plots/causes.json", params=params))
    drawn = {one["title"]["text"]: layer(one, "parts")["data"]["values"] for one in figure["vconcat"]}
    assert [*drawn] == ["Precision of yes, site A", "Precision of yes, site B"]
    total = drawn["Precision of yes, site A"][-1]
    assert total["to"] == pytest.approx(found["precision@yes"]["causes"]["difference"])
    assert "Causes of the differences" in client.get(f"/ui/evaluations/{kept}/slices", params=params).text


def test_a_loss_of_three_classes_in_weights_and_groups_is_split(client: httpx.Client) -> None:
    """The same samples in the same groups: prevalence has no part, and limits are of as many groups."""
    design: Json = {
        "sample_weight": [1 + place % 2 for place in range(120)],
        "group_ids": [place // 3 for place in range(120)],
        "sample_ids": [*range(120)],
    }
    made = [make(n=120, seed=seed) | design for seed in (1, 2)]
    made[1]["y_true"] = made[0]["y_true"]
    runs = [str(create(client, evaluation(model=f"m{place}", input=one))["id"]) for place, one in enumerate(made)]
    answer = explained(client, *runs, metrics=["log_loss", "brier_score"])
    for metric in ("log_loss", "brier_score"):
        causes, found = only(answer, metric)["causes"], answer["metrics"][metric]
        values = found.get("observed_values") or found["values"]
        assert sum(one["value"] for one in causes["items"]) == pytest.approx(values[0] - values[1], abs=1e-12)
        assert causes["items"][0]["value"] == pytest.approx(0.0, abs=1e-15)
        assert causes["items"][2]["low"] < causes["items"][2]["value"] < causes["items"][2]["high"]


def test_what_cannot_be_split_says_why(client: httpx.Client) -> None:
    lacking = keep(client, [[30, 3, 1], [2, 20, 1], [0, 0, 0]], "new")
    whole = keep(client, [[30, 3, 1], [2, 20, 1], [1, 1, 9]], "old")
    causes = only(explained(client, lacking, whole, metrics=["precision@0"]), "precision@0")["causes"]
    assert causes["items"] is None
    assert "has no samples of class '2'" in causes["reason"]
    random = np.random.default_rng(3)
    many = [keep(client, random.integers(1, 9, (14, 14)).tolist(), f"m{place}") for place in range(4)]
    found = only(explained(client, *many[:2], metrics=["macro_f1"]), "macro_f1")["causes"]["items"]
    assert [one["class"] for one in found].count(None) == 2
    assert len(found) == 13
    reply = client.post("/v1/comparisons", json={"evaluations": many, "metrics": ["precision@*"], "explain": True})
    problem = check_problem(reply, 422, "out_of_reach")
    assert "causes of 84 differences" in problem["detail"]


def test_of_two_classes_the_rarer_one_is_named(client: httpx.Client) -> None:
    """Their shares move alike, whichever comes first."""
    after, before = [[760, 200], [4, 36]], [[700, 210], [9, 81]]
    for turned in (False, True):
        runs = [
            keep(client, [row[::-1] for row in one[::-1]] if turned else one, uuid4().hex) for one in (after, before)
        ]
        answer = explained(client, *runs, metrics=["macro_f1"], baseline=runs[1])
        said = " ".join(one["message"] for one in answer["findings"])
        assert f"{0 if turned else 1} became rarer" in said


def test_texts_have_the_parts(client: httpx.Client) -> None:
    after, before = keep(client, AFTER, "new"), keep(client, BEFORE, "old")
    answer = explained(client, after, before, metrics=["precision@1", "accuracy"], baseline=before)
    text = client.get(f"/v1/comparisons/{answer['id']}", headers={"accept": "text/plain"}).text
    assert "class prevalence" in text
    assert "recognition of 1" in text
    assert "-0.190" in text
    assert "became rarer" in text
