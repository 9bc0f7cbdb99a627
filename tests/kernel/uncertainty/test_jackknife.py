"""Influences by small changes of weights, beside closed forms, samples left out, and resamples."""

from collections.abc import Callable

import numpy as np
import pytest

from app.domain.expressions.expressions import parse
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject, compute
from app.kernel.metrics.families.label_sets import samples_jaccard
from app.kernel.metrics.families.proper_scores import balanced_brier_score
from app.kernel.numerics.arrays import Array
from app.kernel.samples.contingency import Contingency
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import Grouping, variance_freedom
from app.kernel.uncertainty.influence import Influences
from app.kernel.uncertainty.jackknife import blocks_of, unit_influences
from app.kernel.uncertainty.resampling import values_of
from app.kernel.uncertainty.units import CellUnits, LabelUnits, Run, Units


def make(size: int, classes: int, seed: int, truth: Codes | None = None) -> Run:
    random = np.random.default_rng(seed)
    y = np.arange(size) % classes if truth is None else np.asarray(truth, dtype=np.intp)
    mass = np.exp(np.eye(classes)[y] + random.normal(size=(len(y), classes)))
    probabilities = mass / mass.sum(axis=1, keepdims=True)
    return Run(Scores(y, probabilities), probabilities.argmax(axis=1))


def functional(text: str, classes: int) -> Callable[[Subject], Array]:
    expression = parse(text, [str(code) for code in range(classes)], None, inputs=frozenset(Inputs))
    return lambda subject: compute(expression, subject)


def influence(run: Run, text: str, weights: Array | None = None) -> Array:
    """Of every sample."""
    whole = np.arange(run.n_units), run.n_units
    found: Array = unit_influences(run, [functional(text, run.n_strata)], whole, weights)[0][0]
    return found


def test_a_mean_has_the_influence_of_its_closed_form() -> None:
    run = make(60, 2, 1)
    form = Influences(run.scores).of(balanced_brier_score)
    assert form is not None
    np.testing.assert_allclose(influence(run, "balanced_brier_score"), form.influence, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("n_blocks", [90, 30])
def test_samples_with_the_same_labels_move_as_each_would(n_blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    members, predicted = random.random((2, 90, 3)) < 0.4
    run, blocks = LabelUnits(members, predicted), (np.arange(90) % n_blocks, n_blocks)
    weights = random.random(90)
    assert run.kinds[0].n_units < 90
    functionals = [
        lambda one: one.parts[Inputs.MATRIX].tp / one.parts[Inputs.MATRIX].actual,
        lambda one: samples_jaccard.compute(one.parts[Inputs.LABELS]),
    ]
    found = unit_influences(run, functionals, blocks, weights)
    monkeypatch.setattr(LabelUnits, "kinds", Units.kinds)
    for own, expected in zip(found, unit_influences(run, functionals, blocks, weights), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", ["average_precision@1", "mean(h_mean, average_precision@1)", "partial_roc_auc@1"])
def test_variance_is_that_of_resamples_within_the_classes(text: str) -> None:
    run, random = make(200, 2, 4), generator(7)
    places = [np.flatnonzero(run.strata == code) for code in range(2)]
    drawn = []
    for _ in range(600):
        rows = np.concatenate([random.choice(own, own.size) for own in places])
        drawn.append(values_of(run.part(rows), [functional(text, 2)])[0][0])
    found = influence(run, text)
    assert float(found @ found) ** 0.5 == pytest.approx(np.std(drawn), rel=0.1)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)


def test_order_of_samples_and_classes_changes_nothing() -> None:
    run, order = make(90, 3, 5), generator(1).permutation(90)
    plain, moved = influence(run, "macro_average_precision"), influence(run.part(order), "macro_average_precision")
    np.testing.assert_allclose(moved, plain[order], atol=1e-10)


def test_equal_weights_change_nothing_and_a_weight_of_two_counts_twice() -> None:
    run = make(80, 2, 6)
    text = "average_precision@1"
    np.testing.assert_allclose(influence(run, text, np.full(80, 3.0)), influence(run, text), atol=1e-9)
    twice = np.ones(80)
    twice[:4] = 2.0
    weighted, repeated = influence(run, text, twice), influence(run.part(np.r_[np.arange(80), np.arange(4)]), text)
    together = repeated[:80].copy()
    together[:4] += repeated[80:]
    # Up to how few samples are allowed for.
    np.testing.assert_allclose(weighted, together, rtol=0.02, atol=1e-9)


@pytest.mark.slow
def test_blocks_have_the_variance_of_single_samples() -> None:
    run = make(3000, 2, 8)
    found = blocks_of(run, 2, seed=1)
    assert found is not None
    codes, count = found
    assert count <= 1000
    assert all(np.unique(run.strata[codes == block]).size == 1 for block in range(0, count, 50))
    blocks = unit_influences(run, [functional("average_precision@1", 2)], found)[0][0]
    single = influence(run, "average_precision@1")
    assert float(blocks @ blocks) == pytest.approx(float(single @ single), rel=0.15)


def test_whole_groups_are_blocks() -> None:
    run = make(300, 2, 9)
    grouping = Grouping.of(np.arange(300) // 5)
    found = blocks_of(run, 2, 1, grouping)
    assert found is not None
    assert found[1] == 60
    np.testing.assert_array_equal(found[0], grouping.codes)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_left_out(weighted: bool) -> None:
    random, codes = np.random.default_rng(4), np.repeat(np.arange(8), 10)
    # The third label is in three groups alone.
    members, predicted = random.random((2, 80, 3)) < [0.5, 0.4, 0.6]
    members[codes > 2, 2] = False
    weights = random.gamma(2.0, size=80) if weighted else None
    run, macro = LabelUnits(members, predicted), functional("mean(recall@*)", 3)
    ((found,),) = unit_influences(run, [macro], (codes, 8), weights, centred=False)
    each = np.ones(80) if weights is None else weights
    whole, *left = (float(macro(run.subject(each * (codes != at)))) for at in range(-1, 8))
    assert 8 / 7 * float(found @ found) == pytest.approx(7 / 8 * sum((one - whole) ** 2 for one in left), rel=1e-9)


def test_what_needs_a_group_has_no_influences() -> None:
    members = np.arange(30).reshape(30, 1) < [3, 20]
    run, codes = LabelUnits(members, members), np.arange(30) // 3
    (found,) = unit_influences(run, [functional("mean(recall@*)", 2)], (codes, 10), np.full(30, 0.1), centred=False)
    assert np.isnan(found).any()


def test_cells_have_the_variance_of_their_samples() -> None:
    counts = np.array([[30.0, 5.0, 2.0], [4.0, 20.0, 9.0]])
    table = Contingency.of_table(counts)
    cells = CellUnits(table.counts, table.places)
    rand = functional("rand_index", 2)
    whole = np.arange(6), 6
    found = unit_influences(cells, [rand], whole)[0][0]
    random, drawn = generator(2), []
    for _ in range(2000):
        tables = random.multinomial(70, counts.ravel() / 70).astype(float)
        drawn.append(float(rand(cells.subject(tables))))
    assert float(found @ found) ** 0.5 == pytest.approx(np.std(drawn), rel=0.08)


def test_few_samples_that_carry_the_variance_leave_few_degrees_of_freedom() -> None:
    random = generator(4)
    assert variance_freedom(random.normal(size=1000)) == pytest.approx(1000, rel=0.2)
    one = np.zeros(100)
    one[:2] = 1.0, -1.0
    assert variance_freedom(one) < 5
    assert np.isinf(variance_freedom(np.zeros(5)))


def test_weights_bring_classes_to_shares() -> None:
    truth = np.array([0] * 30 + [1] * 10)
    run, shares = make(0, 2, 3, truth), np.array([0.5, 0.5])
    weights = run.at_shares(None, shares)
    assert np.bincount(run.scores.y, weights).tolist() == [20, 20]
    repeated = run.part(np.concatenate([np.arange(30), np.repeat(np.arange(30, 40), 3)]))
    text = functional("mean(h_mean, average_precision@1)", 2)
    assert values_of(run, [text], weights)[0][0] == pytest.approx(values_of(repeated, [text])[0][0])
