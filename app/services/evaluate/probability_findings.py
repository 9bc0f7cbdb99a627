"""What probabilities mean, in sentences that need no statistics, each with its evidence."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import Value
from app.domain.wording import percent, rounded
from app.kernel.metrics.families import rates
from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.metrics.families.imcp import median_phi, threshold_correct
from app.kernel.metrics.families.ranking import roc_auc
from app.kernel.samples.scores import Scores
from app.services.evaluate.findings import MOST_NAMED, tie_finding

CONFIDENT: Final = 0.9
# A miscalibration below this changes no decision, however sure it is.
SMALLEST_ERROR: Final = 0.02
# An AUC from here on is read as good, and a recall below a half is a class mostly missed.
GOOD_AUC: Final = 0.9
WEAK_RECALL: Final = 0.5


def probability_findings(
    source: MatrixInput, scores: Scores, by_class: Mapping[str, Sequence[Value]], details: Mapping[str, Any]
) -> list[Finding]:
    """Everything there is to say about the samples of an input, warnings first.

    Args:
        source: With samples.
        scores: The same for the kernel.
        by_class: Class metrics of probabilities by key, each with K values.
        details: Of the report; calibration errors beside those of chance.
    """
    found = [
        _hidden_by_auc(source, by_class[roc_auc.key]),
        tie_finding(source.facts.get("ties", 0), scores.n_samples),
        _assumed(source),
    ]
    if scores.are_probabilities:
        found = [
            _confident_mistakes(scores),
            _miscalibrated(scores, details["calibration"][expected_calibration_error.key]),
            _unsure_classes(source, by_class[median_phi.key]),
            *found,
        ]
    return [finding for finding in found if finding is not None]


def _named(labels: Sequence[str]) -> str:
    names = ", ".join(f'"{label}"' for label in labels[:MOST_NAMED])
    return names + (f" and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else "")


def _confident_mistakes(scores: Scores) -> Finding | None:
    sure = scores.confidence >= CONFIDENT
    total = int(np.count_nonzero(sure))
    wrong = int(np.count_nonzero(sure & (scores.ahead > 0)))
    expected = float((1.0 - scores.confidence[sure]).sum())
    # More than chance makes of the probabilities as they are stated.
    if wrong <= expected + 3.0 * sqrt(expected) + 0.5:
        return None
    return Finding.warning(
        "confident_mistakes",
        f"Of {total} predictions made with at least {percent(CONFIDENT)} confidence {wrong} are wrong; were the "
        f"probabilities right, about {rounded(expected, 1)} would be.",
        confident=total,
        wrong=wrong,
        expected=expected,
        confidence=CONFIDENT,
    )


def _miscalibrated(scores: Scores, error: Mapping[str, Any]) -> Finding | None:
    if error["observed"] <= max(error["upper_if_calibrated"], SMALLEST_ERROR):
        return None
    confidence = float(np.average(scores.confidence, weights=scores.weights))
    accuracy = float(np.average(scores.ahead == 0, weights=scores.weights))
    gap = confidence - accuracy
    if abs(gap) < 0.5 * error["observed"]:
        direction, words = "mixed", "too high in some places and too low in others"
    elif gap > 0:
        direction, words = "overconfident", "too high: the model is surer of itself than it is right"
    else:
        direction, words = "underconfident", "too low: the model is more often right than it says"
    return Finding.warning(
        "miscalibrated",
        f"The probabilities do not mean what they say. They are {words}: {percent(confidence)} on average, where "
        f"{percent(accuracy)} of the predictions are right. The calibration error is {rounded(error['observed'])}; "
        f"perfect probabilities would show about {rounded(error['expected_if_calibrated'])} on as many samples.",
        direction=direction,
        confidence=confidence,
        accuracy=accuracy,
        error=error["observed"],
        expected_if_calibrated=error["expected_if_calibrated"],
        p_value=error["p_value"],
    )


def _unsure_classes(source: MatrixInput, medians: Sequence[Value]) -> Finding | None:
    limit = threshold_correct()
    weak = sorted((median, k) for k, median in enumerate(medians) if median is not None and median < limit)
    if not weak:
        return None
    labels = [source.labels[k] for _, k in weak]
    return Finding.warning(
        "unsure_class",
        f"For {'class' if len(weak) == 1 else 'classes'} {_named(labels)} half of the samples or more "
        "were given at most 50 % for their own class: the model does not know them.",
        classes=[{"class": source.labels[k], median_phi.key: median} for median, k in weak[:MOST_NAMED]],
        count=len(weak),
        limit=limit,
    )


def _hidden_by_auc(source: MatrixInput, areas: Sequence[Value]) -> Finding | None:
    actual = source.counts.sum(axis=1)
    hidden = []
    for k, area in enumerate(areas):
        if area is not None and area >= GOOD_AUC and actual[k] > 0:
            recall = float(source.counts[k, k] / actual[k])
            if recall < WEAK_RECALL:
                hidden.append((recall, k, area))
    if not hidden:
        return None
    recall, worst, area = min(hidden)
    return Finding.warning(
        "auc_hides_class",
        f'The AUC of {rounded(area)} looks good, yet class "{source.labels[worst]}" is recognised in '
        f"only {percent(recall)} of its cases: the samples are in the right order, but the decision is wrong. "
        "Another threshold or class weights may mend that.",
        classes=[
            {"class": source.labels[k], "auc": area, rates.recall.key: recall}
            for recall, k, area in sorted(hidden)[:MOST_NAMED]
        ],
        count=len(hidden),
    )


def _assumed(source: MatrixInput) -> Finding | None:
    if not source.facts.get("threshold_assumed"):
        return None
    threshold = source.facts["threshold"]
    return Finding.note(
        "threshold_assumed",
        f"No threshold came with the scores, so {threshold} was taken for the decisions behind the confusion matrix. "
        "What is read off the order of the scores, such as AUC, does not depend on it.",
        threshold=threshold,
    )
