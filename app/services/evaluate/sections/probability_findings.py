"""What probabilities mean, in sentences that need no statistics, each with its evidence."""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import Value
from app.domain.wording import MOST_NAMED, name, names, number, p_said, rounded, share
from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.metrics.families.imcp import median_phi
from app.kernel.metrics.families.rates import recall
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.scipy_bridge import binomial_upper_tail
from app.kernel.samples.calibration import Excess, excess_of_top_label
from app.kernel.samples.losses import threshold_correct
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import area_limits
from app.kernel.uncertainty.intervals import two_sided_z, wilson
from app.services.estimates.run_data import RunData
from app.services.evaluate.sections.findings import tie_finding

CONFIDENT: Final = 0.9
# How often a finding about probabilities that are right, or about rates that are not as it says, may come at most.
ERROR_RATE: Final = 0.05
# A miscalibration below this changes no decision, however sure it is.
SMALLEST_ERROR: Final = 0.02
# An AUC from here on is read as good, and a recall below a half is a class mostly missed.
GOOD_AUC: Final = 0.9
WEAK_RECALL: Final = 0.5


def probability_findings(
    run: RunData, by_class: Mapping[str, Sequence[Value]], details: Mapping[str, Any]
) -> list[Finding]:
    """Everything there is to say about the samples of an input, warnings first.

    Args:
        run: With its samples.
        by_class: Class metrics of probabilities by key, each with K values.
        details: Of the report; calibration errors beside those of chance.
    """
    source, scores = run.source, run.scores
    found = findings_of_order(run, by_class[roc_auc.key])
    if not scores.are_probabilities:
        return found
    of_probabilities = [
        _confident_mistakes(scores),
        miscalibrated(details["calibration"], lambda: excess_of_top_label(scores), grouped=source.is_grouped),
        _unsure_classes(source, scores, by_class[median_phi.key]),
    ]
    return [*(finding for finding in of_probabilities if finding is not None), *found]


def findings_of_order(run: RunData, areas: Sequence[Value]) -> list[Finding]:
    """What there is to say of the order of samples, at hand or gone by, and of what was decided by it.

    Args:
        run: With its samples, or what is left of them.
        areas: AUC of each class (K).
    """
    facts, scores = run.source.facts, run.scores
    found = [
        _hidden_by_auc(run, areas),
        tie_finding(facts.get("ties", 0), scores.n_samples, "probability" if scores.are_probabilities else "score"),
        _assumed(run.source),
    ]
    return [finding for finding in found if finding is not None]


def _confident_mistakes(scores: Scores) -> Finding | None:
    sure = scores.confidence >= CONFIDENT
    total = int(np.count_nonzero(sure))
    wrong = int(np.count_nonzero(sure & (scores.truth_rank > 0)))
    expected = float((1.0 - scores.confidence[sure]).sum())
    # More than chance makes of the probabilities as they are stated.
    if wrong <= expected + 3.0 * sqrt(expected) + 0.5:
        return None
    return Finding.warning(
        "confident_mistakes",
        f"{wrong:,} of {total:,} predictions with a probability of at least {CONFIDENT:g} are wrong. If the "
        f"probabilities were right, about {rounded(expected, 1)} would be.",
        confident=total,
        wrong=wrong,
        expected=expected,
        confidence=CONFIDENT,
    )


def miscalibrated(by_chance: Mapping[str, Any], excess: Callable[[], Excess], *, grouped: bool) -> Finding | None:
    """What calibration errors beside those of chance say.

    Args:
        by_chance: These, by metric.
        excess: Of the probability of the predicted class.
        grouped: Do samples come in groups?
    """
    error = by_chance.get(expected_calibration_error.key)
    if error is None or error["p_value"] > ERROR_RATE or error["observed"] <= SMALLEST_ERROR:
        return None
    confidence, gap, noise = excess()
    if abs(gap) <= two_sided_z(1.0 - ERROR_RATE) * noise:
        direction, words = "mixed", "On average they are neither too high nor too low, as far as these samples tell"
    elif gap > 0:
        direction, words = "overconfident", "On average they are too high"
    else:
        direction, words = "underconfident", "On average they are too low"
    return Finding.warning(
        "miscalibrated",
        f"The probabilities are not calibrated: {expected_calibration_error.key} is {number(error['observed'])}. "
        f"Perfect probabilities would show about {number(error['expected_if_calibrated'])} on as many "
        f"{'independent ' if grouped else ''}samples ({p_said(error['p_value'])}). "
        f"{words}: {number(confidence)} for the predicted class, and {number(confidence - gap)} of the predictions "
        "are right.",
        direction=direction,
        confidence=confidence,
        accuracy=confidence - gap,
        error=error["observed"],
        expected_if_calibrated=error["expected_if_calibrated"],
        p_value=error["p_value"],
        error_rate=ERROR_RATE,
    )


def _unsure_classes(source: MatrixInput, scores: Scores, medians: Sequence[Value]) -> Finding | None:
    """Classes most of whose samples were given at most 1/2 for them, and more than the probabilities let expect."""
    if scores.weights is not None or source.is_grouped:
        # How many are too many is known for independent samples only.
        return None
    limit, found = threshold_correct(), []
    for code, median in enumerate(medians):
        if median is None or median > limit:
            continue
        unsure = scores.columns[code] <= 0.5
        given, size = scores.columns[code][unsure], int(np.count_nonzero(scores.y == code))
        count, expected = int(np.count_nonzero(scores.y[unsure] == code)), float(given.sum())
        p_value = _more_than_expected(count, expected, given.size)
        if p_value <= ERROR_RATE / scores.n_classes:
            found.append((p_value, code, count, expected, size, median))
    if not found:
        return None
    p_value, code, count, expected, size, _ = min(found)
    others = [source.labels[code] for _, code, *_ in sorted(found)[1:]]
    return Finding.warning(
        "unsure_class",
        f"Class {name(source.labels[code])} gets too little probability: {count:,} of its {size:,} samples were given "
        f"at most 0.5 for it. If the probabilities were right, about {rounded(expected, 1)} would be "
        f"({p_said(p_value, bound=True)})." + (f" The same holds for {names(others)}." if others else ""),
        classes=[
            {
                "class": source.labels[code],
                "n": size,
                "unsure": count,
                "expected": expected,
                "p_value": p_value,
                median_phi.key: median,
            }
            for p_value, code, count, expected, size, median in sorted(found)[:MOST_NAMED]
        ],
        count=len(found),
        limit=limit,
        error_rate=ERROR_RATE,
    )


def _more_than_expected(count: int, expected: float, trials: int) -> float:
    """At most how likely so many events are, or more, in independent trials that have unequal chances.

    From one above the expected number on no chances make it likelier than equal ones (Hoeffding 1956).
    """
    if count < expected + 1.0:
        return 1.0
    chance = np.asarray(expected / trials)
    return float(binomial_upper_tail(np.asarray(float(count)), np.asarray(float(trials)), chance, 1.0 - chance))


def _hidden_by_auc(run: RunData, areas: Sequence[Value]) -> Finding | None:
    """Classes whose order is surely good and whose recall is surely low, all of them together at the error rate."""
    hidden = [_hidden_class(run, code) for code, area in enumerate(areas) if area is not None]
    found = sorted(one for one in hidden if one is not None)
    if not found:
        return None
    worst = found[0]
    least = "" if worst.area_low is None else f" (at least {number(worst.area_low)})"
    most = "" if worst.share_high is None else f" (at most {share(worst.share_high)})"
    return Finding.warning(
        "auc_hides_class",
        f"The AUC of class {name(worst.label)} is {number(worst.area)}{least}, yet only {share(worst.share)}{most} of "
        "its cases are found. The order of the scores is good, and the decision does not use it. A lower threshold, or "
        "more weight for the class, finds more cases and makes more false alarms.",
        classes=[
            {
                "class": one.label,
                "auc": one.area,
                "auc_low": one.area_low,
                recall.key: one.share,
                f"{recall.key}_high": one.share_high,
            }
            for one in found[:MOST_NAMED]
        ],
        count=len(found),
        error_rate=ERROR_RATE,
    )


class _Hidden(NamedTuple):
    """A class with a good area and a low share of recognised cases; limits where samples are independent."""

    share: float
    label: str
    area: float
    area_low: float | None = None
    share_high: float | None = None


def _hidden_class(run: RunData, code: int) -> _Hidden | None:
    source, scores = run.source, run.scores
    right, actual = float(source.counts[code, code]), float(source.counts[code].sum())
    ranking = scores.ranking(code)
    found = _Hidden(right / actual if actual else 1.0, source.labels[code], float(ranking.auc))
    if found.area < GOOD_AUC or found.share >= WEAK_RECALL:
        return None
    if scores.weights is not None or source.is_grouped:
        return found
    # Two limits of each class may be wrong, each at its end.
    level = 1.0 - ERROR_RATE / scores.n_classes
    low, *_ = area_limits(found.area, run.area_variance(ranking), int(ranking.positives), int(ranking.negatives), level)
    _, high = wilson(np.asarray(right), np.asarray(actual), level)
    if low < GOOD_AUC or float(high) >= WEAK_RECALL:
        return None
    return found._replace(area_low=low, share_high=float(high))


def _assumed(source: MatrixInput) -> Finding | None:
    if not source.facts.get("threshold_assumed"):
        return None
    threshold = source.facts["threshold"]
    return Finding.note(
        "threshold_assumed",
        f"No threshold came with the scores, so the confusion matrix is that of {threshold}. What follows from the "
        "order of the scores, such as AUC, does not depend on it.",
        threshold=threshold,
    )
