"""What the cards of metrics of matrices claim beyond what holds of every metric."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import Inputs, Metric, Orientation, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each
from tests.kernel.closeness import CANCELLING, RELATIVE, assert_close, is_of_class, value_of
from tests.kernel.matrices import dense, matrices, sparse, with_regular_margins
from tests.kernel.test_properties import check_gaps

METRICS = catalogue().of_matrices.metrics
KEYS = [metric.key for metric in METRICS]
EACH = each("metric", METRICS, ids=KEYS)


def cases(classes: int, repeats: int = 4) -> Iterator[NDArray[np.int64]]:
    """The same random matrices for every metric: dense ones and ones with empty cells."""
    rng = np.random.default_rng(77 + classes)
    for _ in range(repeats):
        yield dense(rng, classes)
        yield sparse(rng, classes)


def scaled(counts: NDArray[Any], seed: int = 3) -> NDArray[Any]:
    """Whole classes replicated, each a different number of times."""
    factors = np.random.default_rng(seed).permutation(np.arange(2, 2 + counts.shape[0]))
    replicated: NDArray[Any] = counts * factors[:, None]
    return replicated


def balanced(counts: NDArray[Any]) -> NDArray[np.float64]:
    return at_equal_prevalence(counts.astype(np.float64))


def moves(metric: Metric[Table], before: NDArray[Any], after: NDArray[Any]) -> bool:
    """By more than rounding, somewhere."""
    one, two = value_of(metric, before), value_of(metric, after)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(one - two) > 1e-9 * np.abs(one) + 1e-12).any())


def stands(metric: Metric[Table], before: NDArray[Any], after: NDArray[Any], where: str) -> None:
    assert_close(metric, value_of(metric, after), value_of(metric, before), absolute=CANCELLING, where=where)


def is_constant(metric: Metric[Table], classes: int) -> bool:
    """Of two classes the UPM is one and the same number, so its dispersion is 0."""
    return metric.key == "gps_upm_sd" and classes == 2


# Prevalence


@EACH
@each("classes", [2, 3])
def test_equal_prevalence(metric: Metric[Table], classes: int) -> None:
    """Computed on rows of equal weight every metric is insensitive, and differs from the plain value only if it was
    sensitive.
    """
    pairs = [(counts, scaled(counts)) for counts in cases(classes)]
    if metric.card.degree == 0:
        for before, after in pairs:
            stands(metric, balanced(before), balanced(after), f"K={classes}")
    differs = any(moves(metric, before, balanced(before)) for before, _ in pairs)
    # The number of samples is kept, and with it the mean count per class.
    stable = metric.card.prevalence.is_insensitive(classes) or metric.key == "global_performance_index"
    assert differs is not (stable or is_constant(metric, classes))


# Symmetry, order and size


# With their default parameters these are symmetric.
UNEVEN: dict[str, dict[str, Any]] = {
    "f_beta": {"beta": 2.0},
    "f_beta_negative": {"beta": 2.0},
    "macro_f_beta": {"beta": 2.0},
    "tversky_index": {"alpha": 0.2},
}


@EACH
def test_symmetry(metric: Metric[Table]) -> None:
    """Exchanging data and predictions."""
    pairs = [(counts, counts.T) for classes in (2, 3, 5) for counts in cases(classes)]
    if metric.card.symmetric:
        for before, after in pairs:
            stands(metric, before, after, "transposed")
    else:
        uneven = UNEVEN.get(metric.key, {})
        if metric.key == "expected_cost":
            # Of one kind of mistake alone.
            pairs, uneven = [pair for pair in pairs if len(pair[0]) == 2], {"costs": ((0.0, 1.0), (0.0, 0.0))}
        assert any(
            (value_of(metric, before, **uneven) != value_of(metric, after, **uneven)).any() for before, after in pairs
        )


@EACH
@each("factor", [0.7, 1e-3])
def test_weights(metric: Metric[Table], factor: float) -> None:
    """All counts multiplied by what leaves no counts: the value stands or is multiplied too, unless it
    needs numbers of samples.
    """
    pairs = [(counts, factor * counts) for classes in (2, 3) for counts in cases(classes)]
    if metric.card.degree is None:
        assert metric.card.needs_counts
        assert any(moves(metric, before, after) for before, after in pairs)
        assert any(moves(metric, before, after / factor**2) for before, after in pairs)
        return
    for before, after in pairs:
        got, want = value_of(metric, after), factor**metric.card.degree * value_of(metric, before)
        assert_close(metric, got, want, relative=10 * RELATIVE, absolute=10 * CANCELLING, where=f"times {factor}")


def bare() -> Iterator[NDArray[np.int64]]:
    """Matrices of which some sums of cells are 0: one class predicted, or actual, or never right, or a few in use."""
    rng = np.random.default_rng(8)
    for classes in (2, 3, 5, 7):
        for _ in range(2):
            one = np.zeros((classes, classes), np.int64)
            one[:, 1] = rng.integers(1, 30, classes)
            yield from (one, one.T.copy())
    yield np.array([[0, 3], [1, 2]])
    yield np.array([[0, 0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 8], [8, 0, 0, 2]])
    yield np.array([[0, 9, 1], [7, 0, 3], [1, 1, 0]])


@EACH
def test_what_grows_tells_how_many_samples_there_are(metric: Metric[Table]) -> None:
    """Of very many samples four times as many have another value, or all classifiers the same one."""
    card, (counts, other) = metric.card, islice(cases(3), 0, 3, 2)
    few, many, of_other = (value_of(metric, one) for one in (1e7 * counts, 4e7 * counts, 4e7 * other))
    grows = not np.allclose(few, many, rtol=1e-3, atol=0.0) or (card.needs_counts and np.allclose(many, of_other))
    if not card.inference.about_sample:
        assert (card.grows or card.degree == 1) is grows


@EACH
def test_weights_that_leave_nothing_leave_exactly_that(metric: Metric[Table]) -> None:
    """What has no value of counts has none of the same in weights, whose sums are rounded."""
    if metric.card.degree is not None:
        for counts in bare():
            for factor in (0.1, 0.3, 0.7):
                got, want = value_of(metric, factor * counts), factor**metric.card.degree * value_of(metric, counts)
                assert_close(
                    metric, got, want, relative=10 * RELATIVE, absolute=1e-12, where=f"{counts} times {factor}"
                )


@EACH
def test_of_many_matrices_the_same_is_nothing(metric: Metric[Table]) -> None:
    """Sums of a batch are made in another order than those of one matrix."""
    if metric.card.degree is not None:
        weights = np.zeros((40, 5, 5))
        weights[..., 0] = np.random.default_rng(2).gamma(1.0, 3.0, (40, 5))
        weights[::2, 0] = 0.0
        want = np.stack([value_of(metric, one) for one in weights])
        assert_close(metric, value_of(metric, weights), want, absolute=1e-12, where="one predicted class")


@EACH
@each("classes", [2, 3])
def test_only_what_the_number_of_samples_does_not_move_has_a_twin_at_balanced_prevalence(
    metric: Metric[Table], classes: int
) -> None:
    """Rows scaled to equal totals are no counts: two positives among 1,000 would make a p-value of 5e-48."""
    grows = any(moves(metric, counts, 3 * counts) for counts in cases(classes))
    assert metric.card.has_twin(classes) == (not grows and not metric.card.prevalence.is_insensitive(classes))
    assert not (metric.card.inference.about_sample and metric.card.has_twin(classes))


# Chance


# These correct for chance with a distribution of classes of their own, which is that of the matrix only if both
# margins are alike (Scott, Krippendorff) or even (Bennett, Gwet); Krippendorff's keep 1/(2n) as their small-sample
# term. The adjusted Rand index is 0 on average over the tables with these margins.
OWN_CHANCE_MODEL = {"adjusted_rand", "scott_pi", "bennett_s", "gwet_ac1", "krippendorff_alpha", "weighted_alpha"}
RATIOS = {"lift", "likelihood_ratio_positive", "likelihood_ratio_negative", "diagnostic_odds_ratio"}


@EACH
@each("classes", [2, 3, 4])
def test_chance(metric: Metric[Table], classes: int) -> None:
    """Chance-corrected: 0 (ratios: 1) when predictions are independent of the data. Others are not constantly so."""
    rng = np.random.default_rng(classes)
    independent = [np.outer(rng.integers(1, 30, classes), rng.integers(1, 30, classes)) for _ in range(5)]
    neutral = 1.0 if metric.key in RATIOS else 0.0
    even = np.full((classes, classes), 10**6)
    if metric.card.chance_corrected:
        assert value_of(metric, even) == pytest.approx(neutral, abs=1e-6)
        if metric.key not in OWN_CHANCE_MODEL:
            for counts in independent:
                assert value_of(metric, counts) == pytest.approx(neutral, abs=1e-12)
    elif metric.card.orientation is not Orientation.DESCRIPTIVE and classes > 2:
        values = np.concatenate([np.ravel(value_of(metric, counts)) for counts in independent])
        assert not np.allclose(values, neutral, atol=1e-12)


# Batches


@EACH
@each("classes", [2, 3, 5])
def test_company_changes_nothing(metric: Metric[Table], classes: int) -> None:
    """With one more axis in front a matrix has the same value to the bit, alone and in a batch."""
    batch = np.stack([counts for name, counts in matrices().items() if name.split("-")[1] == str(classes)])
    together = value_of(metric, batch[None])[0]
    alone = np.stack([value_of(metric, counts[None, None])[0, 0] for counts in batch])
    assert together.tobytes() == alone.tobytes()


# Missing values


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 4).flatmap(
        lambda classes: hnp.arrays(
            np.int64, (classes, classes), elements=st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 500))
        )
    )
)
def test_missing_values_have_a_reason_whatever_the_matrix(counts: NDArray[np.int64]) -> None:
    check_gaps(Inputs.MATRIX, counts)


def test_regular_matrices_miss_only_what_is_infinite_or_below_chance() -> None:
    overall = [metric for metric in METRICS if not is_of_class(metric)]
    for counts in with_regular_margins().values():
        values = dict(zip([metric.key for metric in overall], evaluate_table(Table(counts), overall), strict=True))
        missing = {key for key, value in values.items() if np.isnan(value)}
        assert missing == ({"aickin_alpha"} if values["cohen_kappa"] < 0 else set())
