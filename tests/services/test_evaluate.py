import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.api.answers import write_json
from app.domain.errors import UnknownMetric
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.options import IntervalChoice, Options
from app.domain.report import Group, Report
from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.evaluations import Evaluation
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import evaluate, matrix_reports
from app.services.evaluate.sections.matrix import batch_values
from app.services.stored import options_as_json, options_from_json


def source(matrix: Any, content: Content = Content.counts, folds: Any = None) -> MatrixInput:
    counts = np.array(matrix, dtype=np.int64 if content is Content.counts else np.float64)
    size = len(counts)
    return MatrixInput(
        kind="confusion_matrix",
        labels=tuple(f"class {k}" for k in range(size)),
        positive=1 if size == 2 else None,
        content=content,
        counts=counts,
        fold_counts=None if folds is None else np.array(folds),
    )


def written(report: Report) -> bytes:
    return write_json(Evaluation(report=report))


matrices = st.integers(2, 5).flatmap(
    lambda size: hnp.arrays(np.int64, (size, size), elements=st.integers(0, 5)).filter(lambda found: found.any())
)


@settings(deadline=None)
@given(matrices)
def test_values_are_those_of_the_kernel(matrix: Any) -> None:
    report = evaluate(source(matrix), Options())
    size = len(matrix)
    overall: Any = report.metrics
    by_class: Any = report.per_class
    with np.errstate(all="ignore"):
        twin = at_equal_prevalence(matrix.astype(float))
    for scope in Scope:
        metrics = [m for m in catalogue().of_matrices.reported.of_scope(scope) if m.card.inputs.value == "matrix"]
        observed, balanced = (evaluate_table(Table(counts), metrics) for counts in (matrix, twin))
        for position, metric in enumerate(metrics):
            insensitive = metric.card.prevalence.is_insensitive(size)
            group = Group.INSENSITIVE if insensitive else Group.SENSITIVE
            twin_of = ((balanced, Group.BALANCED),) if metric.card.has_twin(size) else ()
            for values, name in ((observed, group), *twin_of):
                if scope is Scope.OVERALL:
                    check(overall[name][metric.key], values[position])
                else:
                    for k, label in enumerate(report.input.labels):
                        check(by_class[label][name][metric.key], values[position, k])
                    if size == 2:
                        check(overall[name][metric.key], values[position, 1])


@pytest.mark.parametrize("matrix", [[[950, 48], [1, 1]], [[950, 48, 0], [1, 1, 0], [3, 2, 9]]])
def test_what_counts_samples_is_not_computed_from_scaled_rows(matrix: Any) -> None:
    """Two positives scaled to 500 would make a p-value of 5e-48."""
    report = evaluate(source(np.array(matrix)), Options())
    balanced = report.metrics["at_balanced_prevalence"]
    about_counts = (
        "accuracy_p_value", "accuracy_standard_error", "kappa_standard_error", "chi_squared", "adjusted_rand",
        "krippendorff_alpha", "weighted_alpha", "zero_one_loss_count", "global_performance_index",
    )  # fmt: skip
    assert not set(about_counts) & set(balanced)
    assert {"accuracy", "mcc", "phi_squared", "cohen_kappa"} <= set(balanced)
    for groups in report.per_class.values():
        assert not {"tp", "fp", "support", "hamming_distance"} & set(groups["at_balanced_prevalence"])
        assert "prevalence" in groups["at_balanced_prevalence"]


def test_what_needs_counts_is_not_computed_from_rates_on_request_either() -> None:
    asked = ("accuracy", "accuracy_p_value", "mean(accuracy, adjusted_rand)")
    report = evaluate(source(np.array([[0.9, 0.1], [0.2, 0.8]]), content=Content.rates), Options(metrics=asked))
    assert report.requested["accuracy"] == pytest.approx(0.85)
    assert [report.requested[text] for text in asked[1:]] == [None, None]
    entries = {(entry.metric, entry.code) for entry in report.undefined}
    assert {(text, "needs_counts") for text in asked[1:]} <= entries


def check(found: float | None, expected: float) -> None:
    if math.isfinite(expected):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    else:
        assert found is None


@settings(deadline=None)
@given(st.lists(matrices, min_size=2, max_size=6))
@example([np.array([[1, 1], [1, 1]]), np.array([[0, 1], [1, 1]])])
def test_company_changes_nothing(found: list[Any]) -> None:
    """Reports made together are to the bit those made alone: what is read back is what was answered."""
    size = len(found[0])
    options = Options(metrics=("h_mean", "precision@*"), interpretation=True)
    sources = [source(matrix) for matrix in found if len(matrix) == size]
    together = matrix_reports(batch_values([ask(one, options) for one in sources]))
    for one, report in zip(sources, together, strict=True):
        assert written(report) == written(evaluate(one, options))


def test_company_of_another_content_changes_nothing() -> None:
    quiet = Options(intervals=IntervalChoice.NONE)
    sources = [
        source([[5, 1, 0], [2, 3, 1], [0, 0, 4]]),
        source([[0.5, 0.1, 0], [0.2, 0.3, 0.1], [0, 0, 0.4]], Content.weights),
        source([[5, 0, 0], [2, 0, 0], [0, 0, 4]], Content.rates),
    ]
    for one, report in zip(sources, matrix_reports(batch_values([ask(one, quiet) for one in sources])), strict=True):
        assert written(report) == written(evaluate(one, quiet))


def test_an_expression_that_is_none_is_pointed_at() -> None:
    with pytest.raises(UnknownMetric) as caught:
        evaluate(source([[1, 2], [3, 4]]), Options(metrics=("accuracy", "acuracy")))
    assert caught.value.pointer == "/options/metrics/1"
    assert "accuracy" in caught.value.suggestions


def test_an_input_is_left_as_it_is() -> None:
    given_source = source([[5, 1, 0], [2, 0, 0], [0, 0, 0]])
    before = given_source.counts.copy()
    evaluate(given_source, Options())
    np.testing.assert_array_equal(given_source.counts, before)


def test_folds() -> None:
    stack = np.array([[[8, 2], [1, 9]], [[6, 4], [3, 7]], [[10, 0], [5, 5]]])
    report = evaluate(source(stack.sum(axis=0), folds=stack), Options())
    assert report.folds is not None
    metrics = catalogue().of_matrices.reported.of_scope(Scope.OVERALL)
    for metric in metrics:
        values = [float(metric(_table(fold))) for fold in stack]
        found = report.folds[metric.key]
        if np.isfinite(values).all():
            assert found.values == pytest.approx(tuple(values), rel=1e-9, abs=1e-12)
            assert found.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-12)
            assert found.sd == pytest.approx(np.std(values, ddof=1), rel=1e-9, abs=1e-9)
        else:
            assert found.mean is None


def _table(counts: Any) -> Any:
    from app.kernel.matrix.table import Table

    return Table(counts)


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(metrics=("h_mean", "recall@*"), level=0.8, seed=3, intervals=IntervalChoice.NONE, interpretation=True),
        Options(level=0.99),
        Options(seed=0),
    ],
)
def test_options_are_kept_as_they_were(options: Options) -> None:
    assert options_from_json(options_as_json(options)) == options


def test_default_options_cost_nothing() -> None:
    assert options_as_json(Options()) == {}


@pytest.mark.parametrize("choice", [IntervalChoice.HEADLINE, IntervalChoice.ALL])
def test_intervals_of_a_class_of_a_few_samples_come_with_a_finding(choice: IntervalChoice) -> None:
    options = Options(intervals=choice)
    few = [f for f in evaluate(source([[40, 2], [1, 3]]), options).findings if f.code == "intervals_of_few_samples"]
    assert [finding.evidence["classes"] for finding in few] == [["class 1"]]
    codes = {finding.code for finding in evaluate(source([[40, 2], [2, 3]]), options).findings}
    assert "intervals_of_few_samples" not in codes


def test_twins_of_labels_that_nothing_or_all_has_say_so() -> None:
    for truth, code in ((0, "no_actual_samples"), (1, "no_other_samples")):
        labelled = Multilabel(y_true=np.full((2, 2), truth), y_pred=np.eye(2, dtype=np.int64), labels=["a", "b"])
        undefined = evaluate(labelled.read("/input"), Options()).undefined
        assert {one.code for one in undefined if one.group is Group.BALANCED} == {code}
