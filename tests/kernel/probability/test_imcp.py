"""MCP and IMCP: the package of the authors, the printed numbers of the papers, exact sums and quantiles."""

import csv
import gzip
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.imcp import phi_quartiles, regions
from app.kernel.samples.curves import imbalanced_performance, performance
from app.kernel.samples.losses import phi_of, threshold_correct, threshold_incorrect
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability.problems import softmax_problem, tied_problem, value

DATA = Path(__file__).parents[2] / "data" / "imcp"


def full_phi(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """1 minus the Hellinger distance of the definition, over all classes."""
    truth = np.eye(p.shape[1])[y]
    phi: np.ndarray = 1.0 - np.sqrt(((np.sqrt(p) - np.sqrt(truth)) ** 2).sum(axis=1) / 2.0)
    return phi


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("n", [30, 400, 6000])
def test_package_on_data_without_ties(classes: int, n: int) -> None:
    """Its score functions fail on this numpy, its curves do not; their areas are the trapezoids."""
    import imcp

    y, p = softmax_problem(n, classes, n)
    scores = Scores(y, p)
    x, height = imcp.imcp_curve(y, p)
    np.testing.assert_allclose(value("au_imcp_trapezoid", scores), np.trapezoid(height, x=x), rtol=1e-10)
    curve = imbalanced_performance(scores)
    np.testing.assert_allclose(curve.x, x, atol=1e-10)
    np.testing.assert_allclose(curve.y, height, atol=1e-10)
    assert curve.area == pytest.approx(float(value("au_imcp", scores)), rel=1e-12)
    x, height = imcp.mcp_curve(y, p)
    np.testing.assert_allclose(value("au_mcp_trapezoid", scores), np.trapezoid(height, x=x), rtol=1e-10)
    np.testing.assert_allclose(performance(scores).y[1:-1], height, atol=1e-10)


@pytest.mark.parametrize("problem", [softmax_problem, tied_problem])
def test_areas_are_means(problem: object) -> None:
    y, p = problem(500, 4, 2)  # type: ignore[operator]
    phi = full_phi(y, p)
    by_class = [phi[y == code].mean() for code in range(4)]
    scores = Scores(y, p)
    np.testing.assert_allclose(value("mean_phi", scores), by_class, rtol=1e-12)
    np.testing.assert_allclose(value("au_imcp", scores), np.mean(by_class), rtol=1e-12)
    np.testing.assert_allclose(value("au_mcp", scores), phi.mean(), rtol=1e-12)


def test_trapezoid_is_that_of_the_drawn_points() -> None:
    y, p = tied_problem(300, 3, 5)
    scores = Scores(y, p)
    curve = imbalanced_performance(scores)
    np.testing.assert_allclose(value("au_imcp_trapezoid", scores), np.trapezoid(curve.y, x=curve.x), rtol=1e-12)


def test_ties_go_by_class_here_and_by_rounding_in_the_package() -> None:
    """Probabilities in twentieths: samples of several classes share a p_true, and the package orders them by a sum over
    all classes whose last digits differ. Its area is near, and another for other names of the classes.
    """
    import imcp

    random = np.random.default_rng(2)
    p = np.array([random.multinomial(20, shares) for shares in random.dirichlet(np.ones(3), 60)]) / 20
    y = random.choice(3, 60, p=[0.7, 0.15, 0.15])
    x, height = imcp.imcp_curve(y, p)
    package, ours = np.trapezoid(height, x=x), float(value("au_imcp_trapezoid", Scores(y, p)))
    assert 1e-4 < abs(package - ours) < 2e-3
    p_true = p[np.arange(60), y]
    order = np.lexsort((y, p_true))
    phi, width = phi_of(p_true[order]), 1 / (3 * np.bincount(y))[y[order]]
    along = np.concatenate([[0], np.cumsum(width) - width / 2, [1]])
    assert ours == pytest.approx(np.trapezoid(np.concatenate([phi[:1], phi, phi[-1:]]), x=along), rel=1e-12)
    # The means over the classes know no order.
    assert float(value("au_imcp", Scores(y, p))) == pytest.approx(
        np.mean([phi[y[order] == k].mean() for k in range(3)])
    )
    card = catalogue().by_name["au_imcp_trapezoid"].card
    assert "equal p_true" in card.sentence
    assert "equal p_true" in card.differs["imcp"]


def test_area_without_ties_in_the_labels() -> None:
    """With ties the package's area depends on the names of the classes; the step area and ours do not."""
    y, p = tied_problem(200, 3, 9)
    order = [2, 0, 1]
    renamed = Scores(np.argsort(order)[y], p[:, order])
    np.testing.assert_allclose(value("au_imcp", renamed), value("au_imcp", Scores(y, p)), rtol=1e-12)
    shuffled = np.random.default_rng(1).permutation(200)
    for key in ("au_imcp", "au_imcp_trapezoid"):
        np.testing.assert_allclose(value(key, Scores(y[shuffled], p[shuffled])), value(key, Scores(y, p)), rtol=1e-12)


PRINTED_DISTANCES = [
    # Aguilar-Ruiz & Michalak 2024, Method.
    ((0.35, 0.33, 0.32), 0, 0.639, 0.0005),
    # Mathematical background of the authors' package, tables 1 and 2; 0.64 is truncated (0.6457).
    ((1.0, 0.0, 0.0), 0, 0.00, 0.005),
    ((0.40, 0.30, 0.30), 0, 0.61, 0.005),
    ((0.34, 0.33, 0.33), 0, 0.64, 0.01),
    ((1.0, 0.0, 0.0), 1, 1.00, 0.005),
    ((0.40, 0.30, 0.30), 1, 0.67, 0.005),
]


@pytest.mark.parametrize(("row", "truth", "printed", "tolerance"), PRINTED_DISTANCES)
def test_printed_distances(row: tuple[float, ...], truth: int, printed: float, tolerance: float) -> None:
    distance = 1.0 - float(phi_of(np.array([row[truth]]))[0])
    assert abs(distance - printed) <= tolerance
    assert distance == pytest.approx(1.0 - full_phi(np.array([truth]), np.array([row]))[0], abs=1e-12)


def test_printed_thresholds() -> None:
    """1 - eta = 0.459 for any number of classes, 1 - theta = 0.088 for 35."""
    assert round(threshold_correct(), 3) == 0.459
    assert round(threshold_incorrect(35), 3) == 0.088
    assert threshold_incorrect(4) == pytest.approx(1.0 - sqrt(0.5))
    # For two classes both are the same.
    assert threshold_incorrect(2) == pytest.approx(threshold_correct(), rel=1e-15)


def test_thresholds_are_those_of_the_regions() -> None:
    assert float(phi_of(np.array([0.5]))[0]) == pytest.approx(threshold_correct(), rel=1e-15)
    assert float(phi_of(np.array([1.0 / 35.0]))[0]) == pytest.approx(threshold_incorrect(35), rel=1e-13)


def test_regions() -> None:
    """1/3 and 1/2 lie in the middle, though as floats they are not exactly what they stand for."""
    p = np.array(
        [[0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2], [0.51, 0.29, 0.2], [0.1 * 3 + 0.2, 0.3, 0.2]]
    )
    scores = Scores(np.zeros(5, dtype=int), p)
    assert value("fraction_correct_certain", scores) == 0.2
    assert value("fraction_uncertain", scores) == pytest.approx(0.6)
    assert value("fraction_incorrect_certain", scores) == 0.2
    np.testing.assert_allclose(regions(scores)[:, 0], [0.2, 0.6, 0.2])
    weighted = Scores(np.zeros(5, dtype=int), p, np.array([5.0, 1, 1, 2, 1]))
    assert value("fraction_incorrect_certain", weighted) == 0.5


def test_printed_region_shares() -> None:
    """72, 1023 and 5661 of 6756 samples: 1.07 % (printed truncated, 1.06), 15.14 % and 83.79 %."""
    p_true = np.concatenate([np.full(72, 0.02), np.full(1023, 0.3), np.full(5661, 0.8)])
    p = np.zeros((6756, 35))
    p[:, 0] = p_true
    p[:, 1:] = ((1.0 - p_true) / 34.0)[:, None]
    scores = Scores(np.zeros(6756, dtype=int), p)
    found = [
        100 * float(value(f"fraction_{name}", scores)) for name in ("incorrect_certain", "uncertain", "correct_certain")
    ]
    assert [round(share, 2) for share in found] == [1.07, 15.14, 83.79]


@each("n", [9, 40, 401, 9001])
@each("classes", [2, 3])
@each("problem", [softmax_problem, tied_problem])
def test_quartiles(n: int, classes: int, problem: object) -> None:
    y, p = problem(n, classes, n)  # type: ignore[operator]
    ours = phi_quartiles(Scores(y, p))
    for code in range(classes):
        phi = phi_of(p[y == code, code])
        expected = np.quantile(phi, [0.25, 0.5, 0.75], method="averaged_inverted_cdf")
        np.testing.assert_allclose(ours[:, code], expected, rtol=1e-12)


def test_quartiles_weigh_as_replication_does() -> None:
    y, p = tied_problem(60, 3, 1)
    times = np.random.default_rng(2).integers(1, 5, 60)
    weighted = phi_quartiles(Scores(y, p, times.astype(float)))
    np.testing.assert_allclose(
        weighted, phi_quartiles(Scores(np.repeat(y, times), np.repeat(p, times, axis=0))), rtol=1e-12
    )


def test_one_sample() -> None:
    scores = Scores([0], [[0.7, 0.3]])
    assert value("au_mcp", scores) == pytest.approx(1.0 - sqrt(1.0 - sqrt(0.7)))
    assert np.isnan(value("au_mcp_trapezoid", scores))


def read_rows(name: str, delimiter: str = ",") -> list[list[str]]:
    """The rows of a file of the authors' package, without the header."""
    with gzip.open(DATA / f"{name}.csv.gz", "rt") as file:
        return list(csv.reader(file, delimiter=delimiter))[1:]


def read_problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes from 0 and probabilities."""
    rows = np.array(read_rows(name), dtype=float)
    codes = rows[:, 0].astype(int)
    return codes - codes.min(), rows[:, 1:]


def test_reference_curve_of_the_authors() -> None:
    """Their test data: 1,885 samples of 7 classes, and the MCP curve of these.

    The heights agree to 1e-13 but for the lowest one: there p_true is 1.87591848e-08 in the file, and half a unit of
    its last digit moves phi by as much.
    """
    import imcp

    y, p = read_problem("test_results")
    reference = np.array(read_rows("test_mcp_curve"), dtype=float)
    curve = performance(Scores(y, p))
    assert reference.shape == (1885, 2)
    apart = np.abs(curve.y[1:-1] - reference[:, 1])
    assert (apart[1:] < 1e-13).all()
    assert apart[0] < phi_of(curve.thresholds[1:2] + 5e-17)[0] - curve.y[1] + 5e-14
    # Its x runs from 0 to 1 over the samples; here bars of width 1/n have their points in the middle.
    np.testing.assert_allclose(reference[:, 0], np.arange(1885) / 1884, atol=1e-15)
    np.testing.assert_allclose(curve.x[1:-1], (np.arange(1885) + 0.5) / 1885, atol=1e-12)
    np.testing.assert_allclose(
        value("au_mcp_trapezoid", Scores(y, p)), np.trapezoid(reference[:, 1], reference[:, 0]), rtol=1e-13
    )
    x, height = imcp.imcp_curve(y, p)
    imbalanced = imbalanced_performance(Scores(y, p))
    np.testing.assert_allclose(imbalanced.x, x, atol=1e-13)
    np.testing.assert_allclose(imbalanced.y, height, atol=4e-13)


def test_imbalanced_probabilities_of_the_authors() -> None:
    """Classes of 100, 1,600 and 8,100, probabilities in 500ths: many ties, which the package leaves to rounding.

    The heights agree, and so do the places where a run of equal heights ends.
    """
    import imcp

    y, p = read_problem("test_imbalanced_class_probs")
    assert np.bincount(y).tolist() == [100, 1600, 8100]
    # The rows are of single precision: their sums are off by up to 4e-8, which the package counts in.
    rows = np.round(p, 3)
    rows /= rows.sum(axis=1, keepdims=True)
    x, height = imcp.imcp_curve(y, rows)
    curve = imbalanced_performance(Scores(y, rows))
    np.testing.assert_allclose(curve.y, height, atol=1e-12)
    assert curve.widths is not None
    assert curve.codes is not None
    ends = np.append(np.flatnonzero(np.diff(curve.y[1:-1]) > 1e-9), y.size - 1)
    ours = np.cumsum(curve.widths[1:-1])
    package = np.cumsum(imcp_widths(x))
    np.testing.assert_allclose(ours[ends], package[ends], atol=1e-9)
    for code, count in enumerate((100, 1600, 8100)):
        np.testing.assert_allclose(curve.widths[1:-1][curve.codes[1:-1] == code], 1 / (3 * count), rtol=1e-12)


def imcp_widths(x: np.ndarray) -> np.ndarray:
    """The widths of bars whose middles are known."""
    widths, end = [], 0.0
    for middle in x[1:-1]:
        widths.append(2 * (middle - end))
        end += widths[-1]
    return np.array(widths)


def test_more_imbalance_hides_the_small_class_from_accuracy_only() -> None:
    """Figs. 2 and 3 on the authors' datasets A, B and C: naive Bayes, ten folds."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    found = []
    for name in ("A_exp-0", "B_exp-2", "C_exp-4"):
        rows = [row for row in read_rows(f"{name}.base-100", "\t") if row]
        y = np.array(["ABC".index(row[0]) for row in rows])
        variables = np.array([row[1:] for row in rows], dtype=float)
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        p = cross_val_predict(GaussianNB(), variables, y, cv=folds, method="predict_proba")
        found.append(((p.argmax(axis=1) == y).mean(), float(value("au_imcp", Scores(y, p)))))
    (accuracy_a, area_a), (_, area_b), (accuracy_c, area_c) = found
    assert accuracy_a < accuracy_c
    assert area_a > area_b + 0.02
    assert area_b > area_c + 0.04


@pytest.mark.parametrize("weighted", [False, True])
def test_bars_of_one_class_on_the_axis_of_all(weighted: bool) -> None:
    y, p = tied_problem(400, 3, 5)
    weights = np.random.default_rng(3).integers(0, 3, 400).astype(float) if weighted else None
    scores = Scores(y, p, weights)
    whole = imbalanced_performance(scores)
    assert whole.codes is not None
    assert whole.widths is not None
    assert np.isnan(whole.widths[[0, -1]]).all()
    assert whole.codes[[0, -1]].tolist() == [-1, -1]
    areas = []
    for code in range(3):
        own = imbalanced_performance(scores, code)
        places = whole.codes == code
        assert own.widths is not None
        np.testing.assert_array_equal(own.x, whole.x[places])
        np.testing.assert_array_equal(own.y, whole.y[places])
        assert own.widths.sum() == pytest.approx(1 / 3)
        # A third of the area of the class on its own.
        assert own.area == pytest.approx(float(value("mean_phi", scores)[code]) / 3, rel=1e-12)
        assert own.area is not None
        areas.append(own.area)
    assert sum(areas) == pytest.approx(whole.area, rel=1e-12)
    assert whole.references == ()
    heights = dict(whole.levels)
    assert heights == {"certainly_right_above": threshold_correct(), "certainly_wrong_below": threshold_incorrect(3)}
