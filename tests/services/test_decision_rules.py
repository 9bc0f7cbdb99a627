"""The best decision rule, without a server: what it is worth, and how sure its constraints are."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from app.domain.errors import InvalidInput, NoRule
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.kernel.decide.rules import Correction
from app.kernel.matrix.table import confusion_counts
from app.services.decide.answers import DecisionRule
from app.services.decide.thresholds import Limit, RuleQuestion, best_rule
from tests.kernel.probability.problems import softmax_problem


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


def test_a_guarantee_asks_for_more_on_the_data() -> None:
    plain, sure = rule(limits=SPECIFIC), rule(limits=SPECIFIC, guarantee=0.95)
    (entry,) = sure.constraints
    assert entry.required is not None
    assert entry.value is not None
    assert 0.8 < entry.required <= entry.value
    assert sure.guarantee == 0.95
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
