"""Findings: sentences on what the numbers of a matrix and of probabilities mean, each with its evidence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.findings import Finding, Severity
from app.domain.inputs.content import DATA_FACT, IGNORED_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import Value
from app.domain.wording import (
    MOST_NAMED,
    PLAIN,
    class_before,
    classes,
    listed,
    name,
    names,
    number,
    numbered,
    p_said,
    rounded,
    sentence,
    share,
    significant,
    whole,
)
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families import rate_means, rates
from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.metrics.families.imcp import median_phi
from app.kernel.metrics.families.rates import recall
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.scipy_bridge import binomial_upper_tail, matching
from app.kernel.samples.losses import threshold_correct
from app.kernel.samples.scores import CONFIDENT, Scores
from app.kernel.uncertainty.intervals import two_sided_z
from app.services.estimands import estimand_of
from app.services.estimates.estimate import LimitSettings
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData

# A recall this far below the accuracy is a class that accuracy hides: whoever reads 95 % does not expect 75 %. Over 18
# benchmark datasets accuracy is 0.02 above H on average and 0.09 where a class is weak (Aguilar-Ruiz 2025, table 2).
HIDDEN_BY: Final = 0.2
# 4 of 4 found is compatible with a recall of 51 %, so even a perfect result is not told from a coin.
FEWEST_CASES: Final = 5
# 15 of 30 found is compatible with anything from 33 % to 67 %: below that not even a half is told from a third.
FEW_CASES: Final = 30
LEVEL: Final = 0.95

_ORDER: Final = [*Severity]


class _Margins:
    """Margins of one matrix as plain numbers: for a handful of classes they are faster than arrays."""

    __slots__ = ("actual", "content", "correct", "independent", "labels", "n", "predicted", "recall", "right")

    def __init__(self, source: MatrixInput) -> None:
        counts = source.counts
        # Of groups less is known than their numbers of samples say.
        self.independent = not source.is_grouped
        self.labels = source.labels
        self.content = source.content
        self.actual: list[float] = counts.sum(axis=1).tolist()
        self.predicted: list[float] = counts.sum(axis=0).tolist()
        self.correct: list[float] = counts.diagonal().tolist()
        self.recall = [x / n if n else None for x, n in zip(self.correct, self.actual, strict=True)]
        self.n = sum(self.actual)
        self.right = sum(self.correct)

    @property
    def counted(self) -> bool:
        """Are the entries samples? Only then do the rows say how sure a recall is."""
        return self.content == Content.counts

    @property
    def weighed_in(self) -> str:
        """Word for the entries of a matrix that counts no samples."""
        return "weight" if self.content == Content.weights else "rate"

    def named(self, members: Sequence[int]) -> list[str]:
        """Return the labels of these classes."""
        return [self.labels[k] for k in members]

    def quantity(self, amount: float, one: str = "case") -> str:
        """An amount of cases as a reader would write it; ``one`` is what a single one is called."""
        if self.counted:
            return numbered(amount, f"{one}s")
        return f"{significant(amount, 6)} in {self.weighed_in}"


def matrix_findings(source: MatrixInput, values: Mapping[str, float | None]) -> list[Finding]:
    """Return the findings on one matrix with these overall metrics by key, the gravest first. Numbers of samples are
    judged where the entries are counts.
    """
    matrix = _Margins(source)
    if not matrix.n:
        return []
    constant = _constant_prediction(matrix)
    # A model that always says the same misses all other classes and cannot beat the majority: one finding says it.
    of_model = [_never_predicted(matrix), _accuracy_overstates(matrix, values), _majority_not_beaten(matrix, values)]
    found = [*(of_model if constant is None else [constant]), _no_samples(matrix), *_too_few_samples(matrix)]
    return sorted((finding for finding in found if finding), key=lambda finding: _ORDER.index(finding.severity))


def tie_finding(ties: int, n_samples: int, of: str = "probability") -> Finding | None:
    """Samples whose highest probability (or score) several classes share, so that the order of the classes decided."""
    if not ties:
        return None
    part = ties / n_samples
    return Finding.note(
        "ties_broken_by_order",
        f"In {whole(ties)} of {numbered(n_samples)} ({share(part)}) several classes share the highest {of}. The first "
        "of them was taken; another order of the classes would give other predictions.",
        ties=ties,
        n=n_samples,
        share=part,
    )


def ignored_findings(source: MatrixInput) -> Iterator[Finding]:
    """Yield findings on samples of ignored classes, and on predictions of these classes."""
    ignored = source.facts.get(IGNORED_FACT)
    if not ignored:
        return
    counted = source.content is Content.counts or source.kind != "confusion_matrix"
    yield Finding.note(
        "ignored_classes",
        f"Left out because their actual class is ignored: {_amounts(ignored, counted=counted)}.",
        classes=[*ignored],
        n=[*ignored.values()],
    )
    columns = dict(zip(source.labels, source.counts.sum(axis=0).tolist(), strict=True))
    wrong = {label: columns[label] for label in ignored if columns.get(label)}
    if wrong:
        yield Finding.warning(
            "ignored_but_predicted",
            "Samples of other classes are predicted as a class that is ignored: "
            f"{_amounts(wrong, counted=source.content is Content.counts)}. These are errors, so the class stays. It "
            "has no actual samples, so means of the recalls have no value.",
            classes=[*wrong],
            n=[*wrong.values()],
        )


def _amounts(by_label: Mapping[str, float], *, counted: bool) -> str:
    named = [
        f"{numbered(amount) if counted else significant(amount, 6)} of {name(label)}"
        for label, amount in [*by_label.items()][:MOST_NAMED]
    ]
    more = len(by_label) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _constant_prediction(matrix: _Margins) -> Finding | None:
    used = [k for k, amount in enumerate(matrix.predicted) if amount]
    # Samples of one class alone do not show what is told apart.
    if len(used) != 1 or matrix.n in matrix.actual:
        return None
    label = matrix.labels[used[0]]
    part = matrix.actual[used[0]] / matrix.n
    return Finding.critical(
        "constant_prediction",
        f"Every sample is predicted as {name(label)}, so the predictions tell no classes apart. "
        f"Their accuracy, {number(part)}, is the share of that class in the data.",
        accuracy=part,
        share=part,
        **{"class": label},
    )


def _never_predicted(matrix: _Margins) -> Finding | None:
    missed = [k for k, amount in enumerate(matrix.predicted) if not amount and matrix.actual[k]]
    if not missed:
        return None
    cases = matrix.quantity(sum(matrix.actual[k] for k in missed))
    one = len(missed) == 1
    return Finding.critical(
        "never_predicted",
        f"{sentence(classes(matrix.named(missed)))} {'is' if one else 'are'} never predicted. "
        f"The model misses all of {'its' if one else 'their'} {cases}.{listed(matrix.named(missed))}",
        classes=[
            {"class": matrix.labels[k], "n": matrix.actual[k], "share": matrix.actual[k] / matrix.n}
            for k in missed[:MOST_NAMED]
        ],
        count=len(missed),
    )


def _accuracy_overstates(matrix: _Margins, values: Mapping[str, float | None]) -> Finding | None:
    accuracy = matrix.right / matrix.n
    h_mean = values.get(rate_means.h_mean.key)
    present = [(recall, k) for k, recall in enumerate(matrix.recall) if recall is not None and matrix.actual[k]]
    if h_mean is None:
        # H of all classes does not exist when one has no samples; what it says of the others still holds.
        h_mean = 0.0 if any(recall == 0 for recall, _ in present) else len(present) / sum(1 / r for r, _ in present)
    if accuracy <= h_mean:
        return None
    # The worst of many classes is low by chance alone: each gets its part of the error.
    level = 1.0 - (1.0 - LEVEL) / len(present)
    hidden = []
    for own, k in sorted(present):
        if own > accuracy - HIDDEN_BY:
            break
        low, high = _wilson(matrix.correct[k], matrix.actual[k], level) if matrix.counted else (None, None)
        if high is None or high < accuracy:
            # Ends that hold for independent samples only are no intervals to tell of.
            hidden.append((k, own, low, high) if matrix.independent else (k, own, None, None))
    if not hidden:
        return None
    k, recall, low, high = hidden[0]
    part = matrix.actual[k] / matrix.n
    return Finding.warning(
        "accuracy_overstates",
        f"{_hidden_classes(matrix, k, recall, accuracy, len(hidden))} {rate_means.h_mean.key} counts every class "
        f"alike: {number(h_mean)}.{_few_of(matrix, k)}",
        accuracy=accuracy,
        h_mean=h_mean,
        recall=recall,
        share=part,
        n=matrix.actual[k],
        low=low,
        high=high,
        level=level,
        also=[matrix.labels[k] for k, *_ in hidden[1 : MOST_NAMED + 1]],
        count=len(hidden),
        **{"class": matrix.labels[k]},
    )


def _hidden_classes(matrix: _Margins, k: int, recall: float, accuracy: float, count: int) -> str:
    """Say that accuracy hides class k, the weakest of ``count`` weak classes."""
    label, called, part = name(matrix.labels[k]), _called(matrix, k), matrix.actual[k] / matrix.n
    found = _found(matrix, k, recall)
    if count > 1:
        return f"Accuracy {number(accuracy)} hides {count} weak classes. The weakest, {called}, is found in {found}."
    size = share(part)
    only = "" if size.startswith("less") else "only "
    small = f"{called} is {only}{size} of the data"
    because = small if part * len(matrix.labels) < 1.0 else "the other classes outweigh it"
    return f"Class {label} is found in {found}. Accuracy hides this: it is {number(accuracy)}, because {because}."


def _called(matrix: _Margins, k: int) -> str:
    return class_before(matrix.labels[k]) + name(matrix.labels[k])


def _found(matrix: _Margins, k: int, recall: float) -> str:
    """Say the part of class k that is found."""
    if not matrix.counted:
        return (
            f"{share(recall)} of its {matrix.weighed_in}" if matrix.correct[k] else f"none of its {matrix.weighed_in}"
        )
    if not matrix.correct[k]:
        return f"none of its {matrix.quantity(matrix.actual[k])}"
    return f"{whole(matrix.correct[k])} of {matrix.quantity(matrix.actual[k])} ({share(recall)})"


def _few_of(matrix: _Margins, k: int) -> str:
    """Say the limits of a recall that rests on few cases; empty where there are enough."""
    if not matrix.counted or matrix.actual[k] >= FEW_CASES:
        return ""
    low, high = _wilson(matrix.correct[k], matrix.actual[k], LEVEL)
    return (
        f" {sentence(matrix.quantity(matrix.actual[k]))} {'is' if matrix.actual[k] == 1 else 'are'} few: the "
        f"recall may be anywhere from {PLAIN.interval(low, high)}{_beyond(matrix)}."
    )


def _beyond(matrix: _Margins) -> str:
    """Qualify an interval that takes samples as independent, where they are not."""
    return "" if matrix.independent else ", and beyond, as samples come in groups"


def _majority_not_beaten(matrix: _Margins, values: Mapping[str, float | None]) -> Finding | None:
    largest = max(matrix.actual)
    if matrix.right > largest or largest == matrix.n:
        return None
    label = matrix.labels[matrix.actual.index(largest)]
    accuracy, baseline = matrix.right / matrix.n, largest / matrix.n
    balanced, guessing = values.get(rate_means.balanced_accuracy.key), 1.0 / len(matrix.labels)
    still = (
        f" Accuracy does not reward telling a rare class apart: {rate_means.balanced_accuracy.key} is "
        f"{number(balanced)}, where guessing gives {number(guessing)}."
        if balanced is not None and balanced > guessing
        else ""
    )
    return Finding.warning(
        "majority_not_beaten",
        f"Always predicting {name(label)} would have an accuracy of {number(baseline)}. This model has "
        f"{number(accuracy)}.{still}",
        accuracy=accuracy,
        no_information_rate=baseline,
        balanced_accuracy=balanced,
        **{"class": label},
    )


def _no_samples(matrix: _Margins) -> Finding | None:
    empty = [k for k, amount in enumerate(matrix.actual) if not amount]
    if not empty:
        return None
    one = len(empty) == 1
    predicted = sum(matrix.predicted[k] for k in empty)
    wrong = (
        f" {'It is' if one else 'They are'} predicted in {matrix.quantity(predicted, 'sample')}, each time wrongly."
        if predicted
        else ""
    )
    return Finding.warning(
        "no_samples",
        f"{sentence(classes(matrix.named(empty)))} {'has' if one else 'have'} no samples in this data. "
        f"{'Its recall is' if one else 'Their recalls are'} unknown, and no average over all classes exists.{wrong}"
        f"{listed(matrix.named(empty))}",
        classes=[{"class": matrix.labels[k], "predicted": matrix.predicted[k]} for k in empty[:MOST_NAMED]],
        count=len(empty),
    )


def _too_few_samples(matrix: _Margins) -> list[Finding]:
    if not matrix.counted:
        return []
    small = sorted((n, k) for k, n in enumerate(matrix.actual) if 0 < n < FEW_CASES)
    fewest, few = ([k for n, k in small if (n < FEWEST_CASES) is least] for least in (True, False))
    bounds = (Severity.WARNING, FEWEST_CASES, fewest), (Severity.NOTE, FEW_CASES, few)
    return [_too_few(matrix, severity, bound, members) for severity, bound, members in bounds if members]


def _too_few(matrix: _Margins, severity: Severity, bound: int, members: Sequence[int]) -> Finding:
    """``members`` are the classes, the smallest first."""
    ends = {k: _wilson(matrix.correct[k], matrix.actual[k], LEVEL) for k in members[:MOST_NAMED]}
    first = members[0]
    low, high = ends[first]
    size, whose, it = f"has {matrix.quantity(matrix.actual[first])}", "", "it"
    if len(members) > 1:
        size, whose, it = f"have fewer than {bound} cases each", f" of {_called(matrix, first)}", "them"
    judged = f"too few to judge {it}" if severity is Severity.WARNING else "which is few"
    return Finding(
        "too_few_samples",
        severity,
        f"{sentence(classes(matrix.named(members)))} {size}, {judged}: the recall{whose}, "
        f"{matrix.correct[first]:.0f} of {matrix.actual[first]:.0f}, may be anywhere from "
        f"{PLAIN.interval(low, high)}{_beyond(matrix)}."
        f"{listed(matrix.named(members))}",
        {
            "classes": [
                {
                    "class": matrix.labels[k],
                    "n": matrix.actual[k],
                    rates.recall.key: matrix.recall[k],
                    "low": low,
                    "high": high,
                    "width": high - low,
                }
                for k, (low, high) in ends.items()
            ],
            "count": len(members),
            "bound": bound,
            "level": LEVEL,
        },
    )


def _wilson(x: float, n: float, level: float) -> tuple[float, float]:
    """Score interval of one rate: `app.kernel.uncertainty.intervals.wilson` without the cost of arrays."""
    z = two_sided_z(level)
    centre = x + z * z / 2.0
    spread = z * math.sqrt(x * (n - x) / n + z * z / 4.0)
    scale = n + z * z
    return 0.0 if x == 0 else (centre - spread) / scale, 1.0 if x == n else (centre + spread) / scale


# Columns that are right so much more often under other names are hardly so by chance.
OTHER_ORDER: Final = 0.3
# Fewer samples of the columns that would change places are taken for chance.
FEWEST_MOVED: Final = 20
# How often a finding about probabilities that are right, or about rates that are not as it says, may come at most.
ERROR_RATE: Final = 0.05
# A miscalibration below this changes no decision, however sure it is.
SMALLEST_ERROR: Final = 0.02
# An AUC from here on is read as good, and a recall below a half is a class mostly missed.
GOOD_AUC: Final = 0.9
WEAK_RECALL: Final = 0.5

# Class metrics that findings are made of.
OF_FINDINGS: Final = frozenset((roc_auc.key, median_phi.key))


def probability_findings(
    run: RunData, by_class: Mapping[str, Sequence[Value]], details: Mapping[str, Any]
) -> list[Finding]:
    """Return the findings on the samples of a run, warnings first. Class metrics of probabilities come by key, each
    with K values; the details are those of the report.
    """
    source, scores = run.source, run.scores
    ties = source.facts.get("ties", 0)
    found: list[Finding | None] = []
    if scores.are_probabilities:
        found = [
            _columns_in_another_order(source),
            _rounded(source),
            _confident_mistakes(scores),
            _miscalibrated(details["calibration"], scores, grouped=source.is_grouped),
            _unsure_classes(source, scores, by_class[median_phi.key]),
        ]
    found.append(_hidden_by_auc(run, by_class[roc_auc.key]))
    found.append(tie_finding(ties, scores.n_samples, "probability" if scores.are_probabilities else "score"))
    return [*(finding for finding in found if finding is not None), *threshold_findings(source)]


def about_decisions(findings: Sequence[Finding], source: MatrixInput) -> tuple[Finding, ...]:
    """Return the findings of a report, where what accuracy hides is a matter of the threshold as such.

    Calibrated probabilities miss most cases of a rare class at any threshold that accuracy favours: that is no fault of
    the model.
    """
    calibrated = source.is_scored and not source.has_scores and all(one.code != "miscalibrated" for one in findings)
    return tuple(
        replace(one, severity=Severity.NOTE, message=f"{one.message} {_BY_THRESHOLD}")
        if calibrated and one.code == "accuracy_overstates"
        else one
        for one in findings
    )


_BY_THRESHOLD = (
    "Its probabilities are calibrated as far as these samples tell: a lower threshold, or more weight for the class, "
    "finds more of its cases."
)


def _rounded(source: MatrixInput) -> Finding | None:
    """Rows that are not as they came, because their sums were not 1."""
    count = source.facts.get("renormalized")
    if not count:
        return None
    return Finding.note(
        "renormalized",
        f"{count:,} of {source.facts['rows']:,} rows of probabilities did not sum to 1 and were divided by their sum.",
        renormalized=count,
        n=source.facts["rows"],
    )


def _columns_in_another_order(source: MatrixInput) -> Finding | None:
    """Columns that would be right much more often under each other's names: all of them, or a few."""
    counts, labels = source.counts.astype(np.float64), source.labels
    # Where every class is mostly taken for itself no order is right more often.
    if (counts.argmax(axis=1) == np.arange(len(counts))).all():
        return None
    rows, columns = matching(counts)
    by_column = np.argsort(columns)
    moved = np.flatnonzero(rows[by_column] != np.arange(len(rows)))
    meant = rows[by_column][moved]
    n, right, better = (float(one.sum()) for one in (counts[moved], counts[moved, moved], counts[meant, moved]))
    if n < FEWEST_MOVED or better < max(2.0 * right, right + OTHER_ORDER * n):
        return None
    total, kept = float(counts.sum()), float(counts.trace())
    now, then = kept / total, (kept - right + better) / total
    columns_now, columns_then = ([labels[k] for k in order] for order in (moved, meant))
    return Finding.warning(
        "columns_in_another_order",
        f"With the columns of {names(columns_now)} called {names(columns_then)} accuracy would be {number(then)}, not "
        f"{number(now)}: the columns may be in another order than `labels`.",
        labels=columns_then[:MOST_NAMED],
        accuracy=now,
        accuracy_in_that_order=then,
    )


def _confident_mistakes(scores: Scores) -> Finding | None:
    if scores.weights is not None:
        # How many are too many is known for samples of one weight only.
        return None
    sure = scores.outcomes.confident
    total, wrong, expected = sure.size, sure.size - sure.events, sure.size - sure.expected
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


def _miscalibrated(by_chance: Mapping[str, Any], scores: Scores, *, grouped: bool) -> Finding | None:
    error = by_chance.get(expected_calibration_error.key)
    if error is None or error["p_value"] > ERROR_RATE or error["observed"] <= SMALLEST_ERROR:
        return None
    confidence, accuracy, noise = scores.outcomes.excess
    gap = confidence - accuracy
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
        f"{words}: {number(confidence)} for the predicted class, and {number(accuracy)} of the predictions "
        "are right.",
        direction=direction,
        confidence=confidence,
        accuracy=accuracy,
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
        unsure, size = scores.outcomes.unsure_of(code), int(scores.used[code])
        count, expected = unsure.events, unsure.expected
        p_value = _more_than_expected(count, expected, unsure.size)
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
    """Bound the probability of so many events, or more, in independent trials of unequal chances.

    From one above the expected number on no chances make it likelier than equal ones (Hoeffding 1956).
    """
    if count < expected + 1.0:
        return 1.0
    chance = np.asarray(expected / trials)
    return float(binomial_upper_tail(np.asarray(float(count)), np.asarray(float(trials)), chance, 1.0 - chance))


def _hidden_by_auc(run: RunData, areas: Sequence[Value]) -> Finding | None:
    """Classes whose order is surely good and whose recall is surely low, all of them together at the error rate."""
    labels, counts, found = run.source.labels, run.source.counts, []
    # Two limits of each class may be wrong, each at its end.
    settings = LimitSettings(level=1.0 - ERROR_RATE / len(labels))
    for code, area in enumerate(areas):
        if area is None or area < GOOD_AUC or counts[code, code] >= WEAK_RECALL * counts[code].sum():
            continue
        asked = [Measure(metric, metric.card.defaults, code) for metric in (roc_auc, recall)]
        estimands = [estimand_of(one, render(one, labels), labels) for one in asked]
        (order,), (part,) = estimate(estimands, run, settings)
        if order.low >= GOOD_AUC and part.high < WEAK_RECALL:
            found.append((part.value, labels[code], order, part))
    if not found:
        return None
    found.sort(key=lambda one: one[:2])
    _, label, order, part = found[0]
    return Finding.warning(
        "auc_hides_class",
        f"The AUC of class {name(label)} is {number(order.value)} (at least {number(order.low)}), yet only "
        f"{share(part.value)} (at most {share(part.high)}) of its cases are found. The order of the scores is good, "
        "and the decision does not use it. A lower threshold, or more weight for the class, finds more cases and makes "
        "more false alarms.",
        classes=[
            {
                "class": label,
                "auc": order.value,
                "auc_low": order.low,
                recall.key: part.value,
                f"{recall.key}_high": part.high,
            }
            for _, label, order, part in found[:MOST_NAMED]
        ],
        count=len(found),
        error_rate=ERROR_RATE,
    )


def threshold_findings(source: MatrixInput) -> Iterator[Finding]:
    """Yield a finding on a threshold that nobody gave."""
    if source.facts.get("threshold_assumed"):
        threshold = source.facts["threshold"]
        yield Finding.note(
            "threshold_assumed",
            f"No threshold came with the scores, so the confusion matrix is that of {threshold}. What follows from the "
            "order of the scores, such as AUC, does not depend on it.",
            threshold=threshold,
        )


def data_findings(source: MatrixInput) -> Iterator[Finding]:
    """Yield a finding on columns of referenced data that were not read."""
    facts = source.facts.get(DATA_FACT, {})
    if facts.get("sample_ids_unchecked"):
        yield Finding.note(
            "sample_ids_unchecked",
            "There are more rows than were held in memory, so their sample ids were not read. A sample that is there "
            "twice counts twice.",
            rows=facts["rows"],
        )
