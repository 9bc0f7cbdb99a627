"""Gates without a database: draws that all rules share, what they follow from, and how many samples settle a rule."""

import numpy as np
import pytest

from app.domain.wording import about
from app.kernel.compare.gates import paired_sample_size
from app.kernel.uncertainty import simulation
from tests.services.memory import Bench, labelled, matrix, rule


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
    draw = simulation.draw_matrices

    def counting(*arguments: object, **members: object) -> object:
        drawn.append(arguments)
        return draw(*arguments, **members)  # type: ignore[arg-type]

    monkeypatch.setattr(simulation, "draw_matrices", counting)
    record, baseline = bench.keep(matrix([[40, 10], [6, 54]])), bench.keep(matrix([[42, 8], [9, 51]]), "b", "e")
    metrics = ("macro_f1", "mcc", "g_mean", "h_mean")
    bench.check([rule(one, not_worse_than="baseline", margin=0.05) for one in metrics], record, baseline)
    assert len(drawn) == 2
    simulated = [rule(f"mean(recall@*, {one})", min=0.5) for one in metrics]
    bench.check(simulated, record)
    assert len(drawn) == 3
    bench.check([*simulated, rule("min(recall@*)", min=0.5)], record)
    assert len(drawn) == 4, "limits of a minimum follow from those of its parts"


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
    needed = paired_sample_size(0.054, difference=0.006, margin=0.0, alpha=0.025, power=0.8)
    assert accuracy["needed_samples"] == error["needed_samples"] == needed
    assert accuracy["power"] == 0.8
    assert f"About {about(needed)} samples instead of 1,000 would settle it" in accuracy["message"]
    assert "with a chance of 80 %" in accuracy["message"]
    assert "power" not in mcc
    # Twice the samples that would do it in half of the cases.
    assert needed == pytest.approx(2.04 * mcc["needed_samples"], rel=0.15)


def test_a_recall_needs_samples_of_its_class(bench: Bench) -> None:
    truth = np.repeat([0, 1], [900, 100])
    first, second = truth.copy(), truth.copy()
    second[900:906] = 0
    first[906:910] = 0
    candidate, baseline = (bench.keep(labelled(truth, one), name) for one, name in ((first, "a"), (second, "b")))
    (found,) = bench.check([rule("recall", better_than="baseline")], candidate, baseline)["results"]
    assert found["needed_samples"] == 10 * paired_sample_size(0.1, difference=0.02, margin=0.0)


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


def test_what_is_weighted_is_compared_as_it_is(bench: Bench) -> None:
    record, baseline = bench.keep(matrix([[9.5, 0.5], [0.5, 9.5]])), bench.keep(matrix([[30, 10], [10, 30]]), "b")
    value, lower = bench.check(
        [rule("accuracy", better_than="baseline", bound="value"), rule("accuracy", better_than="baseline")],
        record,
        baseline,
    )["results"]
    assert (value["verdict"], lower["verdict"]) == ("pass", "inconclusive")
    assert (lower["candidate_value"], lower["baseline_value"], lower["low"]) == (0.95, 0.75, None)
    assert "which needs numbers of samples" in lower["message"]
