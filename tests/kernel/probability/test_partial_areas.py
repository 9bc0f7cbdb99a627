"""Parts of the area under the ROC curve: pROC's published outputs, exact fractions, numeric integrals, scikit-learn."""

from fractions import Fraction
from itertools import pairwise
from math import log, log10

import numpy as np
import pytest
from scipy.integrate import quad

from app.domain.errors import InvalidParameter
from app.domain.expressions.expressions import parse
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.catalogue import catalogue
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability import exact
from tests.kernel.probability.problems import exact_tied_problem, softmax_problem, value
from tests.witnesses import sk

# Grades 1 to 5 of the World Federation of Neurosurgical Societies of 72 patients with a good and 41 with a poor outcome
# after a subarachnoid haemorrhage (Turck et al. 2010).
GOOD, POOR = (37, 20, 3, 8, 4), (2, 12, 1, 8, 18)
WFNS = Scores.of_scores(
    np.repeat([0, 1], [72, 41]), np.concatenate([np.repeat(np.arange(1.0, 6.0), count) for count in (GOOD, POOR)])
)
# What pROC 1.19 gives for them, by its tests: what it is about, from, to, the area, the area corrected.
PUBLISHED = [
    ("specificity", 1.0, 0.9, 0.0334417344173442, 0.649693339038653),
    ("specificity", 0.9, 0.8, 0.0598373983739837, 0.763749402199904),
    ("specificity", 0.5, 0.0, 0.488134475939354, 0.952537903757416),
    ("specificity", 1.0, 0.0, 0.823678861788618, 0.823678861788618),
    ("sensitivity", 1.0, 0.9, 0.0400999322493225, 0.68473648552275),
    ("sensitivity", 0.9, 0.8, 0.0609953703703703, 0.770561002178649),
    ("sensitivity", 0.5, 0.0, 0.483358739837398, 0.933434959349593),
    ("sensitivity", 1.0, 0.0, 0.823678861788618, 0.823678861788618),
]


@pytest.mark.parametrize(("focus", "start", "end", "area", "corrected"), PUBLISHED)
def test_published_outputs(focus: str, start: float, end: float, area: float, corrected: float) -> None:
    along = "fpr" if focus == "specificity" else "recall"
    low, high = (1.0 - start, 1.0 - end) if along == "fpr" else (end, start)
    found = [
        value("roc_auc_between", WFNS, low=low, high=high, along=along, scaled=scaled)[1]
        for scaled in ("none", "mcclish")
    ]
    assert found == pytest.approx([area, corrected], rel=1e-12)


def _points(members: list[Fraction], others: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """The corners (FPR, TPR) of the ROC curve."""
    cuts = sorted({*members, *others}, reverse=True)
    rates = [[Fraction(sum(s >= cut for s in side), len(side)) for side in (others, members)] for cut in cuts]
    return [(Fraction(0), Fraction(0)), *((x, y) for x, y in rates)]


def _area(points: list[tuple[Fraction, Fraction]], low: Fraction, high: Fraction) -> Fraction:
    found = Fraction(0)
    for (x1, y1), (x2, y2) in pairwise(points):
        a, b = max(x1, low), min(x2, high)
        if a < b:
            slope = (y2 - y1) / (x2 - x1)
            found += (b - a) * (y1 + slope * ((a + b) / 2 - x1))
    return found


@each("classes", [2, 3, 5])
@each("kind", ["tied", "distinct"])
@each("bounds", [("0", "1/8"), ("1/4", "3/8"), ("1/2", "1"), ("0", "1"), ("5/16", "11/32")])
def test_fractions(kind: str, classes: int, bounds: tuple[str, str]) -> None:
    low, high = map(Fraction, bounds)
    if kind == "tied":
        y, p, rows = exact_tied_problem(40, classes, 1)
    else:
        y, p = softmax_problem(40, classes, 1)
        rows = [[Fraction(float(entry)) for entry in row] for row in p]
    scores = Scores(y, p)
    for along in ("fpr", "recall"):
        areas = []
        for code in range(classes):
            points = _points(*exact.of_class(y.tolist(), rows, code))
            if along == "recall":
                points = [(tpr, 1 - fpr) for fpr, tpr in points]
            areas.append(_area(points, low, high))
        chance = (high - low) * (high + low) / 2 if along == "fpr" else (high - low) * (2 - high - low) / 2
        corrected = [(1 + (area - chance) / (high - low - chance)) / 2 for area in areas]
        for scaled, expected in (("none", areas), ("mcclish", corrected)):
            given = {"low": float(low), "high": float(high), "along": along, "scaled": scaled}
            found = value("roc_auc_between", scores, **given)
            np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [300, 20_000])
def test_scikit_learn(weighted: bool, n: int) -> None:
    y, p = softmax_problem(n, 2, 4)
    w = np.random.default_rng(0).gamma(1.0, size=n) if weighted else None
    for high in (0.05, 0.3, 1.0):
        expected = sk.roc_auc_score(y, p[:, 1], max_fpr=high, sample_weight=w)
        assert value("roc_auc_between", Scores(y, p, w), high=high)[1] == pytest.approx(expected, rel=1e-10)
        assert value("partial_roc_auc", Scores(y, p, w), max_fpr=high)[1] == pytest.approx(expected, rel=1e-10)
    expected = sk.average_precision_score(np.eye(2)[y], p, average="weighted", sample_weight=w)
    assert value("weighted_average_precision", Scores(y, p, w)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("classes", [3, 5])
def test_weighted_average_precision_of_classes(classes: int) -> None:
    y, p = softmax_problem(400, classes, 2)
    expected = sk.average_precision_score(np.eye(classes)[y], p, average="weighted")
    assert value("weighted_average_precision", Scores(y, p)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["tied", "distinct"])
@pytest.mark.parametrize("bounds", [(0.001, 0.1), (0.001, 1.0), (0.02, 0.03)])
def test_log_auc_by_the_published_sum(kind: str, bounds: tuple[float, float]) -> None:
    """Mysinger & Shoichet (2010): the integral of each straight piece over log10 of the false positive rate."""
    y, p = softmax_problem(500, 2, 3) if kind == "distinct" else exact_tied_problem(500, 2, 3)[:2]
    rows = [[Fraction(float(entry)) for entry in row] for row in p]
    points = _points(*exact.of_class(y.tolist(), rows, 1))
    low, high = bounds
    total = 0.0
    for (x1, y1), (x2, y2) in pairwise(points):
        a, b = max(float(x1), low), min(float(x2), high)
        if a < b:
            slope = float((y2 - y1) / (x2 - x1))
            total += slope * (b - a) / log(10) + (float(y1) - slope * float(x1)) * (log10(b) - log10(a))
    found = value("log_auc", Scores(y, p), low=low, high=high)[1]
    assert found == pytest.approx(total / log10(high / low), rel=1e-12)


def test_log_auc_by_a_numeric_integral() -> None:
    y, p, rows = exact_tied_problem(60, 2, 5)
    x, heights = np.array(_points(*exact.of_class(y.tolist(), rows, 1)), dtype=float).T
    expected, _ = quad(lambda u: np.interp(np.exp(u), x, heights), log(0.05), log(0.9), limit=2000)
    assert value("log_auc", Scores(y, p), low=0.05, high=0.9)[1] == pytest.approx(expected / log(18), rel=1e-6)


def test_chance_and_perfection() -> None:
    """Of equal scores the curve is the diagonal, whose mean over ln u is (b - a) / ln(b / a)."""
    y = np.repeat([0, 1], 20)
    alike, perfect = Scores.of_scores(y, np.zeros(40)), Scores.of_scores(y, y.astype(float))
    intervals: list[dict[str, float | str]] = [{}, {"low": 0.2, "high": 0.7, "along": "recall"}]
    for given in intervals:
        assert value("roc_auc_between", alike, **given)[1] == pytest.approx(0.5)
        assert value("roc_auc_between", perfect, **given)[1] == pytest.approx(1.0)
    assert value("log_auc", alike)[1] == pytest.approx(0.099 / log(100))
    assert value("log_auc", perfect)[1] == pytest.approx(1.0)


def test_hanley_and_mcneils_example() -> None:
    """58 normal and 51 abnormal tomograms in five ratings: an area of .893 with a standard error of .032 (Table I)."""
    normal, abnormal = (33, 6, 6, 11, 2), (3, 2, 2, 11, 33)
    ratings = np.concatenate([np.repeat(np.arange(5.0), count) for count in (normal, abnormal)])
    scores = Scores.of_scores(np.repeat([0, 1], [58, 51]), ratings)
    assert round(float(value("roc_auc", scores)[1]), 3) == 0.893
    assert round(float(value("roc_auc_standard_error", scores)[1]), 3) == 0.032


def test_standard_error_by_its_formula() -> None:
    y, p = softmax_problem(90, 3, 7)
    found = value("roc_auc_standard_error", Scores(y, p))
    for code in range(3):
        m, n = int((y == code).sum()), int((y != code).sum())
        area = Fraction(float(sk.roc_auc_score(y == code, p[:, code])))
        q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
        variance = (area * (1 - area) + (m - 1) * (q1 - area**2) + (n - 1) * (q2 - area**2)) / (m * n)
        assert found[code] == pytest.approx(float(variance) ** 0.5, rel=1e-12)
    assert np.isnan(value("roc_auc_standard_error", Scores(y, p, np.ones(90)))).all()


@pytest.mark.parametrize(
    "text", ["roc_auc_between(low=0.3)@1", "roc_auc_between(low=0.5, high=0.5)@1", "log_auc(low=0.1)@1"]
)
def test_an_interval_without_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="below high"):
        parse(text, ("0", "1"), 1, inputs=frozenset(Inputs))


def _of_class(scores: Scores, bins: int, code: int) -> list[float]:
    """The calibration errors of a class in all norms."""
    compute = catalogue().of_probabilities.by_name["class_calibration_error"].compute
    return [float(compute(scores, bins=bins, norm=norm)[code]) for norm in ("l1", "l2", "max")]


def test_calibration_errors_of_torchmetrics() -> None:
    """The outputs in its documentation, of two classes with 2 bins and of three with 3."""
    ill = np.array([0.25, 0.25, 0.55, 0.75, 0.75])
    found = _of_class(Scores(np.array([0, 0, 1, 1, 1]), np.column_stack([1 - ill, ill])), 2, 1)
    assert [round(one, 4) for one in found] == [0.29, 0.2918, 0.3167]
    rows = [[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]]
    of_three = Scores(np.array([0, 1, 2, 0]), np.array(rows))
    keys = ("expected_calibration_error", "l2_calibration_error", "maximum_calibration_error")
    assert [round(float(value(key, of_three, bins=3)), 4) for key in keys] == [0.2, 0.2082, 0.2333]


@pytest.mark.parametrize("classes", [2, 4])
def test_calibration_errors_by_their_bins(classes: int) -> None:
    y, p, rows = exact_tied_problem(80, classes, 3)
    top = [(max(row), int(np.argmax(p[index])) == y[index]) for index, row in enumerate(rows)]

    def gaps(pairs: list[tuple[Fraction, bool]]) -> list[tuple[int, Fraction]]:
        found = []
        for b in range(5):
            held = [one for one in pairs if Fraction(b, 5) < one[0] <= Fraction(b + 1, 5) or (b == 0 and one[0] == 0)]
            if held:
                total = sum((one - hit for one, hit in held), Fraction(0))
                found.append((len(held), abs(total) / len(held)))
        return found

    def root(of: list[tuple[int, Fraction]]) -> float:
        return float(np.sqrt(float(sum((size * gap**2 for size, gap in of), Fraction(0)) / 80)))

    scores = Scores(y, p)
    assert float(value("l2_calibration_error", scores, bins=5)) == pytest.approx(root(gaps(top)), rel=1e-12)
    for code in range(classes):
        of = gaps([(row[code], bool(y[index] == code)) for index, row in enumerate(rows)])
        expected = [float(sum(size * gap for size, gap in of) / 80), root(of), float(max(gap for _, gap in of))]
        assert _of_class(scores, 5, code) == pytest.approx(expected, rel=1e-12)
