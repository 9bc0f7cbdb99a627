"""PyCM 4.6 for every metric whose card names one of its keys or methods.

Where PyCM says "None" it gives no number to compare with; ``GAPS`` lists, with the reason, each key for which it does
so although the value exists, or gives a number although it does not. The exact definitions stand in there, as they do
for every value.
"""

import math
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each
from tests.kernel.closeness import CANCELLING, RELATIVE, is_of_class, value_of
from tests.kernel.matrices import matrices

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pycm

# PyCM's Anderberg has another formula, which the card says; its Gilbert and Wells divides factorials as whole numbers.
OTHERWISE = {"anderberg_d", "gilbert_wells"}
METRICS = {
    metric.key: metric
    for metric in catalogue().of_matrices.metrics
    if "pycm" in metric.card.elsewhere and metric.key not in OTHERWISE
}
# PyCM adds up its binomial terms with exact integers: tens of milliseconds per matrix, and an overflow from n = 1030
# on.
ITERATED = ("aickin_alpha",)

GAPS = {
    "accuracy_p_value": "sums C(n, j) p^j: the integers overflow a float from n = 1030 on",
    "yule_q": "divides the odds ratio first, so that FP FN = 0 has no value although Q is 1",
    "cross_entropy_margins": "leaves out classes that are never predicted, where the cross entropy is infinite",
    "kl_divergence_margins": "no value as soon as one class has no samples, where p log p is 0 as in its entropies",
    "prevalence_weighted_auc": "no value as soon as one class has none, even one that has no weight",
    "overall_confusion_entropy": "no value as soon as one class has none, even one that has no weight",
    "overall_modified_confusion_entropy": "as above",
    "aickin_alpha": "stops its iteration at a distance that is not its error",
}
# 1 - TPR, 1 - TNR and the like are differences in PyCM: a small rate loses digits, and so does what is divided by it.
BY_DIFFERENCE = {
    "likelihood_ratio_positive", "likelihood_ratio_negative", "diagnostic_odds_ratio", "discriminant_power",
    "roc_distance", "adjusted_rand",
}  # fmt: skip
DIFFERENCE = 1e-8
# Its conditional entropies are differences, its p-value is 1 less a sum, and its weighted agreements add K^2 rounded
# terms to 1. Kent's and Foster's subtract from TP nearly all of it.
FLOORS = {
    "mutual_information": 4e-14, "conditional_entropy": 4e-14, "joint_entropy": 4e-14, "response_entropy": 4e-14,
    "reference_entropy": 4e-14, "kl_divergence_margins": 4e-14, "cross_entropy_margins": 4e-14,
    "relative_classifier_information": 1e-11, "accuracy_p_value": 1e-12, "weighted_kappa": 4e-12,
    "weighted_alpha": 4e-12, "kent_foster_i": 1e-11, "kent_foster_ii": 1e-11,
}  # fmt: skip


@cache
def matrix(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pycm.ConfusionMatrix(matrix=matrices()[name].tolist())


def disagreement(classes: int, weights: str) -> dict[int, dict[int, int]]:
    power = 1 if weights == "linear" else 2
    return {i: {j: abs(i - j) ** power for j in range(classes)} for i in range(classes)}


def said_by_pycm(metric: Metric[Table], name: str) -> list[float | None]:
    """PyCM's numbers, None where it says so: one per class, or a single one."""
    cm, source = matrix(name), metric.card.elsewhere["pycm"]
    k = len(cm.classes)
    methods = {
        "F_beta": lambda: cm.F_beta(1),
        "TI": lambda: cm.TI(0.5, 0.5),
        "NB": lambda: cm.NB(1.0),
        "sensitivity_index": cm.sensitivity_index,
        "weighted_kappa": lambda: cm.weighted_kappa(disagreement(k, "linear")),
        "weighted_alpha": lambda: cm.weighted_alpha(disagreement(k, "linear")),
        "aickin_alpha": lambda: cm.aickin_alpha(max_iter=4000, epsilon=1e-15),
    }
    if source in pycm.DistanceType.__members__:
        raw = cm.distance(metric=pycm.DistanceType[source])
    elif source in methods:
        raw = methods[source]()
    elif is_of_class(metric):
        raw = cm.class_stat[source.removesuffix(" (base 10)")]
    else:
        raw = cm.overall_stat[source]
    values = list(raw.values()) if isinstance(raw, dict) else [raw[0] if isinstance(raw, tuple) else raw]
    numbers = [None if isinstance(value, str) else float(value) for value in values]
    if source == "DP (base 10)":
        numbers = [None if value is None else value * math.log(10.0) for value in numbers]
    return numbers


def compared(metric: Metric[Table], name: str) -> int:
    """Check one metric on one matrix and count the numbers that were compared."""
    got = np.atleast_1d(value_of(metric, matrices()[name])).tolist()
    want = said_by_pycm(metric, name)
    assert len(got) == len(want)
    relative = DIFFERENCE if metric.key in BY_DIFFERENCE else RELATIVE
    floor = FLOORS.get(metric.key, CANCELLING)
    numbers = 0
    for mine, theirs in zip(got, want, strict=True):
        if theirs is None or not math.isfinite(mine):
            agreed = theirs is None and not math.isfinite(mine)
            assert agreed or metric.key in GAPS, f"{metric.key} on {name}: {mine} and {theirs}"
            continue
        numbers += 1
        assert abs(mine - theirs) <= relative * abs(theirs) + floor, f"{metric.key} on {name}: {mine!r} and {theirs!r}"
    return numbers


@each("name", matrices())
def test_every_key(name: str) -> None:
    numbers = sum(compared(metric, name) for key, metric in METRICS.items() if key not in ITERATED)
    assert numbers > 20


@each("key", METRICS)
def test_no_key_is_all_gaps(key: str) -> None:
    if key not in ITERATED:
        assert compared(METRICS[key], "dense-3-0") > 0


def test_aickin_alpha() -> None:
    """PyCM stops when a step is below epsilon; what is left is the step over 1 - rate, so only settled iterations say
    enough.

    Those that have not settled after 4000 steps are left to the exact definition. Below chance PyCM gives numbers that
    are no shares, some of them above 1.
    """
    metric, settled = METRICS["aickin_alpha"], 0
    for name in (name for name in matrices() if int(name.split("-")[1]) <= 5):
        one, two = (matrix(name).aickin_alpha(max_iter=steps, epsilon=1e-16) for steps in (2000, 4000))
        if isinstance(two, str) or not math.isclose(one, two, rel_tol=1e-13, abs_tol=1e-16):
            continue
        got = float(value_of(metric, matrices()[name]))
        if float(value_of(METRICS["cohen_kappa"], matrices()[name])) < 0:
            assert math.isnan(got)
            continue
        settled += 1
        assert got == pytest.approx(two, rel=1e-11, abs=CANCELLING), name
    assert settled > 30


@pytest.mark.parametrize("name", ["dense-2-0", "accurate-5-0", "absent_class-3-0", "dense-35-0"])
def test_methods_with_parameters(name: str) -> None:
    cm, counts = matrix(name), matrices()[name]
    k = counts.shape[0]
    for key, mine, theirs in (
        ("f_beta", {"beta": 2.5}, cm.F_beta(2.5)),
        ("index_balanced_accuracy", {"alpha": 0.3}, cm.IBA_alpha(0.3)),
        # Its alpha weighs the misses and its beta the false alarms, the other way round from Tversky (1977); see the
        # card's ``differs``.
        ("tversky_index", {"alpha": 0.2, "beta": 0.7}, cm.TI(alpha=0.7, beta=0.2)),
        ("net_benefit", {"threshold": 0.2}, cm.NB(0.25)),
        ("weighted_kappa", {"weights": "quadratic"}, {0: cm.weighted_kappa(disagreement(k, "quadratic"))}),
        ("weighted_alpha", {"weights": "quadratic"}, {0: cm.weighted_alpha(disagreement(k, "quadratic"))}),
    ):
        for got, want in zip(np.atleast_1d(value_of(METRICS[key], counts, **mine)), theirs.values(), strict=True):
            if want == "None":
                assert not np.isfinite(got)
            else:
                assert got == pytest.approx(want, rel=RELATIVE, abs=CANCELLING), key


@pytest.mark.parametrize("name", ["dense-2-0", "dense-3-0", "sparse-3-0", "below_chance-2-0"])
def test_gilbert_and_wells(name: str) -> None:
    """On matrices whose factorials can be divided."""
    metric = catalogue().of_matrices.by_name["gilbert_wells"]
    theirs = matrix(name).distance(metric=pycm.DistanceType.GilbertWells)
    assert value_of(metric, matrices()[name]) == pytest.approx(list(theirs.values()), rel=1e-11)


def test_every_similarity_coefficient_of_pycm_has_a_key() -> None:
    """63 names: 60 metrics, and three that were there under another name."""
    names = [card.elsewhere.get("pycm") for card in (metric.card for metric in catalogue().of_matrices.metrics)]
    aliases = {"ForbesI": "forbes_i", "ForbesII": "forbes_ii", "FleissLevinPaik": "fleiss_levin_paik"}
    assert len(pycm.DistanceType) == 63
    for one in pycm.DistanceType:
        assert one.name in names or aliases[one.name] in catalogue().by_name
    for name, alias in aliases.items():
        metric = catalogue().of_matrices.by_name[alias]
        theirs = matrix("dense-3-0").distance(metric=pycm.DistanceType[name])
        assert value_of(metric, matrices()["dense-3-0"]) == pytest.approx(list(theirs.values()), rel=1e-13)


def test_gaps_are_real() -> None:
    """Each reason above holds for at least one matrix, so that the list does not outlive its reasons."""
    seen = set()
    for name in matrices():
        for key in GAPS.keys() & METRICS.keys() - set(ITERATED):
            pairs = zip(
                np.atleast_1d(value_of(METRICS[key], matrices()[name])), said_by_pycm(METRICS[key], name), strict=True
            )
            if any((theirs is None) != (not math.isfinite(mine)) for mine, theirs in pairs):
                seen.add(key)
    assert seen == GAPS.keys() & METRICS.keys() - set(ITERATED)
