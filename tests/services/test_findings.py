"""Findings: when each is said, in which words and with which evidence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.findings import Finding, Severity
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import MOST_NAMED
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.intervals import wilson
from app.services.evaluate.sections import findings
from app.services.evaluate.sections.findings import matrix_findings, tie_finding
from tests.bank import each

PAPER = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
OVERALL = ("accuracy", "h_mean", "balanced_accuracy", "no_information_rate")


def found_in(
    matrix: Sequence[Sequence[float]], labels: Sequence[str] | None = None, content: str = "counts"
) -> dict[str, Finding]:
    """Findings by code, computed from the values that a report has."""
    return {finding.code: finding for finding in all_of(np.array(matrix), labels, content)}


def all_of(counts: NDArray[Any], labels: Sequence[str] | None = None, content: str = "counts") -> list[Finding]:
    by_name, table = catalogue().of_matrices.by_name, Table(counts)

    def plain(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    values = {key: plain(evaluate_table(table, [by_name[key]])[0]) for key in OVERALL}
    names = labels or [chr(ord("A") + k) for k in range(len(counts))]
    return matrix_findings(MatrixInput("confusion_matrix", tuple(names), None, Content(content), counts), values)


def test_a_share_is_rounded_as_everywhere() -> None:
    # 381 of 400 are 0.9525: 0.953 as everywhere, not 0.952.
    finding = found_in([[381, 9], [10, 0]])["majority_not_beaten"]
    assert "would have an accuracy of 0.975. This model has 0.953." in finding.message


def test_nothing_is_said_of_a_good_balanced_result() -> None:
    assert found_in([[95, 5], [4, 96]]) == {}


def test_an_empty_matrix_has_no_findings() -> None:
    empty = MatrixInput("confusion_matrix", ("A", "B"), None, Content.counts, np.zeros((2, 2)))
    assert matrix_findings(empty, {}) == []


# A class that accuracy hides


def test_the_weak_class_of_the_paper_is_found() -> None:
    found = found_in(PAPER)
    assert list(found) == ["accuracy_overstates"]
    finding = found["accuracy_overstates"]
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "Class D is found in 16 of 100 cases (16 %). Accuracy hides this: it is 0.958, because D is only 5 % of the "
        "data. h_mean counts every class alike: 0.432."
    )
    evidence = finding.evidence
    assert evidence["accuracy"] == pytest.approx(0.958)
    assert evidence["h_mean"] == pytest.approx(0.4324, abs=5e-5)
    assert (evidence["class"], evidence["n"], evidence["count"], evidence["also"]) == ("D", 100, 1, [])
    assert evidence["recall"] == pytest.approx(0.16)
    assert evidence["share"] == pytest.approx(0.05)
    assert evidence["low"] < 0.16 < evidence["high"] < evidence["accuracy"]


def test_further_hidden_classes_are_named_after_the_worst() -> None:
    found = found_in([[900, 50, 50], [40, 60, 0], [50, 0, 50]])
    assert found["accuracy_overstates"].evidence["class"] == "C"
    assert found["accuracy_overstates"].evidence["also"] == ["B"]
    assert found["accuracy_overstates"].message.startswith(
        "Accuracy 0.842 hides 2 weak classes. The weakest, C, is found in 50 of 100 cases (50 %)."
    )


def test_a_class_that_is_never_found() -> None:
    found = found_in([[95, 0, 0], [0, 95, 0], [5, 5, 0]])
    assert "is found in none of its 10 cases." in found["accuracy_overstates"].message
    assert found["accuracy_overstates"].evidence["h_mean"] == 0


def test_many_cases_have_commas() -> None:
    found = found_in([[900_000_000, 0], [30_000_000, 60_000_000]])
    assert "B is found in 60,000,000 of 90,000,000 cases (67 %)." in found["accuracy_overstates"].message
    tied = tie_finding(1200, 54321)
    assert tied is not None
    assert tied.message.startswith("In 1,200 of 54,321 samples (2 %) several classes share")


def test_one_case_found_is_singular() -> None:
    assert "found in 1 of 30 cases (3 %)" in found_in([[300, 0], [29, 1]])["accuracy_overstates"].message


def test_a_hidden_class_in_words() -> None:
    """A class called by a number is no number, and a share that is a bound is no only."""
    numbered = found_in([[900, 0], [28, 12]], ["0", "1"])["accuracy_overstates"].message
    assert "because class 1 is only 4 % of the data." in numbered
    rare = found_in([[9999996, 0], [1, 3]])["accuracy_overstates"].message
    assert "it is >0.99999, because B is less than 0.001 % of the data." in rare


def test_few_cases_of_a_hidden_class_are_said_with_it() -> None:
    few = found_in([[300, 0], [28, 1]])["accuracy_overstates"].message
    low, high = (ends[0] for ends in wilson(np.array([1.0]), np.array([29.0])))
    assert few.endswith(f"29 cases are few: the recall may be anywhere from {low:.3f} to {high:.3f}.")
    assert " few" not in found_in([[300, 0], [29, 1]])["accuracy_overstates"].message


def test_a_hidden_class_that_is_not_rare() -> None:
    finding = found_in([[900, 0], [450, 450]])["accuracy_overstates"]
    assert "it is 0.750, because the other classes outweigh it." in finding.message


def test_a_weak_recall_that_may_be_chance_is_not_blamed() -> None:
    """2 of 3 is 28 points below the accuracy, and so it would often be for a class as good as the others."""
    found = found_in([[95, 5], [1, 2]])
    assert "accuracy_overstates" not in found
    assert "too_few_samples" in found


def test_the_worst_of_many_classes_gets_only_its_share_of_the_error() -> None:
    """7 of 10 against 93 %: beyond chance for one class alone, not for the worst of 35."""
    matrix = np.diag([93.0] * 35)
    matrix[:, 0] += 7
    matrix[34] = 0
    matrix[34, [0, 34]] = 3, 7
    alone = wilson(np.array([7.0]), np.array([10.0]))[1][0]
    assert alone < np.trace(matrix) / matrix.sum()
    assert "accuracy_overstates" not in {finding.code for finding in all_of(matrix, [str(k) for k in range(35)])}


@pytest.mark.parametrize(("found", "said"), [(62, False), (40, True)])
def test_the_gap_has_to_be_large(found: int, said: bool) -> None:
    """Recall 0.775 is 0.18 below the accuracy, recall 0.50 is 0.43 below it."""
    matrix = [[776, 24], [80 - found, found]]
    assert ("accuracy_overstates" in found_in(matrix)) is said


def test_when_a_class_has_no_samples_the_others_still_speak() -> None:
    finding = found_in([[900, 0, 0], [80, 20, 0], [0, 0, 0]])["accuracy_overstates"]
    assert finding.evidence["h_mean"] == pytest.approx(2 / (1 / 1 + 1 / 0.2))
    none = found_in([[899, 1, 0], [100, 0, 0], [0, 0, 0]])["accuracy_overstates"]
    assert none.evidence["h_mean"] == 0


def test_rates_have_no_sample_sizes() -> None:
    finding = found_in([[0.9, 0.0], [0.07, 0.03]], content="rates")["accuracy_overstates"]
    assert "Class B is found in 30 % of its rate." in finding.message
    assert finding.evidence["low"] is None
    assert finding.evidence["high"] is None
    assert "too_few_samples" not in found_in([[0.9, 0.0], [0.07, 0.03]], content="rates")
    assert (
        "found in none of its rate"
        in found_in([[0.9, 0.01], [0.09, 0]], content="rates")["accuracy_overstates"].message
    )


# Predictions


def test_a_class_never_predicted_is_critical() -> None:
    finding = found_in([[50, 0, 0], [0, 50, 0], [6, 6, 0]])["never_predicted"]
    assert finding.severity is Severity.CRITICAL
    assert finding.message == "Class C is never predicted. The model misses all of its 12 cases."
    assert finding.evidence["classes"] == [{"class": "C", "n": 12, "share": pytest.approx(12 / 112)}]
    one = found_in([[50, 0, 0], [0, 50, 0], [1, 0, 0]])["never_predicted"]
    assert one.message.endswith("all of its 1 case.")


def test_many_classes_never_predicted_are_counted() -> None:
    matrix = np.zeros((40, 40))
    matrix[:, 0], matrix[:, 1] = 20, 20
    found = {finding.code: finding for finding in all_of(matrix, [f"c{k}" for k in range(40)])}
    finding = found["never_predicted"]
    assert finding.message == (
        "38 classes are never predicted. The model misses all of their 1,520 cases. They are c2, c3, c4 and 35 more."
    )
    assert len(finding.evidence["classes"]) == MOST_NAMED
    assert finding.evidence["count"] == 38


def test_a_class_without_samples_is_not_blamed_for_never_being_predicted() -> None:
    found = found_in([[50, 5, 0], [5, 50, 0], [0, 0, 0]])
    assert "never_predicted" not in found
    assert found["no_samples"].severity is Severity.WARNING
    assert found["no_samples"].message == (
        "Class C has no samples in this data. Its recall is unknown, and no average over all classes exists."
    )


def test_a_class_without_samples_that_is_predicted_is_always_wrong() -> None:
    finding = found_in([[50, 5, 3], [5, 50, 0], [0, 0, 0]])["no_samples"]
    assert finding.message.endswith("It is predicted in 3 samples, each time wrongly.")
    assert finding.evidence["classes"] == [{"class": "C", "predicted": 3}]
    two = found_in([[50, 5, 1, 0], [5, 50, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])["no_samples"]
    assert two.message.startswith("Classes C and D have no samples in this data. Their recalls are unknown")
    assert two.message.endswith("They are predicted in 1 sample, each time wrongly.")


def test_a_constant_prediction_is_critical_and_comes_first() -> None:
    found = found_in([[95, 0], [5, 0]], ["healthy", "ill"])
    # That it misses the other class and does not beat the majority follows.
    assert list(found) == ["constant_prediction", "too_few_samples"]
    assert found["constant_prediction"].severity is Severity.CRITICAL
    assert found["constant_prediction"].message == (
        "Every sample is predicted as healthy, so the predictions tell no classes apart. "
        "Their accuracy, 0.950, is the share of that class in the data."
    )
    assert found["constant_prediction"].evidence == {"class": "healthy", "accuracy": 0.95, "share": 0.95}


def test_a_class_that_is_a_number_is_no_number_in_a_sentence() -> None:
    few = found_in([[20, 1], [3, 4]], ["0", "1"])["too_few_samples"].message
    assert "the recall of class 1, 4 of 7, may be" in few
    hidden = found_in([[980, 0, 0], [40, 0, 0], [50, 0, 10]], ["0", "1", "2"])["accuracy_overstates"].message
    assert "The weakest, class 1, is found in none" in hidden


def test_samples_of_one_class_do_not_show_what_is_told_apart() -> None:
    assert list(found_in([[40, 0], [0, 0]])) == ["no_samples"]
    assert list(found_in([[0, 40], [0, 0]])) == ["never_predicted", "no_samples"]


# The majority


def test_the_majority_is_not_beaten_though_the_classes_are_told_apart() -> None:
    finding = found_in([[850, 100], [10, 40]], ["healthy", "ill"])["majority_not_beaten"]
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "Always predicting healthy would have an accuracy of 0.950. This model has 0.890. Accuracy does not reward "
        "telling a rare class apart: balanced_accuracy is 0.847, where guessing gives 0.500."
    )
    assert finding.evidence["accuracy"] == pytest.approx(0.89)
    assert finding.evidence["no_information_rate"] == pytest.approx(0.95)


@pytest.mark.parametrize(("right", "said"), [(600, True), (601, False), (400, True)])
def test_the_majority_has_to_be_exceeded(right: int, said: bool) -> None:
    matrix = [[400, 200], [400 - (right - 400), right - 400]]
    assert ("majority_not_beaten" in found_in(matrix)) is said


def test_with_one_class_there_is_no_majority_to_beat() -> None:
    found = found_in([[100, 0], [0, 0]])
    assert "majority_not_beaten" not in found
    assert "no_samples" in found


# Sample sizes


@pytest.mark.parametrize(
    ("cases", "severity"),
    [(1, Severity.WARNING), (4, Severity.WARNING), (5, Severity.NOTE), (29, Severity.NOTE), (30, None)],
)
def test_small_classes(cases: int, severity: Severity | None) -> None:
    found = found_in([[100, 0], [0, cases]])
    assert (found["too_few_samples"].severity if "too_few_samples" in found else None) is severity


def test_a_small_class_has_the_width_of_its_interval_as_evidence() -> None:
    finding = found_in([[100, 0], [1, 2]])["too_few_samples"]
    assert finding.message == (
        "Class B has 3 cases, too few to judge it: the recall, 2 of 3, may be anywhere from 0.208 to 0.939."
    )
    (entry,) = finding.evidence["classes"]
    low, high = (ends[0] for ends in wilson(np.array([2.0]), np.array([3.0])))
    assert entry["low"] == pytest.approx(low)
    assert entry["high"] == pytest.approx(high)
    assert entry["width"] == pytest.approx(high - low)
    assert (entry["class"], entry["n"], entry["recall"]) == ("B", 3, pytest.approx(2 / 3))


def test_small_classes_are_one_finding_by_severity_smallest_first() -> None:
    both = [f for f in all_of(np.diag([100.0, 3.0, 2.0, 12.0])) if f.code == "too_few_samples"]
    assert [finding.severity for finding in both] == [Severity.WARNING, Severity.NOTE]
    assert both[0].message.startswith(
        "Classes C and B have fewer than 5 cases each, too few to judge them: the recall of C, 2 of 2, may be"
    )
    assert [entry["class"] for entry in both[0].evidence["classes"]] == ["C", "B"]
    assert both[1].message.startswith("Class D has 12 cases, which is few: the recall, 12 of 12, may be anywhere")


@pytest.mark.parametrize("content", ["weights", "rates"])
def test_only_counts_are_judged_by_size(content: str) -> None:
    assert found_in([[3.0, 0.5], [0.5, 3.0]], content=content) == {}


@each(("x", "n"), [(0, 1), (1, 1), (0, 7), (7, 7), (3, 7), (81, 263)])
@each("level", [0.9, 0.95, 1 - 0.05 / 35])
def test_the_interval_is_that_of_the_kernel(x: int, n: int, level: float) -> None:
    low, high = wilson(np.array([float(x)]), np.array([float(n)]), level)
    assert findings._wilson(x, n, level) == pytest.approx((low[0], high[0]), rel=1e-12, abs=1e-15)


# In general


@each("seed", range(30))
def test_findings_are_ordered_and_fit_for_json(seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 12))
    counts = generator.integers(0, 40, (size, size)) * (generator.random((size, size)) < 0.3)
    counts[0, 0] += 1
    result = all_of(counts)
    order = [Severity.CRITICAL, Severity.WARNING, Severity.NOTE]
    ranks = [order.index(finding.severity) for finding in result]
    assert ranks == sorted(ranks)

    def check(value: object) -> None:
        match value:
            case dict():
                for inner in value.values():
                    check(inner)
            case list():
                for inner in value:
                    check(inner)
            case _:
                assert value is None or type(value) in (str, int, float)

    for finding in result:
        assert finding.message.endswith(".")
        assert "None" not in finding.message
        assert "nan" not in finding.message
        check(dict(finding.evidence))


def test_ties() -> None:
    assert tie_finding(0, 100) is None
    finding = tie_finding(3, 200)
    assert finding is not None
    assert finding.severity is Severity.NOTE
    assert finding.message.startswith("In 3 of 200 samples (2 %) several classes share the highest probability")
    assert finding.evidence == {"ties": 3, "n": 200, "share": 0.015}
