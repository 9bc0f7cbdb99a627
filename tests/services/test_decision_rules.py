"""The best decision rule, without a server: what it is worth, and how sure its constraints are."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from app.domain.errors import InvalidExpression, InvalidInput, NoRule, NotComparable
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.slices import restricted
from app.kernel.decide.rules import Correction
from app.kernel.matrix.table import confusion_counts
from app.services.decide import thresholds
from app.services.decide.thresholds import DecisionRule, Limit, RuleQuestion, Surface, best_rule
from tests.kernel.probability.problems import softmax_problem
from tests.services.slicing import classified


def source_of(y: Any, p: Any) -> MatrixInput:
    predicted = p.argmax(axis=1)
    return MatrixInput(
        kind="probabilities",
        labels=tuple("ABC"[: p.shape[1]]),
        positive=1 if p.shape[1] == 2 else None,
        content=Content.counts,
        counts=confusion_counts(y, predicted, p.shape[1]),
        samples=Samples(y, predicted, p),
    )


TWO = source_of(*softmax_problem(300, 2, 1))
SPECIFIC = (Limit("specificity", 0.8, None),)
SITE = np.array(["A", "B", "C"])[np.arange(300) % 7 % 3]
Y, P = softmax_problem(300, 2, 1)
AT_SITES = classified(Y, P.argmax(axis=1), {"site": SITE}, ("A", "B"), outputs=P)


def rule(source: MatrixInput = TWO, **question: Any) -> DecisionRule:
    return best_rule(uuid4(), source, RuleQuestion(**{"objective": "f1", "resamples": 30, **question}))


def test_a_constraint_that_is_just_met_is_no_promise() -> None:
    found = rule(limits=SPECIFIC)
    (entry,) = found.constraints
    assert entry.value is not None
    assert entry.value >= 0.8
    assert entry.probability is not None
    assert 0.2 < entry.probability < 0.8
    assert found.constraints_probability == entry.probability
    assert "has a probability of about" in found.note
    assert (found.guarantee, entry.required) == (None, None)


def test_of_what_is_better_low_a_fall_is_gained() -> None:
    found = rule(objective="error_rate", correction=Correction.NONE).objective
    least, own = min(known_errors()), known_errors()[-1]
    assert (found.value, found.default, found.gain) == (least, own, own - least)
    assert own > least


def known_errors() -> list[float]:
    """Of every threshold, and of a half."""
    cuts = [*np.append(P[:, 1], 2.0), 0.5]
    return [float(np.mean((P[:, 1] >= cut) != (Y == 1))) for cut in cuts]


def test_nothing_gained_is_zero_without_a_sign() -> None:
    y = np.arange(20) % 2
    found = rule(source_of(y, np.eye(2)[y]), objective="false_positive_rate")
    assert str(found.objective.gain) == "0.0"


def test_folds_that_had_a_threshold_each_had_none_together() -> None:
    """Theirs were right about all samples, as no single one is."""
    y, score = np.array([0, 0, 1, 1] * 2), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    folds = replace(source_of(y, np.stack([1.0 - score, score], axis=1)), facts={"threshold": [0.25, 0.65]})
    found = rule(replace(folds, counts=np.diag([4, 4])), objective="accuracy")
    assert (found.default_threshold, found.objective.value, found.objective.default) == (None, 0.75, 1.0)
    assert found.objective.gain == -0.25


def test_searches_in_resamples_choose_among_equal_rules_as_the_search_did() -> None:
    y = np.repeat([0, 1], [90, 10])
    score = np.where(y == 1, 0.8, 0.0) + np.linspace(0.0, 0.1, 100)
    found = rule(source_of(y, np.stack([1.0 - score, score], axis=1)))
    # The rule that divides all samples divides those of every resample.
    assert (found.low, found.high) == (found.threshold, found.threshold)
    assert found.objective.corrected is not None
    assert found.objective.corrected.value == 1.0


# 2 false alarms among 30 and 9 hits among 10, with a score for each outcome of an earlier decision.
OUTCOME = np.repeat([0.1, 0.9, 0.1, 0.9], [28, 2, 1, 9])
OF_OUTCOMES = source_of(np.repeat([0, 1], [30, 10]), np.stack([1.0 - OUTCOME, OUTCOME], axis=1))


def test_the_probability_of_a_limit_of_a_ratio_is_that_of_the_rates_it_is_of() -> None:
    found = rule(OF_OUTCOMES, objective="recall", limits=(Limit("positive_likelihood_ratio", 3.0, None),))
    assert found.constraints_probability is not None
    random = np.random.default_rng(0)
    hits, alarms = random.beta(9.5, 1.5, 100_000), random.beta(2.5, 28.5, 100_000)
    assert found.constraints_probability == pytest.approx(np.mean(hits >= 3.0 * alarms), abs=0.03)


def test_of_a_constraint_that_is_infinite_in_all_resamples_no_probability_is_known() -> None:
    y = np.repeat([0, 1], [30, 10])
    score = np.where(y == 1, 0.8, 0.2) + np.linspace(-0.1, 0.1, 40)
    limits = (Limit("positive_likelihood_ratio", 3.0, None), Limit("specificity", 0.8, None))
    found = rule(source_of(y, np.stack([1.0 - score, score], axis=1)), objective="recall", limits=limits)
    assert [one.probability is None for one in found.constraints] == [True, False]
    assert found.constraints_probability is None
    assert found.note.endswith("is not known, as one is infinite in all resamples.")


def test_what_is_expected_is_in_the_range_of_the_objective() -> None:
    score = np.linspace(0.1, 0.6, 6)
    source = source_of(np.array([1, 1, 0, 1, 0, 0]), np.stack([1.0 - score, score], axis=1))
    found = rule(source, objective="h_mean", limits=(Limit("recall", 0.5, None),))
    assert found.objective.value == 0.0
    assert found.objective.corrected is not None
    assert (found.objective.corrected.value, found.objective.corrected.optimism) == (0.0, 0.0)


@pytest.mark.parametrize(
    "question", [{"objective": "accuracy_p_value"}, {"limits": (Limit("accuracy_standard_error", None, 0.1),)}]
)
def test_nothing_is_decided_by_what_describes_the_sample(question: dict[str, Any]) -> None:
    with pytest.raises(NotComparable, match="nothing can be decided by it"):
        rule(**question)


@pytest.mark.parametrize(
    ("question", "pointer"),
    [
        ({"objective": "mean(recall, log_loss)"}, "/objective"),
        ({"limits": (Limit("roc_auc", 0.9),)}, "/constraints/0/metric"),
    ],
)
def test_nothing_is_decided_by_what_does_not_depend_on_it(question: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidExpression, match="does not depend on what is decided") as refused:
        rule(**question)
    assert refused.value.pointer == pointer


def test_class_weights_have_a_hundred_resamples_at_most() -> None:
    with pytest.raises(InvalidInput, match="expected at most 100 for class weights"):
        rule(source_of(*softmax_problem(30, 3, 1)), objective="accuracy", resamples=101)


def test_what_is_infinite_is_not_corrected() -> None:
    y = np.repeat([0, 1], [30, 10])
    score = np.where(y == 1, 0.8, 0.2) + np.linspace(-0.1, 0.1, 40)
    found = rule(source_of(y, np.stack([1.0 - score, score], axis=1)), objective="diagnostic_odds_ratio")
    assert found.objective.corrected is None
    assert "It is not corrected: it is infinite or undefined" in found.note
    assert found.curve is not None
    assert np.isfinite(found.curve.y).all()


def test_a_guarantee_asks_for_more_on_the_data() -> None:
    plain, sure = rule(limits=SPECIFIC), rule(limits=SPECIFIC, guarantee=0.95)
    (entry,) = sure.constraints
    assert entry.required is not None
    assert entry.value is not None
    assert 0.8 < entry.required <= entry.value
    assert sure.guarantee == 0.95
    # From above it is the same.
    (above,) = rule(limits=(Limit("false_positive_rate", None, 0.2),), guarantee=0.95).constraints
    assert above.required == pytest.approx(1.0 - entry.required)
    assert sure.constraints_probability is not None
    assert plain.constraints_probability is not None
    assert plain.constraints_probability < 0.8 < 0.9 < sure.constraints_probability
    assert sure.objective.value is not None
    assert plain.objective.value is not None
    assert sure.objective.value <= plain.objective.value
    assert "in at least 95 % of the cases" in sure.note


def test_all_constraints_together_are_less_likely_than_each() -> None:
    found = rule(limits=(Limit("specificity", 0.75, None), Limit("recall", 0.6, None)))
    each = [entry.probability for entry in found.constraints]
    assert found.constraints_probability is not None
    assert all(chance is not None and found.constraints_probability <= chance for chance in each)


@pytest.mark.parametrize(
    ("source", "question", "code"),
    [
        (TWO, {"guarantee": 0.9}, "no_constraints"),
        (replace(TWO, facts={GROUPS_FACT: 9}), {"guarantee": 0.9, "limits": SPECIFIC}, "needs_independent_samples"),
        (replace(TWO, content=Content.weights), {"guarantee": 0.9, "limits": SPECIFIC}, "needs_independent_samples"),
        (
            source_of(*softmax_problem(60, 3, 1)),
            {"objective": "macro_f1", "guarantee": 0.9, "limits": (Limit("min(recall@*)", 0.1, None),)},
            "two_classes_only",
        ),
        (AT_SITES, {"guarantee": 0.9, "limits": (Limit("min(recall, by=site)", 0.5, None),)}, "needs_all_samples"),
        (TWO, {"guarantee": 0.9, "limits": (Limit("recall", 0.5, 0.9),)}, "needs_one_limit"),
    ],
)
def test_what_has_no_guarantee(source: MatrixInput, question: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rule(source, **question)
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/guarantee", code)


def test_a_guarantee_that_the_samples_cannot_give() -> None:
    with pytest.raises(NoRule, match="too few samples"):
        rule(limits=(Limit("specificity", 0.999, None),), guarantee=0.95)


@pytest.mark.parametrize(
    ("source", "correction"),
    [(TWO, Correction.NONE), (replace(TWO, facts={GROUPS_FACT: 9}), Correction.OPTIMISM)],
)
def test_unknown_chances_are_not_made_up(source: MatrixInput, correction: Correction) -> None:
    found = rule(source, limits=SPECIFIC, correction=correction)
    assert found.constraints_probability is None
    assert [entry.probability for entry in found.constraints] == [None]
    assert "is not known" in found.note
    assert found.objective.corrected is None


def test_thresholds_hold_every_slice_to_a_floor() -> None:
    """The rule is the best of all cuts, each counted by itself at every site."""
    worst, precise = "min(recall, by=site)", 'precision[site="B"]'
    found = rule(AT_SITES, objective="specificity", limits=(Limit(worst, 0.7, None), Limit(precise, 0.3, None)))
    cuts = np.append(np.sort(P[:, 1]), 2.0)[:, None]
    chosen, others = P[:, 1] >= cuts, Y == 0
    recalls = [(chosen & (Y == 1) & (one == SITE)).sum(axis=1) / ((Y == 1) & (one == SITE)).sum() for one in "ABC"]
    lowest = np.min(recalls, axis=0)
    with np.errstate(invalid="ignore"):
        precision = (chosen & (Y == 1) & (SITE == "B")).sum(axis=1) / (chosen & (SITE == "B")).sum(axis=1)
    specificity = (~chosen & others).sum(axis=1) / others.sum()
    allowed = (lowest >= 0.7) & (precision >= 0.3)
    assert 0 < allowed.sum() < allowed.size
    assert found.objective.value == specificity[allowed].max()
    assert found.threshold is not None
    at = np.flatnonzero((chosen == (P[:, 1] >= found.threshold)).all(axis=1))[0]
    assert [one.value for one in found.constraints] == [lowest[at], precision[at]]
    half = np.flatnonzero((chosen == (P[:, 1] >= 0.5)).all(axis=1))[0]
    assert [one.default for one in found.constraints] == [lowest[half], precision[half]]
    assert [one.probability for one in found.constraints] == [None, None]
    assert found.objective.corrected is not None
    odds = rule(AT_SITES, objective="equalized_odds_difference(by=site)", correction=Correction.NONE, limits=SPECIFIC)
    false = [(chosen & others & (one == SITE)).sum(axis=1) / (others & (one == SITE)).sum() for one in "ABC"]
    gaps = np.maximum(np.ptp(recalls, axis=0), np.ptp(false, axis=0))
    assert odds.objective.value == pytest.approx(gaps[specificity >= 0.8].min(), abs=1e-15)


@pytest.mark.parametrize("correction", [Correction.OPTIMISM, Correction.B632])
def test_an_objective_of_one_slice_is_that_of_its_samples(correction: Correction) -> None:
    """What is searched there is the same as with these samples alone."""
    places = np.flatnonzero(SITE == "B")
    whole = rule(AT_SITES, objective='f1[site="B"]', correction=correction)
    alone = rule(restricted(AT_SITES, places), correction=correction)
    assert (whole.objective.value, whole.objective.default) == (alone.objective.value, alone.objective.default)
    assert whole.threshold is not None
    assert alone.threshold is not None
    assert np.array_equal(P[places, 1] >= whole.threshold, P[places, 1] >= alone.threshold)
    corrected = [one.objective.corrected for one in (whole, alone)]
    assert corrected[0] is not None
    assert corrected[1] is not None
    assert corrected[0].value == pytest.approx(corrected[1].value, abs=0.05)


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ({"objective": 'f1[site="D"]'}, InvalidExpression, "expected a value of site"),
        ({"objective": "range(f1, by=site, minimum_samples=200)"}, NoRule, "too few slices"),
    ],
)
def test_slices_that_no_rule_is_of(question: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        rule(AT_SITES, **question)


Y3, P3 = softmax_problem(150, 3, 2)
AT_WARDS = classified(Y3, P3.argmax(axis=1), {"site": SITE[:150]}, ("A", "B", "C"), outputs=P3)
WORST = "min(recall@A, by=site)"


def recalls_at_sites(weights: Any, code: int) -> Any:
    """Recalls (sites) of a class under class weights (K)."""
    said, site = (P3 * weights).argmax(axis=1), SITE[:150]
    return np.array([(said == code)[(code == Y3) & (site == one)].mean() for one in "ABC"])


@pytest.mark.parametrize("correction", [Correction.OPTIMISM, Correction.NONE])
def test_class_weights_hold_every_slice_to_a_floor(correction: Correction) -> None:
    """No rule of a grid is better that holds every site to it."""
    found = rule(
        AT_WARDS,
        objective='recall@B[site="B"]',
        limits=(Limit(WORST, 0.5, None), Limit("range(recall@C, by=site)", None, 0.4)),
        correction=correction,
        resamples=5,
    )
    assert found.weights is not None
    own = np.array([*found.weights.values()])
    assert found.objective.value == recalls_at_sites(own, 1)[1]
    assert found.objective.default == recalls_at_sites(np.ones(3), 1)[1]
    assert [one.value for one in found.constraints] == pytest.approx(
        [recalls_at_sites(own, 0).min(), np.ptp(recalls_at_sites(own, 2))]
    )
    tried = [np.array([1.0, b, c]) for b in np.geomspace(0.1, 10.0, 25) for c in np.geomspace(0.1, 10.0, 25)]
    allowed = [
        one for one in tried if recalls_at_sites(one, 0).min() >= 0.5 and np.ptp(recalls_at_sites(one, 2)) <= 0.4
    ]
    assert 0 < len(allowed) < len(tried)
    assert found.objective.value >= max(recalls_at_sites(one, 1)[1] for one in allowed)
    assert (found.objective.corrected is not None) is (correction is Correction.OPTIMISM)
    assert [one.probability for one in found.constraints] == [None, None]


def test_a_grid_of_class_weights_counts_each_slice() -> None:
    found = rule(
        AT_WARDS,
        objective=WORST,
        limits=(Limit("range(recall@B, by=site)", None, 0.3),),
        surface=Surface(8),
        resamples=2,
    ).surface
    assert found is not None
    worst = [recalls_at_sites(one, 0).min() for one in found.weights]
    assert found.objective == pytest.approx(worst)
    allowed = np.array([np.ptp(recalls_at_sites(one, 1)) <= 0.3 + 1e-12 for one in found.weights])
    assert found.feasible.tolist() == allowed.tolist()
    assert 0 < allowed.sum() < allowed.size
    assert found.best_index is not None
    assert worst[found.best_index] == max(np.array(worst)[allowed])


def test_many_slices_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MOST_RESAMPLED", 3 * P3.size - 1)
    plain, sliced = (rule(AT_WARDS, objective=text, resamples=2) for text in ("recall@A", WORST))
    assert plain.objective.corrected is not None
    assert sliced.objective.corrected is None
    assert "on so many samples or slices" in sliced.note


def test_class_weights_have_chances_too() -> None:
    found = rule(
        source_of(*softmax_problem(150, 3, 2)),
        objective="macro_f1",
        limits=(Limit("recall@A", 0.5, None),),
        resamples=10,
    )
    assert found.weights is not None
    assert set(found.weights) == {"A", "B", "C"}
    assert found.threshold is None
    assert found.curve is None
    assert found.constraints_probability is not None
    assert 0.0 < found.constraints_probability <= 1.0
