"""Findings about probabilities: what they say, by which evidence, and how seldom they speak of probabilities that are
right.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from app.domain.findings import Finding
from app.domain.inputs.classified import Predictions, Probabilities
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.samples import Samples
from app.domain.members import numbers
from app.domain.options import Options
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import expected_by_chance
from app.services.estimates.run_data import RunData
from app.services.evaluate.reports import evaluate
from app.services.evaluate.sections.findings import ERROR_RATE, probability_findings


def source_of(y: Any, p: Array, groups: int | None = None, weights: Array | None = None) -> MatrixInput:
    predicted = p.argmax(axis=1)
    return MatrixInput(
        kind="probabilities",
        labels=tuple("ABCDE"[: p.shape[1]]),
        positive=1 if p.shape[1] == 2 else None,
        content=Content.counts,
        counts=confusion_counts(y, predicted, p.shape[1]),
        facts={} if groups is None else {GROUPS_FACT: groups},
        samples=Samples(np.asarray(y, dtype=np.int64), predicted, p, weights=weights),
    )


def found_in(source: MatrixInput, seed: int = 0) -> dict[str, Finding]:
    run, known = RunData(source), catalogue().of_probabilities.by_name
    scores = run.scores
    chance = expected_by_chance(scores, draws=200, seed=seed)
    error = {
        "observed": chance.observed,
        "expected_if_calibrated": chance.mean,
        "upper_if_calibrated": chance.upper,
        "p_value": chance.p_value,
    }
    with silently():
        by_class = {key: numbers(known[key].compute(scores)) for key in ("roc_auc", "median_phi")}
    details = {"calibration": {"expected_calibration_error": error}}
    return {finding.code: finding for finding in probability_findings(run, by_class, details)}


@pytest.mark.parametrize("classes", [2, 4])
def test_what_pages_do_not_show_changes_nothing_else(classes: int) -> None:
    """Limits, details and most metrics of each of several classes are left out, and all the rest is as it was."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(classes, 0.3), 300)
    source = source_of(random.integers(0, classes, 300), p)
    whole, shown = (evaluate(source, Options(details=details)) for details in (True, False))
    for member in ("headline", "metrics", "findings", "undefined", "values"):
        assert getattr(whole, member) == getattr(shown, member)
    for label, groups in shown.per_class.items():
        of_all: dict[str, Any] = {**whole.per_class[label]}
        assert all(of_all[name] == of_all[name] | group for name, group in groups.items())
        assert (groups == of_all) == (classes == 2)
    left_out = {name for name in whole.intervals if name.partition("@")[0] in ("roc_auc", "average_precision")}
    assert len(left_out) == 2 * classes
    kept = {name: one for name, one in whole.intervals.items() if classes == 2 or name not in left_out}
    assert shown.intervals == kept
    assert whole.probabilities is not None
    assert shown.probabilities is not None
    details = whole.probabilities["per_class"].values()
    assert all({"phi_quartiles", "spiegelhalter"} <= one.keys() for one in details)
    calibration = {name: whole.probabilities["calibration"][name] for name in shown.probabilities["calibration"]}
    assert calibration.keys() < whole.probabilities["calibration"].keys()
    of_classes = shown.probabilities["per_class"]
    assert shown.probabilities == {**whole.probabilities, "calibration": calibration, "per_class": of_classes}
    assert not any("spiegelhalter" in one for one in shown.probabilities["per_class"].values())


def calibrated(
    shares: tuple[float, ...], size: int, random: np.random.Generator, apart: float = 1.2
) -> tuple[Any, Array]:
    y = random.choice(len(shares), size, p=shares)
    logits = random.normal(size=(size, len(shares))) * apart + np.log(shares)
    logits[np.arange(size), y] += apart**2
    mass = np.exp(logits)
    found: Array = mass / mass.sum(axis=1, keepdims=True)
    return y, found


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.95, 0.05), (0.5, 0.5), (0.6, 0.3, 0.1)])
def test_calibrated_probabilities_are_seldom_spoken_of(shares: tuple[float, ...]) -> None:
    """A rare class gets less than a half for most of its samples, and should."""
    random, times, fired = np.random.default_rng(5), 120, {"unsure_class": 0, "miscalibrated": 0, "auc_hides_class": 0}
    for seed in range(times):
        found = found_in(source_of(*calibrated(shares, 300, random)), seed)
        for code in fired:
            fired[code] += code in found
    for code, count in fired.items():
        # At most what the stated rate gives in 99 of 100 simulations like this one.
        assert count <= binom.ppf(0.99, times, ERROR_RATE), code


def test_a_class_that_gets_too_little() -> None:
    """Twelve samples at 0.2, of which nine are of the class, where 2.4 are to be expected."""
    p = np.concatenate([np.full(12, 0.2), np.full(30, 0.1)])
    y = np.array([1] * 9 + [0] * 3 + [0] * 27 + [1] * 3)
    finding = found_in(source_of(y, np.column_stack([1 - p, p])))["unsure_class"]
    (entry,) = finding.evidence["classes"]
    assert (entry["class"], entry["n"], entry["unsure"]) == ("B", 12, 12)
    assert entry["expected"] == pytest.approx(12 * 0.2 + 30 * 0.1)
    # All 42 samples are at most 1/2; binomial chances of equal size are less likely to give so many.
    assert entry["p_value"] == pytest.approx(binom.sf(11, 42, 5.4 / 42))
    assert finding.message == (
        "Class B gets too little probability: 12 of its 12 samples were given at most 0.5 for it. If the probabilities "
        "were right, about 5.4 would be (p at most 0.006)."
    )


def test_chances_of_unequal_size_are_no_likelier_to_give_many() -> None:
    """The bound against all outcomes of unequal chances, added up."""
    chances = np.array([0.05, 0.1, 0.3, 0.45, 0.5, 0.2])
    exact = np.array([1.0])
    for chance in chances:
        exact = np.convolve(exact, [1 - chance, chance])
    p = np.concatenate([chances, [0.9] * 6])
    for count in (4, 5, 6):
        y = np.array([0] * (6 - count) + [1] * count + [1] * 6)
        finding = found_in(source_of(y, np.column_stack([1 - p, p]))).get("unsure_class")
        assert exact[count:].sum() <= binom.sf(count - 1, 6, chances.mean()) + 1e-12
        assert finding is None or finding.evidence["classes"][0]["p_value"] >= exact[count:].sum()


def test_a_good_order_with_a_poor_decision_has_its_limits() -> None:
    random = np.random.default_rng(1)
    y = np.repeat([0, 1], [900, 100])
    p = np.where(y == 1, 0.35, 0.1) + 0.2 * random.random(1000)
    finding = found_in(source_of(y, np.column_stack([1 - p, p])))["auc_hides_class"]
    (entry,) = finding.evidence["classes"]
    assert entry["class"] == "B"
    assert 0.9 <= entry["auc_low"] <= entry["auc"]
    assert entry["recall"] < entry["recall_high"] < 0.5
    assert "A lower threshold" in finding.message
    assert "wrong" not in finding.message
    # The same rates of a tenth of the samples leave it open.
    few = slice(None, None, 40)
    assert "auc_hides_class" not in found_in(source_of(y[few], np.column_stack([1 - p, p])[few]))
    # Nor is it known of as few that have weights.
    rows = np.column_stack([1 - p, p])
    (own,) = found_in(source_of(y, rows, weights=np.ones(1000)))["auc_hides_class"].evidence["classes"]
    assert 0.9 <= own["auc_low"] <= own["auc"]
    assert "auc_hides_class" not in found_in(source_of(y[few], rows[few], weights=np.ones(25)))


@pytest.mark.parametrize(("shift", "direction"), [(0.25, "overconfident"), (-0.2, "underconfident")])
def test_the_direction_is_said_where_it_is_known(shift: float, direction: str) -> None:
    random = np.random.default_rng(2)
    p = random.uniform(0.55, 0.75, 800)
    y = (random.random(800) < p - shift).astype(int)
    finding = found_in(source_of(y, np.column_stack([1 - p, p])))["miscalibrated"]
    assert finding.evidence["direction"] == direction
    assert finding.evidence["p_value"] <= finding.evidence["error_rate"] == ERROR_RATE
    assert "not calibrated" in finding.message


def test_errors_that_cancel_have_no_direction() -> None:
    """Of 400 samples at 0.6 three quarters are right, of 400 at 0.8 only 65 %: 70 % both ways."""
    p = np.repeat([0.6, 0.8], 400)
    y = np.concatenate([np.repeat([1, 0], [300, 100]), np.repeat([1, 0], [260, 140])])
    finding = found_in(source_of(y, np.column_stack([1 - p, p])))["miscalibrated"]
    assert finding.evidence["direction"] == "mixed"
    assert finding.evidence["confidence"] == pytest.approx(finding.evidence["accuracy"])
    assert "neither too high nor too low, as far as these samples tell: 0.700" in finding.message


def test_what_is_not_known_of_groups_and_weights() -> None:
    p = np.concatenate([np.full(12, 0.2), np.full(30, 0.1)])
    y = np.array([1] * 9 + [0] * 3 + [0] * 27 + [1] * 3)
    rows = np.column_stack([1 - p, p])
    assert "unsure_class" not in found_in(source_of(y, rows, groups=6))
    assert "unsure_class" not in found_in(source_of(y, rows, weights=np.ones(42)))
    miscalibrated = found_in(source_of(np.repeat([0, 1], 100), np.tile([0.1, 0.9], (200, 1)), groups=5))[
        "miscalibrated"
    ]
    assert "independent samples" in miscalibrated.message


# Class shares, and how far the classes lie apart: of calibrated models with probabilities, and with decisions alone.
GOOD: list[tuple[tuple[float, ...], float, bool]] = [
    *(((0.5, 0.5), 1.6, True), ((0.9, 0.1), 1.2, True), ((0.98, 0.02), 1.6, True), ((0.7, 0.2, 0.1), 2.0, True)),
    *(((1 / 3,) * 3, 2.0, True), ((0.1,) * 10, 2.5, True)),
    *(((0.5, 0.5), 4.0, True), ((0.9, 0.1), 4.0, True), ((0.2,) * 5, 4.0, True)),
    *(((0.5, 0.5), 1.6, False), ((0.2,) * 5, 2.0, False)),
]


def labelled(size: int, random: np.random.Generator, share: float, *, decided: bool) -> MatrixInput:
    """Six labels of as many samples, with calibrated probabilities or decisions at a half."""
    truth = random.random((size, 6)) < share
    apart = 2.5
    found = random.normal(size=truth.shape) + apart * truth
    p = 1.0 / (1.0 + np.exp(-np.log(share / (1.0 - share)) - apart * (found - apart / 2.0)))
    one = Multilabel(y_true=truth, y_pred=p > 0.5) if decided else Multilabel(y_true=truth, probabilities=p)
    return one.read("")


@pytest.mark.slow
def test_warnings_of_good_models_are_rare() -> None:
    """25 calibrated models of each of 14 kinds, with 200 to 5,000 samples (benchmarks/RESULTS.md).

    Decisions alone with a class of 10 % are not among them: that accuracy hides what is missed of it is true then.
    """
    random = np.random.default_rng(20)
    warned: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for number in range(25):
        size = (200, 500, 1000, 2000, 5000)[number % 5]
        sources = [labelled(size, random, share, decided=d) for share, d in ((0.3, True), (0.3, False), (0.1, False))]
        for shares, apart, scored in GOOD:
            y, p = calibrated(shares, size, random, apart)
            names: list[str | int] = [chr(ord("A") + code) for code in range(len(shares))]
            truth = [names[code] for code in y]
            sources.append(
                Probabilities(y_true=truth, probabilities=p, labels=names).read("")
                if scored
                else Predictions(y_true=truth, y_pred=[names[code] for code in p.argmax(1)], labels=names).read("")
            )
        for source in sources:
            findings = evaluate(source, Options()).findings
            said.update({one.code for one in findings})
            warned.update({one.code for one in findings if one.severity != "note"})
    assert min(said[one] for one in ("accuracy_overstates", "intervals_rest_on_few_samples")) > 20
    assert said["area_intervals_of_few_samples"] > 20
    assert max(warned.values()) <= 0.05 * 350, warned


def test_columns_in_another_order_are_found() -> None:
    """Only where other names would be right much more often: a model that is no better than chance stays as it is."""
    random = np.random.default_rng(4)
    y, p = calibrated((1 / 3, 1 / 3, 1 / 3), 300, random, apart=3.0)
    code = "columns_in_another_order"
    assert code not in found_in(source_of(y, p))
    mistaken = found_in(source_of(y, p[:, [1, 2, 0]]))[code]
    assert mistaken.evidence["labels"] == ["B", "C", "A"]
    assert mistaken.evidence["accuracy_in_that_order"] > 0.9 > 0.1 > mistaken.evidence["accuracy"]
    assert "With the columns of A, B and C called B, C and A accuracy would be" in mistaken.message
    assert code not in found_in(source_of(y, random.permutation(p)))
    # Two columns of many: accuracy as a whole is still high.
    y, p = calibrated((0.2,) * 5, 600, random, apart=4.0)
    swapped = found_in(source_of(y, p[:, [0, 3, 2, 1, 4]]))[code]
    assert swapped.evidence["labels"] == ["D", "B"]
    assert swapped.evidence["accuracy_in_that_order"] > swapped.evidence["accuracy"] + 0.15
    assert code not in found_in(source_of(y, p))
