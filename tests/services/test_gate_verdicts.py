"""What a gate says of runs, without a server."""

from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from app.api.answers import write_json
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.rules import definition_of
from app.kernel.compare.gates import ValueWithLimits, Verdict
from app.services.gate import _verdict, check_gate, rule_estimands
from app.services.processes.worker import tell_progress
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples


def kept(matrix: Any, model: str = "m", dataset: str = "d") -> EvaluationRecord:
    counts = np.array(matrix)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef(model),
        dataset=DatasetRef(dataset),
        kind="confusion_matrix",
        labels=tuple(map(str, range(len(counts)))),
        positive=None,
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def rule(metric: str, bound: str = "lower", level: float = 0.95, **demand: Any) -> dict[str, Any]:
    return {"metric": metric, **demand, "bound": bound, "level": level}


def check(stated: dict[str, Any] | list[dict[str, Any]], *records: EvaluationRecord) -> Any:
    """Verdict and results for a candidate, and a baseline if there is one."""
    rules = stated if isinstance(stated, list) else [stated]
    definition, runs = definition_of({"rules": rules}), Runs.align(records, "/baseline").pair(KeptSamples())
    return check_gate(definition, rule_estimands(definition, runs), runs)


def test_rules_that_are_done_are_told() -> None:
    told: list[float] = []

    def checked() -> None:
        tell_progress(told.append)
        check([rule("accuracy", min=0.5), rule("h_mean", min=0.5)], kept([[170, 30], [30, 170]]))

    copy_context().run(checked)
    assert told == [0.5, 1.0]


def test_a_difference_at_the_margin_is_inconclusive_and_can_be_written() -> None:
    candidate, baseline = kept([[170, 30], [30, 170]]), kept([[160, 40], [40, 160]], "b", "other")
    stated = rule("accuracy", better_than="baseline", margin=0.05)
    found = check(stated, candidate, baseline)
    (result,) = found.results
    assert found.verdict is Verdict.INCONCLUSIVE
    assert result.needed_samples is None
    assert "no number of samples settles it" in result.message
    assert write_json(result)


def test_a_value_at_the_margin_has_reached_it() -> None:
    candidate, baseline = kept([[170, 30], [30, 170]]), kept([[160, 40], [40, 160]], "b", "other")
    stated = rule("accuracy", "value", better_than="baseline", margin=0.05)
    assert check(stated, candidate, baseline).verdict is Verdict.PASS


def test_a_limit_at_the_ceiling_has_not_passed_it() -> None:
    assert check(rule("accuracy", max=1.0), kept([[100, 0], [0, 100]])).verdict is Verdict.PASS


# Many rules and classes that can fail by chance.


def with_one_weak_class(right: int, size: int = 100, classes: int = 10) -> EvaluationRecord:
    """A run that is always right but for one class."""
    matrix = np.diag(np.full(classes, size))
    matrix[0, [0, 1]] = right, size - right
    return kept(matrix)


def guardrails(classes: int = 10) -> list[dict[str, Any]]:
    return [rule(f"recall@{code}", "upper", min=0.8) for code in range(classes)]


@pytest.mark.parametrize("stated", [[rule("recall@*", min=0.8)], guardrails()], ids=["lower", "upper"])
def test_ten_classes_at_their_floor_fail_no_more_often_than_one_may(stated: list[dict[str, Any]]) -> None:
    """All outcomes added up; classes fail independently, and 2.5 % is the one-sided error of a level of 0.95."""
    together, alone = 0.0, 0.0
    for right in range(60, 101):
        chance = float(binom.pmf(right, 100, 0.8))
        together += chance * (check(stated, with_one_weak_class(right)).verdict is Verdict.FAIL)
        alone += chance * (check(guardrails(1), with_one_weak_class(right)).verdict is Verdict.FAIL)
    # Hardly ever fewer than 60, and then every gate fails.
    rest = float(binom.cdf(59, 100, 0.8))
    assert 0.01 < 1 - (1 - together - rest) ** 10 <= 0.025
    assert 1 - (1 - alone - rest) ** 10 > 0.2


def test_what_may_be_chance_among_many_is_no_failure_and_says_so() -> None:
    record = with_one_weak_class(71)
    alone = check(rule("recall@0", min=0.8), record)
    assert alone.verdict is Verdict.FAIL
    assert alone.results[0].decided_on.level == 0.95
    found = check(rule("recall@*", min=0.8), record)
    (result,) = found.results
    assert (found.verdict, result.decided_by, result.level) == (Verdict.INCONCLUSIVE, "recall@0", 0.95)
    assert result.decided_on.level == pytest.approx(0.995)
    assert result.low == alone.results[0].low < 0.8
    assert result.decided_on.low < result.low < 0.8 < result.decided_on.high
    assert "99.5 % limits" in result.message
    assert "allow for 10 values that can fail by chance" in result.message
    assert result.needed_samples > 1000
    # Values that are held against a limit as they are have no part in it.
    others = [rule(f"precision@{code}", "value", min=0.1) for code in range(10)]
    assert check([rule("recall@0", min=0.8), *others], record).verdict is Verdict.FAIL


def test_passing_takes_no_correction() -> None:
    record = with_one_weak_class(89)
    alone, among = (check(stated, record) for stated in (rule("recall@0", min=0.8), rule("recall@*", min=0.8)))
    assert (alone.verdict, among.verdict) == (Verdict.PASS, Verdict.PASS)
    assert among.results[0].low == alone.results[0].low


@pytest.mark.parametrize(("side", "demand"), [("greater", {"min": 0.45}), ("less", {"max": 0.55})])
def test_a_limit_on_one_side_is_settled_by_as_many_samples_as_the_same_one_of_two(
    side: str, demand: dict[str, Any]
) -> None:
    """At 1/2 the limits of both sides say the same of one sample, and so does the textbook on sizes of samples."""
    record = kept([[50, 50], [50, 50]])
    one, both = (
        check(rule("accuracy", level=level, **demand, **other), record).results[0]
        for level, other in ((0.95, {"alternative": side}), (0.9, {}))
    )
    assert one.needed_samples == both.needed_samples
    assert one.needed_samples == pytest.approx(((norm.isf(0.05) + norm.isf(0.2)) * 0.5 / 0.05) ** 2, rel=0.02)


def test_equivalence_can_fail_on_either_side() -> None:
    candidate, baseline = kept([[170, 30], [30, 170]]), kept([[190, 10], [10, 190]], "b", "other")
    (result,) = check(rule("accuracy", equivalent_to="baseline", margin=0.02), candidate, baseline).results
    assert (result.verdict, result.level, result.decided_on.level) == (Verdict.FAIL, 0.95, 0.975)


def test_an_open_equivalence_is_settled_by_what_excludes_the_nearer_limit() -> None:
    """Candidate and baseline in each other's place, that is the limit of a difference that is not worse."""
    better, other = kept([[180, 20], [20, 180]]), kept([[176, 24], [24, 176]], "b", "other")
    (equal,) = check(rule("accuracy", equivalent_to="baseline", margin=0.04), better, other).results
    (no_worse,) = check(rule("accuracy", not_worse_than="baseline", margin=0.04), other, better).results
    assert equal.needed_samples is not None
    assert equal.needed_samples == no_worse.needed_samples


def test_a_rule_is_settled_by_as_many_samples_as_settle_all_of_it() -> None:
    """Both limits of an equivalence, and every class, are to be excluded with 80 %."""
    equal, other = (kept([[90, 5, 5], [5, 90, 5], [5, 5, 90]], name) for name in "ab")
    asked = (
        rule("accuracy", equivalent_to="baseline", margin=0.02),
        rule("accuracy", not_worse_than="baseline", margin=0.02),
    )
    both, one = (check(each, equal, other).results[0].needed_samples for each in asked)
    squares = [(norm.isf(0.025) + norm.isf(missed)) ** 2 for missed in (0.1, 0.2)]
    assert both == pytest.approx(one * squares[0] / squares[1], rel=0.001)
    (each,) = check(rule("recall@*", min=0.85), equal).results
    deviations = norm.isf(0.025) * (0.85 * 0.15) ** 0.5 + norm.isf(0.2 / 3) * (0.9 * 0.1) ** 0.5
    assert each.needed_samples == pytest.approx(3 * (deviations / 0.05) ** 2, rel=0.03)


def test_an_open_equivalence_beyond_its_margin_is_settled_by_the_limits_that_fail_it() -> None:
    """Both ends can fail it by chance, so each has half the error that the one end of a rule that is not worse has."""
    better, other = kept([[180, 20], [20, 180]]), kept([[160, 40], [40, 160]], "b", "other")
    (no_worse,) = check(rule("accuracy", not_worse_than="baseline", margin=0.09), other, better).results
    together, alone = ((norm.ppf(level) + norm.ppf(0.8)) ** 2 for level in (0.9875, 0.975))
    for pair in ((better, other), (other, better)):
        (equal,) = check(rule("accuracy", equivalent_to="baseline", margin=0.09), *pair).results
        assert equal.needed_samples == pytest.approx(no_worse.needed_samples * together / alone, rel=0.01)


def test_of_equal_verdicts_the_class_nearest_to_failing_decides() -> None:
    record = kept([[90, 6, 4], [1, 98, 1], [3, 5, 92]])
    for stated, worst in ((rule("recall@*", min=0.5), "recall@0"), (rule("fnr@*", max=0.5), "fnr@0")):
        found = check(stated, record)
        assert (found.verdict, found.results[0].decided_by) == (Verdict.PASS, worst)


def test_a_value_at_its_limit_holds_and_a_difference_has_to_be_beyond() -> None:
    ends = ValueWithLimits(value=0.06, low=0.05, high=0.07)
    for demand, verdict in (
        ({"min": 0.05}, Verdict.PASS),
        ({"better_than": "baseline", "margin": 0.05}, Verdict.INCONCLUSIVE),
        ({"better_than": "baseline", "margin": 0.04}, Verdict.PASS),
    ):
        (stated,) = definition_of({"rules": [rule("accuracy", **demand)]}).rules
        assert _verdict(stated, ends, 1.0) is verdict
