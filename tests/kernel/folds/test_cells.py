"""Cells of folded samples drawn again, beside the samples themselves drawn again."""

from functools import partial

import numpy as np
import pytest

from app.kernel.folds.cells import (
    AT_CUTS,
    IN_BINS,
    IN_BINS_OF_TOP_LABEL,
    IN_PARTS_OF_TOP_LABEL,
    NEAR_MEDIAN,
    Draw,
    simulated_by_chance,
)
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.metrics import draw_of, folded_metrics
from app.kernel.folds.scores import OrderFold, ScoresFold
from app.kernel.metrics.card import Inputs, Metric, Scope
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.metrics.families import calibration, imcp, score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import expected_by_chance, expected_by_chance_of_classes, largest_by_chance
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import ClassCounts
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, resampled
from app.kernel.uncertainty.units import Run
from tests.kernel.folds.lines import codes_of
from tests.kernel.folds.problems import Problem, drawn, of_one_column

DRAWS = 1000
OF_CURVES = [
    score_ranking.partial_roc_auc,
    score_ranking.average_precision,
    score_ranking.pr_auc_trapezoid,
    score_ranking.equal_error_rate,
    score_ranking.ks_statistic,
    score_ranking.h_measure,
]
OF_TOP_LABEL = [
    calibration.expected_calibration_error,
    calibration.maximum_calibration_error,
    calibration.l2_calibration_error,
]
OF_BOTH = [
    score_ranking.macro_average_precision,
    score_ranking.weighted_average_precision,
    calibration.classwise_calibration_error,
]


def folded(problem: Problem) -> FoldedSamples:
    return ScoresFold(problem.classes, 1 << 22, None).add(problem.y, problem.given).finish()


def test_few_samples_are_cells_of_their_own() -> None:
    """Then a resample of the samples and of the cells has the same values, to the last digits."""
    problem = of_one_column(drawn(120, 2, 21))
    cells = AT_CUTS.cells(folded(problem), 1)
    weights = np.random.default_rng(1).multinomial(120, np.full(120, 1 / 120), 5).astype(float)
    samples = Scores(problem.y, problem.rows, weights)
    # Cells stand in the order of the scores, others in front of members.
    falling = np.argsort(-problem.given)
    places = falling[np.argsort(problem.y[falling], kind="stable")]
    assert cells.counts.tolist() == [1.0] * 120
    found = cells.subject(weights[:, places]).scores
    with silently():
        for metric in (*OF_CURVES, *OF_BOTH[:2]):
            np.testing.assert_allclose(metric.compute(found), metric.compute(samples), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [30, 31, 4000])
def test_bins_keep_what_their_scores_add_up_to(n: int) -> None:
    problem = of_one_column(drawn(n, 2, n))
    cells = IN_BINS.cells(folded(problem), 1)
    one = cells.scores.probabilities[:, 1]
    for code in (0, 1):
        own, inside = one[cells.scores.y == code], problem.rows[problem.y == code, 1]
        for power in range(3):
            expected = np.histogram(inside, 15, (0, 1), weights=inside**power)[0].sum()
            assert cells.counts[cells.scores.y == code] @ own**power == pytest.approx(expected, rel=1e-9)
    whole = Scores(problem.y, problem.rows)
    np.testing.assert_allclose(
        calibration.class_calibration_error.compute(cells.subject().scores),
        calibration.class_calibration_error.compute(whole),
        rtol=1e-9,
    )


def measured(metric: Metric[Scores], of: int | None) -> Resampled:
    return resampled(Measure(metric, metric.card.defaults, of), metric.card.range)


def spreads(
    problem: Problem, draw: Draw, metrics: list[Metric[Scores]], code: int | None, counts: ClassCounts
) -> tuple[Array, Array]:
    """Standard deviations, and limits, of resampled cells and of resampled samples."""
    scores, whole = folded(problem), Scores(problem.y, problem.rows)
    at = draw.at(problem.classes, code)
    assert at is not None
    cells, reads = draw.cells(scores, at[0]), [measured(one, code) for one in metrics]
    subject = Subject({Inputs.PROBABILITIES: scores})
    known = [np.atleast_1d(read.values(subject)) for read in reads]
    own = [measured(one, at[1]) for one in metrics]
    made, of_all = (Plan(DRAWS, n, n) for n in (cells.n_units, problem.y.size))
    found = bootstrap_samples(cells, own, seed=1, made=made, class_counts=counts, known=known)
    expected = bootstrap_samples(Run(whole, whole.predicted), reads, seed=2, made=of_all, class_counts=counts)
    sides = [[(one.deviation[0], one.low[0], one.high[0]) for one in side] for side in (found, expected)]
    return np.array(sides[0]), np.array(sides[1])


@pytest.mark.slow
@pytest.mark.parametrize("counts", [ClassCounts.FIXED, ClassCounts.RANDOM])
@pytest.mark.parametrize(
    ("draw", "metrics", "code", "classes"),
    [
        (AT_CUTS, OF_CURVES, 1, 2),
        (AT_CUTS, OF_CURVES, 2, 3),
        (AT_CUTS, OF_BOTH[:2], None, 2),
        (NEAR_MEDIAN, [imcp.median_phi], 0, 2),
        (NEAR_MEDIAN, [imcp.median_phi], 2, 3),
        (IN_BINS, OF_BOTH[2:], None, 2),
        (IN_BINS, [calibration.class_calibration_error], 0, 2),
        (IN_BINS, [calibration.class_calibration_error], 1, 3),
        (IN_BINS_OF_TOP_LABEL, OF_TOP_LABEL, None, 2),
        (IN_BINS_OF_TOP_LABEL, OF_TOP_LABEL, None, 3),
        (IN_PARTS_OF_TOP_LABEL, [calibration.adaptive_calibration_error], None, 2),
        (IN_PARTS_OF_TOP_LABEL, [calibration.adaptive_calibration_error], None, 3),
    ],
)
def test_cells_vary_as_the_samples_do(
    draw: Draw, metrics: list[Metric[Scores]], code: int | None, classes: int, counts: ClassCounts
) -> None:
    found, expected = spreads(drawn(3000, classes, 22), draw, metrics, code, counts)
    # A standard deviation of 1000 draws has an error of 2.2 %.
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=0.1)
    # Limits have one of 9 % of it, and mixed signs make no difference.
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], atol=0.45 * expected[:, 0].max())


def test_orders_of_any_scores_are_drawn_too() -> None:
    problem = drawn(2000, 2, 23)
    with OrderFold(2, 1 << 20, None) as fold:
        cells = AT_CUTS.cells(fold.add(problem.y, np.log(problem.rows[:, 1])).finish(), 1)
    expected = AT_CUTS.cells(folded(problem), 1)
    np.testing.assert_array_equal(cells.counts, expected.counts)


def test_of_more_than_two_classes_averages_have_no_joint_draw() -> None:
    for one in folded_metrics(3):
        draw = draw_of(one.metric)
        if draw is not None:
            joint = [draw.at(3, code) is not None for code in codes_of(one, 3)]
            of_top = draw in (IN_BINS_OF_TOP_LABEL, IN_PARTS_OF_TOP_LABEL)
            assert all(joint) is (one.metric.card.scope is Scope.CLASS or of_top)


@pytest.mark.parametrize("n", [400, 20_000])
@pytest.mark.parametrize(
    ("metric", "draw", "of_samples"),
    [
        (calibration.expected_calibration_error, IN_BINS_OF_TOP_LABEL, expected_by_chance),
        (calibration.maximum_calibration_error, IN_BINS_OF_TOP_LABEL, largest_by_chance),
        (
            calibration.adaptive_calibration_error,
            IN_PARTS_OF_TOP_LABEL,
            partial(expected_by_chance, adaptive=True),
        ),
        (calibration.classwise_calibration_error, IN_BINS, expected_by_chance_of_classes),
    ],
)
def test_chance_is_that_of_the_samples(n: int, metric: Metric[Scores], draw: Draw, of_samples: object) -> None:
    problem = of_one_column(drawn(n, 2, 24))
    assert callable(of_samples)
    expected = of_samples(Scores(problem.y, problem.rows), draws=DRAWS, seed=1)
    found = simulated_by_chance(metric, expected.observed, draw.cells(folded(problem), 1), DRAWS, 1)
    assert (found.mean, found.upper) == pytest.approx((expected.mean, expected.upper), rel=0.08)
    assert found.p_value == pytest.approx(expected.p_value, abs=0.06)


def test_cells_of_cuts_have_no_chance() -> None:
    cells = AT_CUTS.cells(folded(drawn(50, 2, 25)), 1)
    with pytest.raises(TypeError, match="bins"):
        simulated_by_chance(calibration.expected_calibration_error, 0.1, cells, 10, 1)
