"""Recommendations of labels, clusterings, rankings and sets: what the survey says in its discussions is followed."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from app.domain.advice import CLASSIFICATION, Advice, Fork, Leaf, Node, Recommendation, Request, recommend, trees
from app.domain.errors import InvalidInput
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.references import REFERENCES
from tests.bank import each

# By task; each has one tree, which is called like it.
TASK_TREES = {task: named[task] for task, named in trees().by_task.items() if task != CLASSIFICATION}


def forks(node: Node) -> Iterator[Fork]:
    if isinstance(node, Fork):
        yield node
        for branch in node.branches:
            yield from forks(branch.next)


def leaf_advice(node: Node) -> Iterator[Advice]:
    if isinstance(node, Leaf):
        yield from node.advice
    else:
        for branch in node.branches:
            yield from leaf_advice(branch.next)


def requests() -> Iterator[Request]:
    """Every combination of answers that the questions of a task know."""
    for task, tree in TASK_TREES.items():
        known: dict[str, list[Any]] = {}
        for fork in forks(tree):
            known.setdefault(fork.about, [branch.answer for branch in fork.branches])
        for inputs in ((Inputs.MATRIX,), (Inputs.MATRIX, Inputs.PROBABILITIES)):
            for chosen in product(*known.values()):
                yield Request(task=task, answers=dict(zip(known, chosen, strict=True)), inputs=inputs)


REQUESTS = [*requests()]


def ask(task: str, **answers: Any) -> Recommendation:
    inputs = [Inputs(one) for one in answers.pop("inputs", ["matrix"])]
    return recommend(Request(task=Task(task), answers=answers, inputs=inputs))


def advised(task: str, **answers: Any) -> list[str]:
    return [one.metric for one in ask(task, **answers).metrics]


@each("request_", REQUESTS, ids=str)
def test_every_request_is_answered_with_metrics_of_its_task(request_: Request) -> None:
    answer = recommend(request_)
    assert answer.metrics
    for step in answer.path:
        assert step.tree == request_.task
        assert step.question.endswith("?")
        assert step.reason.endswith(".")
    task = Task(request_.task)
    known = catalogue().for_task(task, INPUTS_OF[task]).by_name
    for one in answer.metrics:
        assert known[one.metric].card.inputs is one.inputs
        assert one.reason.endswith(".")
        assert {other.metric for other in one.alternatives} <= known.keys()
        assert one.source.reference in REFERENCES
    assert {step.source.reference for step in answer.path} <= answer.references.keys()


def test_all_advice_is_given_to_someone_and_every_question_has_an_assumption() -> None:
    assert {one.metric for tree in TASK_TREES.values() for one in leaf_advice(tree)} == {
        one.metric for request_ in REQUESTS for one in recommend(request_).metrics
    }
    for task, tree in TASK_TREES.items():
        assert {fork.about for fork in forks(tree)} == trees().assumed[task].keys()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        # "tailored for unsupervised clustering scenarios with no ground truth labels"
        ({"known_classes": False}, ["silhouette"]),
        # "preferable over RI when the primary concern is to assess quality without the bias by random assignments"
        ({"known_classes": True, "chance_corrected": True}, ["adjusted_rand"]),
        # "Cluster purity is most useful when models produce the same number of clusters"
        (
            {"known_classes": True, "same_number_of_clusters": True, "balanced": True},
            ["purity", "rand_index", "pair_fowlkes_mallows"],
        ),
        # RI "tends to yield high values even when the clustering is suboptimal, especially in imbalanced datasets"
        ({"known_classes": True, "same_number_of_clusters": True}, ["purity", "adjusted_rand"]),
        # FM is "independent of the number of clusters"; "when the clusters are imbalanced" it "may be high"
        ({"known_classes": True, "balanced": True}, ["pair_fowlkes_mallows", "adjusted_rand"]),
        # "ARI is more reliable when the number of clusters varies, or the class distribution is unbalanced"
        ({"known_classes": True}, ["adjusted_rand"]),
    ],
)
def test_the_survey_is_followed_on_clusterings(answers: dict[str, Any], expected: list[str]) -> None:
    assert advised("clustering", **answers) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        # "minimizes false positives (type-1 error appropriate)"
        ({"error_priority": "type1"}, "precision_at_k"),
        # "particularly useful when the optimal value of k is uncertain"
        ({"error_priority": "type1", "fixed_cutoff": False}, "average_precision_at_k"),
        # "emphasizes minimizing false negatives (type-2 error appropriate)"
        ({"error_priority": "type2"}, "recall_at_k"),
        # "when the goal is to identify the first relevant item in a ranked list"
        ({"error_priority": "first"}, "mean_reciprocal_rank"),
        # "accounts for the rank of all relevant items, giving more weight to items at higher ranks"
        ({"error_priority": "order"}, "ndcg_at_k"),
        ({}, "ndcg_at_k"),
    ],
)
def test_the_survey_is_followed_on_rankings(answers: dict[str, Any], expected: str) -> None:
    assert advised("ranking", **answers) == [expected]


def test_labels_and_sets() -> None:
    assert advised("multilabel") == ["h_mean", "macro_f1"]
    assert advised("multilabel", judged="samples") == ["samples_f1"]
    assert advised("multilabel", judged="samples", inputs=["probabilities"])[1] == "label_ranking_average_precision"
    assert any("left out" in note for note in ask("multilabel", judged="samples").notes)
    assert [advised("sets", judged=judged) for judged in ("items", "pixels", "classes", "whole_sets")] == [
        ["samples_jaccard"], ["pooled_jaccard"], ["mean_class_jaccard"], ["subset_accuracy"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "answers", "pointer", "code"),
    [
        ("clustering", {}, "/known_classes", "missing_field"),
        ("clustering", {"known_classes": True, "graphical": True}, "/graphical", "not_for_this_task"),
        ("ranking", {"error_priority": "costs"}, "/error_priority", "unknown_answer"),
        ("sets", {"judged": "labels"}, "/judged", "unknown_answer"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_place(
    task: str, answers: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(task, **answers)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [(pointer, code)]


def test_leaves_are_told_apart_by_their_answers() -> None:
    for tree in TASK_TREES.values():
        ends = [branch.next for fork in forks(tree) for branch in fork.branches if isinstance(branch.next, Leaf)]
        assert all(leaf.advice for leaf in ends)
