"""Gates without a database: draws that all rules share, what they follow from, and how many samples settle a rule."""

from collections.abc import Iterator

import numpy as np
import pytest

from app.domain.wording import about
from app.kernel.matrix.table import Table
from app.kernel.uncertainty.simulation import RowPosterior
from tests.services.memory import Bench, labelled, matrix, probable, rule


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_limits_of_a_rule_do_not_depend_on_the_other_rules(bench: Bench) -> None:
    record, baseline = bench.keep(matrix([[40, 10], [6, 54]])), bench.keep(matrix([[42, 8], [9, 51]]), "b", "e")
    asked = [
        rule("min(recall@*)", min=0.5),
        rule("macro_f1", not_worse_than="baseline", margin=0.05),
        rule("bennett_s", min=0.5, level=0.9),
        rule("mcc", not_worse_than="baseline", margin=0.05, level=0.9),
        rule("mcc", not_worse_than="baseline", margin=0.05),
    ]
    together = bench.check(asked, record, baseline)["results"]
    for stated, found in zip(asked, together, strict=True):
        assert bench.check([stated], record, baseline)["results"] == [found]
    # What is asked of the run alone has nothing to do with the baseline.
    assert bench.check(asked[:1], record)["results"] == together[:1]
    low = [together[index]["low"] for index in (3, 4)]
    assert low[0] > low[1]


def test_rules_share_their_draws(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    draw = RowPosterior.batches

    def counting(rows: RowPosterior, draws: int, random: np.random.Generator) -> Iterator[Table]:
        drawn.append(rows)
        return draw(rows, draws, random)

    monkeypatch.setattr(RowPosterior, "batches", counting)
    record, baseline = bench.keep(matrix([[40, 10], [6, 54]])), bench.keep(matrix([[42, 8], [9, 51]]), "b", "e")
    metrics = ("macro_f1", "mcc", "g_mean", "h_mean")
    bench.check([rule(one, not_worse_than="baseline", margin=0.05) for one in metrics], record, baseline)
    assert len(drawn) == 0, "differences have closed forms"
    simulated = [rule(f"mean(recall@*, {one})", min=0.5) for one in metrics]
    bench.check(simulated, record)
    assert len(drawn) == 1
    bench.check([*simulated, rule("min(recall@*)", min=0.5)], record)
    assert len(drawn) == 2, "limits of a minimum follow from those of its parts"


def test_how_many_samples_settle_the_difference_of_a_paired_rate(bench: Bench) -> None:
    """1000 samples, 30 that only the candidate has right and 24 that only the baseline has."""
    truth = np.arange(1000) % 2
    first, second = truth.copy(), truth.copy()
    first[:100] ^= 1
    second[:100] ^= 1
    second[100:130] ^= 1
    first[130:154] ^= 1
    candidate, baseline = (bench.keep(labelled(truth, one), name) for one, name in ((first, "a"), (second, "b")))
    asked = [rule(one, better_than="baseline") for one in ("accuracy", "error_rate", "mcc")]
    accuracy, error, mcc = bench.check(asked, candidate, baseline)["results"]
    # n = (z_.975 + z_.8)^2 (p_disc - d^2) / d^2
    needed = accuracy["needed_samples"]
    assert error["needed_samples"] == needed == pytest.approx(7.8489 * (0.054 - 0.006**2) / 0.006**2, rel=0.1)
    assert accuracy["power"] == mcc["power"] == 0.8
    assert accuracy["needed_at_least"] < 1200
    assert f"About {about(needed)} samples instead of 1,000 would settle it" in accuracy["message"]
    assert "with a chance of 80 %" in accuracy["message"]
    assert needed == pytest.approx(mcc["needed_samples"], rel=0.15)


def test_a_rule_on_one_side_that_is_open_says_how_many_samples_settle_it(bench: Bench) -> None:
    """How far the truth may be from what is asked, limits on one side do not say."""
    few = bench.keep(matrix([[15, 5], [5, 15]]))
    for asked in (rule("plr@0", min=2, alternative="greater"), rule("accuracy", min=0.7, alternative="greater")):
        (result,) = bench.check([asked], few)["results"]
        assert result["verdict"] == "inconclusive"
        assert "needed_at_least" not in result
        assert result["message"].endswith("would settle it with a chance of 80 % if the value stayed.")


def test_a_recall_needs_samples_of_its_class(bench: Bench) -> None:
    truth = np.repeat([0, 1], [900, 100])
    first, second = truth.copy(), truth.copy()
    second[900:906] = 0
    first[906:910] = 0
    candidate, baseline = (bench.keep(labelled(truth, one), name) for one, name in ((first, "a"), (second, "b")))
    (found,) = bench.check([rule("recall", better_than="baseline")], candidate, baseline)["results"]
    # Limits of Tango from 10 discordant samples are wider than normal ones.
    assert found["needed_samples"] == pytest.approx(1.25 * 10 * 7.8489 * (0.1 - 0.02**2) / 0.02**2, rel=0.1)


def test_a_failure_takes_as_many_samples_as_its_mirror_image(bench: Bench) -> None:
    truth = np.arange(500) % 2
    first, second = truth.copy(), truth.copy()
    second[:12] ^= 1
    first[12:20] ^= 1
    candidate, baseline = (bench.keep(labelled(truth, one), name) for one, name in ((first, "a"), (second, "b")))
    better = rule("accuracy", better_than="baseline")
    (ahead,), (behind,) = (
        bench.check([better], *pair)["results"] for pair in ((candidate, baseline), (baseline, candidate))
    )
    assert ahead["verdict"] == behind["verdict"] == "inconclusive"
    assert ahead["needed_samples"] == behind["needed_samples"]


def test_of_classes_that_are_equivalent_the_one_that_differs_most_decides(bench: Bench) -> None:
    record, baseline = bench.keep(matrix([[900, 100], [60, 940]])), bench.keep(matrix([[910, 90], [100, 900]]), "b")
    (found,) = bench.check([rule("recall@*", equivalent_to="baseline", margin=0.2)], record, baseline)["results"]
    assert [one["verdict"] for one in found["each"].values()] == ["pass", "pass"]
    assert (found["decided_by"], found["value"]) == ("recall@1", pytest.approx(0.04))


def test_what_is_weighted_is_compared_as_it_is(bench: Bench) -> None:
    record, baseline = bench.keep(matrix([[9.5, 0.5], [0.5, 9.5]])), bench.keep(matrix([[30, 10], [10, 30]]), "b")
    value, lower = bench.check(
        [rule("accuracy", better_than="baseline", bound="value"), rule("accuracy", better_than="baseline")],
        record,
        baseline,
    )["results"]
    assert (value["verdict"], lower["verdict"]) == ("pass", "inconclusive")
    assert (lower["candidate_value"], lower["baseline_value"], lower["low"]) == (0.95, 0.75, None)
    assert "limits need the number of samples" in lower["message"]


def patients(random: np.random.Generator, wrong: float, groups: int = 60, size: int = 5) -> tuple[np.ndarray, ...]:
    """Classes, predictions and patients, of whom some are mostly misjudged."""
    truth = np.tile([0, 1], groups * size // 2 + 1)[: groups * size]
    bad = np.repeat(random.random(groups) < wrong, size)
    missed = random.random(truth.size) < np.where(bad, 0.8, 0.02)
    return truth, np.where(missed, 1 - truth, truth), np.repeat(np.arange(groups), size)


def test_a_gate_on_patients_uses_the_limits_of_the_report(bench: Bench) -> None:
    truth, predicted, groups = patients(np.random.default_rng(0), 0.1)
    record = bench.keep(labelled(truth, predicted, groups=groups))
    found, open_too = bench.check([rule("h_mean", min=0.5), rule("accuracy", min=0.9)], record)["results"]
    (line,) = bench.rank("h_mean")["items"]
    assert found["verdict"] == "pass"
    assert found["method"] == line["method"] == "grouped_mover"
    assert (found["low"], found["high"]) == (line["low"], line["high"])
    assert 0.5 < found["low"] < found["value"] < found["high"] < 1
    assert open_too["verdict"] == "inconclusive"
    assert open_too["needed_samples"] > 300


def test_a_gate_on_differences_of_patients_resamples_patients(bench: Bench) -> None:
    random = np.random.default_rng(1)
    truth, good, groups = patients(random, 0.02)
    poor = patients(random, 0.5)[1]
    candidate, baseline = (
        bench.keep(labelled(truth, one, groups=groups), name) for one, name in ((good, "a"), (poor, "b"))
    )
    (found,) = bench.check([rule("accuracy", better_than="baseline")], candidate, baseline)["results"]
    (compared,) = bench.compare([candidate, baseline], "accuracy")["metrics"]["accuracy"]["differences"]
    assert found["verdict"] == "pass"
    assert found["low"] == pytest.approx(compared["low"], abs=0.02)


def test_a_result_has_the_limits_of_the_report_and_those_that_decided(bench: Bench) -> None:
    """Ten classes that can fail by chance: a failure takes wider limits than the report has."""
    rows = np.diag(np.full(10, 100))
    rows[0, [0, 1]] = 71, 29
    record = bench.keep(matrix(rows))
    (found,) = bench.check([rule("recall@*", min=0.8)], record)["results"]
    (alone,) = bench.check([rule("recall@0", min=0.8)], record)["results"]
    assert (found["low"], found["high"], found["level"]) == (alone["low"], alone["high"], 0.95)
    assert alone["decided_on"] == {"low": alone["low"], "high": alone["high"], "level": 0.95, "reason": None}
    assert found["decided_on"]["level"] == pytest.approx(0.995)
    assert found["decided_on"]["low"] < found["low"] < found["high"] < 0.8 < found["decided_on"]["high"]
    assert "10 values that can fail by chance" in found["decided_on"]["reason"]
    assert found["each"]["recall@0"]["decided_on"] == found["decided_on"]
    assert found["each"]["recall@1"]["decided_on"]["reason"] is None


def test_a_check_says_which_limits_are_not_to_be_trusted(bench: Bench) -> None:
    y = np.tile([0, 1], 50)
    p = np.where(y == 1, 0.98, 0.02) + np.linspace(0, 0.01, 100)
    p[1] = 1e-9
    confident = bench.keep(probable(y, np.column_stack([1 - p, p])))
    found = bench.check([rule("log_loss", max=2.0), rule("accuracy", min=0.5)], confident)["findings"]
    assert [(one["code"], one["metrics"]) for one in found] == [("intervals_rest_on_few_samples", ["log_loss"])]
    few = bench.keep(matrix([[40, 10], [1, 3]]))
    found = bench.check([rule("h_mean", min=0.1), rule("accuracy", min=0.1)], few)["findings"]
    assert [(one["code"], one["metrics"]) for one in found] == [("intervals_of_few_samples", ["h_mean"])]
    # Wilson's limits hold with few samples.
    assert "findings" not in bench.check([rule("f1@1", min=0.1), rule("recall@1", min=0.1)], few)
    fine = bench.keep(matrix([[40, 10], [6, 54]]))
    assert "findings" not in bench.check([rule("h_mean", min=0.1), rule("accuracy", min=0.1)], fine)


@pytest.mark.parametrize("grouped", [False, True])
def test_few_samples_are_few_whatever_they_weigh(bench: Bench, grouped: bool) -> None:
    few, many = (np.repeat([0, 0, 1, 1], sizes) for sizes in ([40, 10, 1, 3], [40, 10, 6, 54]))
    said = []
    for place, (truth, weight) in enumerate([(few, 10.0), (many, 0.01)]):
        predicted, weights = np.roll(truth, 5), (weight * np.linspace(0.9, 1.1, truth.size)).tolist()
        groups = (np.arange(truth.size) // 2).tolist() if grouped else None
        record = bench.keep(labelled(truth, predicted, weights=weights, groups=groups), str(place))
        found = bench.check([rule("gps(recall@*, precision@1)", min=0.1)], record)
        said.append([one["code"] for one in found.get("findings", [])])
    assert said == [["intervals_of_few_samples"], []]


def test_the_best_of_many_is_told_what_to_expect_of_it_on_new_samples() -> None:
    """As the leaderboard has it; of the others, and of one model alone, there is nothing to tell."""
    bench, random = Bench(), np.random.default_rng(5)
    hits = random.binomial(100, 0.8, (8, 2)).tolist()
    runs = [
        bench.keep(matrix([[one, 100 - one], [100 - other, other]]), model=f"m{place}")
        for place, (one, other) in enumerate(hits)
    ]
    board = bench.rank("accuracy")
    first = [str(run.id) for run in runs].index(str(board["items"][0]["evaluation"]["id"]))
    asked = [rule("accuracy", min=0.5)]
    (found,) = bench.check(asked, runs[first])["findings"]
    assert (found["code"], found["severity"]) == ("best_of_many", "note")
    assert found["message"] == f"accuracy: {board['winner']['message']}"
    told = {name: value for name, value in found["evidence"].items() if name not in ("metric", "level")}
    assert set(told) >= {"among", "corrected_value", "expected_optimism", "low", "fresh_low", "fresh_high"}
    assert told == {name: board["winner"][name] for name in told}
    assert told["low"] < told["corrected_value"] < board["winner"]["value"]
    # What is not stored with runs, and what ranks none, is passed over.
    assert bench.check([rule("min(recall@*)", min=0.5), rule("recall@*", min=0.5), *asked], runs[first])[
        "findings"
    ] == [found]
    assert "findings" not in bench.check(asked, runs[first - 1])
    assert "findings" not in bench.check(asked, bench.keep(matrix([[9, 1], [1, 9]]), dataset="other"))
