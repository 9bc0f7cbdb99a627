"""Rules that keep to a constraint in the population: exactly for rates, and never too often broken for the rest."""

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from app.domain.expressions.expressions import parse
from app.kernel.decide.rules import Constraint, NoFeasibleRule, Placed, constraint_probabilities, evaluate
from app.kernel.decide.thresholds import cut_matrices, guaranteed
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import compute
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from tests.kernel.probability.searching import by_threshold

APART = 1.5
LABELS = ("0", "1")


def constraint(text: str, minimum: float | None = None, maximum: float | None = None) -> Constraint:
    return Constraint(Placed(parse(text, LABELS, 1)), minimum, maximum)


def sample(size: int, share: float, random: np.random.Generator) -> Scores:
    y = (random.random(size) < share).astype(int)
    return Scores.of_scores(y, random.normal(size=size) + APART * y)


def population(threshold: float, share: float) -> Table:
    """Of scores that are normal in both classes."""
    recalls = norm.cdf(threshold), norm.sf(threshold - APART)
    return Table(
        np.array(
            [
                [(1 - share) * recalls[0], (1 - share) * (1 - recalls[0])],
                [share * (1 - recalls[1]), share * recalls[1]],
            ]
        )
    )


def cuts_of(scores: Scores) -> Array:
    return cut_matrices(scores, 1).counts


@pytest.mark.parametrize(
    ("text", "minimum", "maximum"),
    [("specificity", 0.9, None), ("fpr", None, 0.1), ("recall@0", 0.9, None)],
)
def test_a_rate_needs_the_rank_of_neyman_and_pearson(text: str, minimum: float | None, maximum: float | None) -> None:
    """The fewest true negatives k with P(Bin(n, 0.9) >= k) <= 0.05, under each of its names."""
    scores = sample(120, 0.4, np.random.default_rng(1))
    counts = cuts_of(scores)
    negatives = int(counts[0, 0].sum())
    rank = next(k for k in range(negatives + 1) if binom.sf(k - 1, negatives, 0.9) <= 0.05)
    allowed, (needed,) = guaranteed(counts, [constraint(text, minimum, maximum)], 0.05, 0)
    np.testing.assert_array_equal(allowed, counts[:, 0, 0] >= rank)
    limit = needed.minimum if needed.maximum is None else 1.0 - needed.maximum
    assert limit == pytest.approx(rank / negatives)


def test_recalls_are_taken_from_the_other_end() -> None:
    scores = sample(200, 0.5, np.random.default_rng(2))
    counts = cuts_of(scores)
    allowed, _ = guaranteed(counts, [constraint("recall", 0.8)], 0.1, 0)
    positives = counts[0, 1].sum()
    np.testing.assert_array_equal(allowed, binom.sf(counts[:, 1, 1] - 1, positives, 0.8) <= 0.1)
    # Two constraints share the error, and both must be kept.
    both, _ = guaranteed(counts, [constraint("recall", 0.8), constraint("specificity", 0.2)], 0.1, 0)
    half = binom.sf(counts[:, 1, 1] - 1, positives, 0.8) <= 0.05
    assert not (both & ~half).any()


def test_expressions_are_tested_as_rates_are() -> None:
    """The mean of one recall is that recall: the simulated test is the exact binomial one."""
    counts = cuts_of(sample(150, 0.5, np.random.default_rng(3)))
    allowed, _ = guaranteed(counts, [constraint("mean(specificity, specificity)", 0.6)], 0.05, 0)
    negatives = counts[0, 0].sum()
    exact = binom.sf(counts[:, 0, 0] - 1, negatives, 0.6)
    # Three starts with two sequences each share the error.
    assert (exact[allowed] <= 1.3 * 0.05 / 6).all()
    assert allowed.sum() >= 0.9 * (exact <= 0.7 * 0.05 / 6).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "least", "share", "size"),
    [
        ("specificity", 0.9, 0.5, 80),
        ("specificity", 0.9, 0.5, 300),
        ("precision", 0.5, 0.2, 400),
        ("mcc", 0.4, 0.5, 200),
    ],
)
def test_the_population_keeps_what_was_guaranteed(text: str, least: float, share: float, size: int) -> None:
    random, one, kept, found = np.random.default_rng(7), constraint(text, least), 0, 0
    for seed in range(120):
        try:
            rule = by_threshold(
                sample(size, share, random),
                parse("f1", LABELS, 1),
                constraints=[one],
                guarantee=0.9,
                resamples=5,
                seed=seed,
            )
        except NoFeasibleRule:
            continue
        found += 1
        kept += bool(one.keeps(compute(one.of.expression, population(rule.threshold, share))))
    assert found > 20
    assert found - kept <= binom.ppf(0.99, found, 0.1)


def test_too_few_samples_guarantee_nothing() -> None:
    """0.9^28 is more than 5 %: with 28 negatives even none wrong does not show a specificity of 0.9."""
    few = Scores.of_scores(np.repeat([0, 1], [28, 20]), np.arange(48.0))
    with pytest.raises(NoFeasibleRule, match="too few samples"):
        guaranteed(cuts_of(few), [constraint("specificity", 0.9)], 0.05, 0)
    enough = Scores.of_scores(np.repeat([0, 1], [29, 20]), np.arange(49.0))
    assert guaranteed(cuts_of(enough), [constraint("specificity", 0.9)], 0.05, 0)[0].any()
    # What always holds is no condition.
    assert guaranteed(cuts_of(few), [constraint("specificity", 0.0)], 0.05, 0)[0].all()
    # A cut at which it has no value does not meet it, and says nothing of what has to hold on the data.
    for text, least in (("precision", 0.0), ("mcc", -0.5)):
        allowed, (needed,) = guaranteed(cuts_of(enough), [constraint(text, least)], 0.05, 0)
        assert not allowed[0]
        assert allowed[15]
        assert needed.minimum is not None
        assert needed.minimum >= least
    crossed = Scores.of_scores(np.tile([0, 1], 200), np.arange(400.0))
    with pytest.raises(NoFeasibleRule, match="all of the constraints"):
        guaranteed(cuts_of(crossed), [constraint("recall", 0.8), constraint("specificity", 0.8)], 0.1, 0)


def test_chances_are_those_of_the_posterior_less_the_luck() -> None:
    counts = np.array([[90.0, 10.0], [8.0, 42.0]])
    limits = [constraint("specificity", 0.85), constraint("recall", 0.8)]
    plain = constraint_probabilities(counts, limits, np.zeros(2), 1)
    first, second = (one for one in plain[0] if one is not None)
    assert first == pytest.approx(beta.sf(0.85, 90, 10), abs=0.03)
    assert second == pytest.approx(beta.sf(0.8, 42, 8), abs=0.03)
    assert plain[1] == pytest.approx(first * second, abs=0.03)
    lucky = constraint_probabilities(counts, limits, np.array([0.03, 0.0]), 1)
    assert lucky[0][0] == pytest.approx(beta.sf(0.88, 90, 10), abs=0.03)
    assert lucky[0][1] == second
    # A value that does not exist keeps to nothing.
    _, empty = constraint_probabilities(
        np.array([[100.0, 0.0], [50.0, 0.0]]), [constraint("precision", 0.1)], np.zeros(1), 1
    )
    assert empty is not None
    assert 0.0 <= empty < 0.5


@pytest.mark.slow
def test_stated_chances_are_right_on_average() -> None:
    """Specificity of at least 0.9 by choice: kept in the population in about half of the cases, and said so."""
    random, one = np.random.default_rng(11), constraint("specificity", 0.9)
    stated, kept = [], []
    for seed in range(150):
        rule = by_threshold(
            sample(80, 0.5, random), parse("balanced_accuracy", LABELS, 1), constraints=[one], resamples=30, seed=seed
        )
        assert rule.again is not None
        _, chance = constraint_probabilities(rule.counts, [one], rule.again.optimism, seed)
        assert chance is not None
        stated.append(chance)
        kept.append(bool(one.keeps(compute(one.of.expression, population(rule.threshold, 0.5)))))
    assert float(np.mean(kept)) < 0.7
    assert float(np.mean(stated)) == pytest.approx(float(np.mean(kept)), abs=0.1)


def test_slack_and_limits() -> None:
    one = constraint("recall", 0.3, 0.8)
    np.testing.assert_allclose(one.slack(np.array([0.2, 0.5, 0.9])), [-0.1, 0.2, -0.1])
    np.testing.assert_array_equal(one.keeps(np.array([0.2, 0.3, 0.8, np.nan])), [False, True, True, False])
    counts = cuts_of(sample(60, 0.5, np.random.default_rng(4)))
    assert evaluate(one.of.expression, counts).shape == (len(counts),)
