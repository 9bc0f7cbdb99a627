"""Recommendations: every answer exists, names real metrics, and says why."""

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from app.domain.advice import (
    CLASSIFICATION,
    Advice,
    Fork,
    Leaf,
    Node,
    Recommendation,
    Request,
    recommend,
    trees,
    walk,
)
from app.domain.errors import InvalidInput
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.references import REFERENCES
from app.kernel.numerics.arrays import silently
from tests.bank import each

METRICS = {
    row["key"]: row["inputs"]
    for row in csv.DictReader((Path(__file__).parent.parent / "data" / "metrics.csv").open(encoding="utf-8"))
}
TREES = trees().by_task[CLASSIFICATION]
CURVES = {"roc", "pr", "det", "mcp", "imcp", "calibration", "decision", "cost", "gain"}
INPUTS: tuple[tuple[Inputs, ...], ...] = (
    (Inputs.MATRIX,),
    (Inputs.PROBABILITIES,),
    (Inputs.MATRIX, Inputs.PROBABILITIES),
)
ABOUT = ("classes", "balanced", "error_priority", "chance_corrected", "graphical")
REQUESTS = [
    Request(answers=dict(zip(ABOUT, answers, strict=True)), inputs=inputs)
    for *answers, inputs in product(
        ("binary", "multiclass"),
        (True, False),
        ("type1", "type2", "both", "costs"),
        (True, False),
        (True, False),
        INPUTS,
    )
]


def leaves(node: Node) -> Iterator[Leaf]:
    """Every end of a tree."""
    if isinstance(node, Leaf):
        yield node
        return
    for branch in node.branches:
        yield from leaves(branch.next)


def questions(node: Node) -> Iterator[Fork]:
    """Every fork of a tree."""
    if isinstance(node, Fork):
        yield node
        for branch in node.branches:
            yield from questions(branch.next)


def advice_in_trees() -> Iterator[Advice]:
    for tree in TREES.values():
        for leaf in leaves(tree):
            for advice in leaf.advice:
                yield advice
                if advice.instead is not None:
                    yield advice.instead


def keys(recommendation: Recommendation) -> list[str]:
    return [advice.metric for advice in recommendation.metrics]


def ask(**answers: object) -> list[str]:
    inputs: Any = answers.pop("inputs", (Inputs.MATRIX,))
    return keys(recommend(Request(answers=answers, inputs=inputs)))


@each("request_", REQUESTS, ids=str)
def test_every_request_is_answered_with_metrics_path_and_reasons(request_: Request) -> None:
    answer = recommend(request_)
    assert answer.metrics
    assert len(set(keys(answer))) == len(answer.metrics)
    assert answer.notes
    assert len(set(answer.notes)) == len(answer.notes)
    assert [step.tree for step in answer.path if step.question == "Which error matters most?"] == ["errors"]
    for step in answer.path:
        assert step.question.endswith("?")
        assert step.reason.endswith(".")
        assert step.source.place
    for advice in answer.metrics:
        assert advice.reason.endswith(".")
        assert advice.instead is None
        assert advice.inputs is Inputs.MATRIX or Inputs.PROBABILITIES in request_.inputs


@each("request_", REQUESTS, ids=str)
def test_every_answer_of_the_request_is_on_the_path(request_: Request) -> None:
    path = recommend(request_).path
    answers = {step.question: step.answer for step in path}
    assert answers["How many classes are there?"] == request_.answers["classes"]
    assert answers["Are the classes about equally frequent?"] == request_.answers["balanced"]
    assert answers["Which error matters most?"] == request_.answers["error_priority"]
    assert answers["Should guessing score 0?"] == request_.answers["chance_corrected"]
    assert answers["Is a curve wanted?"] == request_.answers["graphical"]
    assert answers["Are there predicted probabilities?"] == request_.has_probabilities


def _reached(node: Node, request_: Request) -> Leaf:
    while isinstance(node, Fork):
        node = node.branch(request_.all_answers[node.about]).next
    return node


@pytest.mark.parametrize("name", TREES)
def test_every_leaf_can_be_reached(name: str) -> None:
    reached = {id(_reached(TREES[name], request_)) for request_ in REQUESTS}
    assert reached == {id(leaf) for leaf in leaves(TREES[name])}


def test_every_piece_of_advice_is_given_to_someone() -> None:
    given = {key for request_ in REQUESTS for key in keys(recommend(request_))}
    assert {advice.metric for advice in advice_in_trees()} <= given
    of_tasks = [tree for named in trees().by_task.values() for tree in named.values()]
    found = {advice for tree in of_tasks for leaf in leaves(tree) for advice in leaf.advice}
    assert {*trees().advice.values()} == found | {advice.instead for advice in found if advice.instead is not None}


@pytest.mark.parametrize("name", TREES)
def test_branches_of_a_question_do_not_overlap(name: str) -> None:
    for question in questions(TREES[name]):
        answers = [branch.answer for branch in question.branches]
        assert len(answers) == len(set(answers)) > 1
        assert REQUESTS[0].all_answers[question.about] is not None


def test_every_metric_is_in_the_list_with_its_inputs() -> None:
    for advice in advice_in_trees():
        assert METRICS[advice.metric] == advice.inputs, advice.metric
        for alternative in advice.alternatives:
            assert alternative.metric in METRICS, alternative.metric
            assert alternative.reason
        assert advice.curve is None or advice.curve in CURVES


def test_every_matrix_metric_is_in_the_catalogue() -> None:
    named = {advice.metric for advice in advice_in_trees()} | {
        alternative.metric for advice in advice_in_trees() for alternative in advice.alternatives
    }
    by_key = {metric.key: metric for metric in catalogue().of_matrices.metrics}
    matrix = {key for key in named if METRICS[key] == Inputs.MATRIX}
    assert matrix <= set(by_key)


def test_every_source_is_in_the_references() -> None:
    for tree in TREES.values():
        assert {question.source.reference for question in questions(tree)} <= set(REFERENCES)
    assert {advice.source.reference for advice in advice_in_trees()} <= set(REFERENCES)


def test_parameters_that_are_named_exist() -> None:
    for advice in advice_in_trees():
        if advice.parameters:
            accepted = {parameter.name for parameter in catalogue().of_matrices.by_name[advice.metric].card.parameters}
            assert advice.parameters.partition("=")[0] in accepted


def test_advice_that_needs_probabilities_is_replaced_or_left_out() -> None:
    for request_ in REQUESTS:
        noted = trees().texts["no_probabilities"] in recommend(request_).notes
        said = {about: request_.answers[about] for about in ("classes", "balanced", "error_priority")}
        wanted = request_.answers["graphical"] or "h_measure" in ask(**said, inputs=[Inputs.PROBABILITIES])
        assert noted is (wanted and not request_.has_probabilities)


@each(
    ("answers", "first"),
    [
        ({"classes": "binary", "balanced": True}, ["accuracy", "f1"]),
        ({"classes": "binary", "balanced": True, "error_priority": "type1"}, ["precision", "specificity"]),
        ({"classes": "binary", "balanced": True, "error_priority": "type2"}, ["recall", "npv"]),
        (
            {"classes": "binary", "balanced": True, "error_priority": "costs"},
            ["f_beta", "net_benefit", "weighted_h_mean"],
        ),
        ({"classes": "multiclass", "balanced": True}, ["average_accuracy", "micro_f_beta"]),
        ({"classes": "binary", "balanced": False}, ["mcc", "balanced_accuracy"]),
        ({"classes": "binary", "balanced": False, "error_priority": "type1"}, ["likelihood_ratio_positive"]),
        ({"classes": "binary", "balanced": False, "error_priority": "type2"}, ["likelihood_ratio_negative"]),
        ({"classes": "binary", "balanced": False, "chance_corrected": True}, ["mcc", "cohen_kappa", "scott_pi"]),
        ({"classes": "multiclass", "balanced": False}, ["macro_f1_of_means", "survey_balanced_accuracy"]),
        ({"classes": "multiclass", "balanced": False, "error_priority": "type1"}, ["macro_precision"]),
        ({"classes": "multiclass", "balanced": False, "error_priority": "type2"}, ["balanced_accuracy"]),
        (
            {"classes": "multiclass", "balanced": False, "chance_corrected": True},
            ["mcc", "weighted_kappa", "adjusted_balanced_accuracy"],
        ),
        (
            {"classes": "binary", "balanced": True, "graphical": True, "inputs": ["probabilities"]},
            ["roc_auc", "equal_error_rate"],
        ),
        (
            {"classes": "binary", "balanced": False, "graphical": True, "inputs": ["probabilities"]},
            ["average_precision"],
        ),
        ({"classes": "binary", "balanced": False, "graphical": True}, ["single_point_aupr"]),
        (
            {"classes": "binary", "balanced": False, "error_priority": "costs", "inputs": ["probabilities"]},
            ["h_measure", "net_benefit"],
        ),
        ({"classes": "binary", "balanced": False, "error_priority": "costs"}, ["net_benefit", "weighted_h_mean"]),
        (
            {"classes": "multiclass", "balanced": False, "graphical": True, "inputs": ["matrix", "probabilities"]},
            ["macro_pr_auc", "roc_auc_ovo_macro"],
        ),
    ],
)
def test_the_survey_is_followed(answers: dict[str, object], first: list[str]) -> None:
    assert ask(**answers)[: len(first)] == first


def test_the_other_papers_are_heard() -> None:
    for classes, balanced in product(("binary", "multiclass"), (True, False)):
        advised = ask(classes=classes, balanced=balanced, inputs=["probabilities"])
        assert "h_mean" in advised
        assert "au_imcp" in advised
        assert ("upm" if classes == "binary" else "gps_upm") in advised
    assert "au_imcp" not in ask(classes="multiclass", balanced=False)
    assert "gps_upm_ordered" in ask(classes="multiclass", balanced=False)


@pytest.mark.parametrize("classes", [2, 5])
def test_what_is_advised_as_corrected_for_chance_gives_nothing_to_a_constant_model(classes: int) -> None:
    """15 of 16 samples of one class, and a model that names no other."""
    counts = np.zeros((classes, classes))
    counts[:, 0] = [15 * (classes - 1), *[1] * (classes - 1)]
    kind = "binary" if classes == 2 else "multiclass"
    request_ = Request(answers={"classes": kind, "balanced": False, "chance_corrected": True})
    leaf = _reached(TREES["chance"], request_)
    assert leaf.advice
    for advice in leaf.advice:
        for key in (advice.metric, *(alternative.metric for alternative in advice.alternatives)):
            with silently():
                values = catalogue().of_matrices.by_name[key](Table(counts))
            assert not (values > 0.01).any(), key


@each("request_", REQUESTS, ids=str)
def test_a_proper_score_stands_beside_every_other_score_of_probabilities(request_: Request) -> None:
    cards = [catalogue().by_name[key].card for key in keys(recommend(request_))]
    known = {card.inference.proper for card in cards}
    assert True in known or False not in known
    assert request_.has_probabilities is (True in known)


def test_advice_says_that_a_score_is_not_proper() -> None:
    improper = [
        advice for advice in advice_in_trees() if catalogue().by_name[advice.metric].card.inference.proper is False
    ]
    assert improper
    for advice in improper:
        assert "no proper score" in (advice.disagreement or "")


def test_disagreements_and_sources_are_given() -> None:
    answer = recommend(Request(answers={"classes": "binary", "balanced": False}))
    by_key = {advice.metric: advice for advice in answer.metrics}
    assert "class prevalence alone" in (by_key["mcc"].disagreement or "")
    assert "unsuitable under extreme imbalance" in (by_key["balanced_accuracy"].disagreement or "")
    assert by_key["h_mean"].source.reference == "aguilar2025"
    assert [alternative.metric for alternative in by_key["h_mean"].alternatives] == [
        "min_recall",
        "g_mean",
        "balanced_accuracy",
    ]


def test_an_answer_that_no_question_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected one of binary, multiclass, got 'many'") as caught:
        ask(classes="many", balanced=True)
    assert caught.value.pointer == "/classes"


def test_it_can_be_written_as_json() -> None:
    written = orjson.loads(orjson.dumps(recommend(REQUESTS[0])))
    assert set(written) == {"metrics", "path", "notes", "references"}
    assert set(written["path"][0]) == {"tree", "question", "answer", "reason", "source"}


def test_an_answer_that_a_question_does_not_know_is_said_as_it_was_given() -> None:
    with pytest.raises(InvalidInput) as refused:
        walk(CLASSIFICATION, {"chance_corrected": "yes", "classes": "yes"})
    assert [fault.detail for fault in refused.value.faults] == ["expected one of binary, multiclass, got 'yes'"]
