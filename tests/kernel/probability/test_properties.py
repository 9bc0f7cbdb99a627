"""What the cards promise, for every probability metric: prevalence, ranges, reasons, weights, batches, order of the
input."""

import csv
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from app.domain.inputs.probabilities import decide
from app.kernel.metrics.card import Metric, Number, Orientation, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.engine import DIVISION_BY_ZERO, INFINITE, Explainer, evaluate_table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.complementary_order import Fold
from app.kernel.samples.scores import Scores
from tests.kernel.probability.problems import Codes, replicated, softmax_problem, tied_problem

METRICS = catalogue().of_probabilities.metrics
METRIC = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
PROBLEMS = {
    (classes, kind): make(120, classes, classes)
    for classes in (2, 3, 5)
    for kind, make in (("distinct", softmax_problem), ("tied", tied_problem))
}
# The curves of the authors' package are defined for plain samples only.
NO_WEIGHTS = {"au_mcp_trapezoid", "au_imcp_trapezoid"}
NOTHING_FOR_TWO_CLASSES = {"top_k_accuracy", "roc_auc_ovo_weighted"}
# Ties go to the class that comes first, which is another one after relabelling.
DECIDED_BY_INDEX = {
    "top_k_accuracy",
    "au_imcp_trapezoid",
    "expected_calibration_error",
    "adaptive_calibration_error",
    "maximum_calibration_error",
}


def compute(metric: Metric[Scores], y: Codes, p: Array, weights: Array | None = None) -> Array:
    """The value on arrays that nobody may write to."""
    y, p = y.copy(), p.copy()
    y.flags.writeable = p.flags.writeable = False
    with silently():
        return metric.compute(Scores(y, p, weights))


def times(classes: int) -> tuple[int, ...]:
    return (1, 7, 3, 2, 5)[:classes]


def test_cards_are_those_of_the_published_list() -> None:
    """The table beside this test names every metric of probabilities with its scope and how it takes prevalence."""
    with open("tests/data/metrics.csv", newline="") as file:  # noqa: PTH123
        rows = {row["key"]: row for row in csv.DictReader(file) if row["inputs"] == "probabilities"}
    assert set(rows) == {metric.key for metric in METRICS}
    for metric in METRICS:
        row = rows[metric.key]
        assert (metric.card.scope, metric.card.prevalence) == (row["scope"], row["prevalence"]), metric.key
        assert set(metric.card.aliases) == set(filter(None, row["aliases"].split(";"))), metric.key


@METRIC
def test_cards_say_what_a_reader_needs(metric: Metric[Scores]) -> None:
    card = metric.card
    assert card.name
    assert card.formula
    assert card.sentence.endswith(".")
    assert card.references
    assert card.undefined
    for parameter in card.parameters:
        assert isinstance(parameter, Number)
        assert parameter.description


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_insensitive_metrics_stay_when_a_class_is_replicated(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    classes, _ = problem
    if metric.card.prevalence.is_insensitive(classes):
        y, p = PROBLEMS[problem]
        moved = compute(metric, *replicated(y, p, times(classes)))
        np.testing.assert_allclose(moved, compute(metric, y, p), rtol=1e-12, atol=1e-12)


@METRIC
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_sensitive_metrics_move_somewhere(metric: Metric[Scores], classes: int) -> None:
    # The two most probable of two classes are both of them, and there is but one pair of two classes.
    if metric.card.prevalence.is_insensitive(classes) or (classes == 2 and metric.key in NOTHING_FOR_TWO_CLASSES):
        return
    gaps = []
    for kind in ("distinct", "tied"):
        y, p = PROBLEMS[classes, kind]
        gaps.append(np.abs(compute(metric, *replicated(y, p, times(classes))) - compute(metric, y, p)).max())
    if metric.key == "fraction_uncertain" and classes == 2:
        # For two classes 1/K is 1/2: nothing but that one value is uncertain, and only the grid has it.
        gaps = gaps[1:]
    assert max(gaps) > 1e-6


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_values_keep_their_range_and_reach_their_ideal(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    y, p = PROBLEMS[problem]
    found = compute(metric, y, p)
    low, high = metric.card.range
    assert low is None or (found >= low - 1e-12).all()
    assert high is None or (found <= high + 1e-12).all()
    perfect = compute(metric, y, np.eye(problem[0])[y])
    if metric.card.orientation is Orientation.HIGHER:
        assert (perfect >= found - 1e-12).all()
    else:
        assert (perfect <= found + 1e-12).all()
    assert metric.card.ideal is not None
    np.testing.assert_allclose(perfect, metric.card.ideal, atol=1e-12)


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_order_of_the_samples_is_nothing(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    y, p = PROBLEMS[problem]
    shuffled = np.random.default_rng(0).permutation(y.size)
    np.testing.assert_allclose(compute(metric, y[shuffled], p[shuffled]), compute(metric, y, p), rtol=1e-12, atol=1e-14)


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_relabelling_moves_values_with_the_classes(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    classes, kind = problem
    if metric.key in DECIDED_BY_INDEX and kind == "tied":
        return
    y, p = PROBLEMS[problem]
    order = np.roll(np.arange(classes), 1)
    found = compute(metric, np.argsort(order)[y], p[:, order])
    expected = compute(metric, y, p)
    if metric.card.scope is Scope.CLASS:
        expected = expected[order]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_weights_count_as_replication(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    """Also with weights of 0, which are samples that are not there."""
    if metric.key in NO_WEIGHTS:
        return
    y, p = PROBLEMS[problem]
    often = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = compute(metric, y, p, often.astype(float))
    plain = compute(metric, np.repeat(y, often), np.repeat(p, often, axis=0))
    np.testing.assert_allclose(weighted, plain, rtol=1e-11, atol=1e-14)


@METRIC
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_batch_of_weights_is_its_rows(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    y, p = PROBLEMS[problem]
    weights = np.random.default_rng(2).gamma(1.0, size=(2, 3, y.size))
    weights[1, 2] = np.random.default_rng(3).multinomial(y.size, np.full(y.size, 1 / y.size))
    batch = compute(metric, y, p, weights)
    assert batch.shape == (2, 3, *([problem[0]] if metric.card.scope is Scope.CLASS else []))
    for row in np.ndindex(2, 3):
        np.testing.assert_allclose(batch[row], compute(metric, y, p, weights[row]), rtol=1e-12, equal_nan=True)


@METRIC
@pytest.mark.parametrize("weighted", ["no", "one", "batch"])
@pytest.mark.parametrize("kind", ["distinct", "tied", "half", "saturated"])
def test_folding_changes_nothing(
    metric: Metric[Scores], weighted: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large binary problem is sorted once by its smaller probability, a small one column by column."""
    y, p = (tied_problem if kind == "tied" else softmax_problem)(600, 2, 8)
    if kind == "half":
        p[:40] = 0.5
    if kind == "saturated":
        p[:200] = np.array([1e-18, 1.0])
        p[200:300] = np.array([1.0, 1e-20])
        p[300:350] = np.array([1.0, 2e-20])
    rng = np.random.default_rng(0)
    weights = {"no": None, "one": rng.gamma(1.0, size=600), "batch": rng.poisson(1.0, (3, 600)).astype(float)}[weighted]
    monkeypatch.setattr(Fold, "minimum_size", 10**9)
    apart = compute(metric, y, p, weights)
    monkeypatch.setattr(Fold, "minimum_size", 2)
    assert Scores(y, p, weights).fold is not None
    np.testing.assert_allclose(compute(metric, y, p, weights), apart, rtol=1e-12, atol=1e-14)


def test_rows_that_are_not_complementary_are_not_folded() -> None:
    y, p = softmax_problem(5000, 2, 1)
    assert Scores(y, p).fold is not None
    p[17, 0] += 1e-9
    assert Scores(y, p).fold is None


def degenerate() -> Iterator[tuple[str, Scores]]:
    y, p = softmax_problem(30, 3, 4)
    two = softmax_problem(30, 2, 4)[1]
    y.flags.writeable = p.flags.writeable = two.flags.writeable = False
    yield "absent class", Scores(np.minimum(y, 1), p)
    yield "one class of three", Scores(np.zeros(30, dtype=int), p)
    yield "one class of two", Scores(np.ones(30, dtype=int), two)
    yield "one sample", Scores(y[:1], p[:1])
    yield "no weight at all", Scores(y, p, np.zeros(30))
    yield "a class without weight", Scores(y, p, (y != 1).astype(float))
    yield "constant probabilities", Scores(y, np.full((30, 3), 1 / 3))
    yield "constant binary", Scores(y % 2, np.full((30, 2), 0.5))
    yield "certain and right", Scores(y, np.eye(3)[y])
    yield "certain and wrong", Scores(y, np.eye(3)[(y + 1) % 3])
    yield "scores", Scores.of_scores(y % 2, np.linspace(-5.0, 40.0, 30))
    yield "constant scores", Scores.of_scores(y % 2, np.zeros(30))
    yield "scores of one class", Scores.of_scores(np.ones(30, dtype=int), np.linspace(-5.0, 40.0, 30))
    large = softmax_problem(5000, 2, 4)[1]
    yield "one class, folded", Scores(np.zeros(5000, dtype=int), large)
    yield "one other class, folded", Scores(np.ones(5000, dtype=int), large)
    yield "all alike, folded", Scores(np.arange(5000) % 2, np.full((5000, 2), 0.5))


@pytest.mark.parametrize(("name", "scores"), list(degenerate()), ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_missing_has_a_reason_and_nothing_else_is_missing(name: str, scores: Scores) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scope in Scope:
            metrics = catalogue().of_probabilities.of_scope(scope)
            values = evaluate_table(scores, metrics)
            explainer = Explainer(scores)
            missing = {(gap.metric.key, gap.class_index): gap for gap in explainer.gaps(metrics, values)}
            for gap in missing.values():
                assert gap.condition not in (DIVISION_BY_ZERO, INFINITE), (name, gap.metric.key)
            for metric in metrics:
                for condition in metric.card.undefined:
                    if condition.code == "infinite":
                        # Only without clipping.
                        continue
                    with silently():
                        mask = np.asarray(condition.holds(scores))
                    if condition.overall or scope is Scope.OVERALL:
                        hit = [None] if scope is Scope.OVERALL else list(range(scores.n_classes))
                        hit = hit if mask.any() else []
                    else:
                        hit = [int(code) for code in np.flatnonzero(mask)]
                    for code in hit:
                        assert (metric.key, code) in missing, (name, metric.key, condition.code)


def test_constant_scores_have_the_values_of_chance() -> None:
    scores = Scores(np.array([0, 1, 1, 0, 1]), np.full((5, 2), 0.5))
    by_name = {metric.key: metric.compute(scores) for metric in METRICS if metric.key != "au_imcp_trapezoid"}
    for key in ("roc_auc", "partial_roc_auc", "equal_error_rate"):
        np.testing.assert_allclose(by_name[key], 0.5)
    for key in ("ks_statistic", "roc_gini", "h_measure"):
        np.testing.assert_allclose(by_name[key], 0.0, atol=1e-15)
    np.testing.assert_allclose(by_name["average_precision"], [0.4, 0.6])
    assert by_name["roc_auc_ovo_macro"] == 0.5


@pytest.mark.parametrize(
    ("y", "p", "weights"),
    [
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], None),
        ([0, -1], [[0.5, 0.5], [0.5, 0.5]], None),
        ([0], [[0.5, 0.5], [0.5, 0.5]], None),
        ([], np.empty((0, 2)), None),
        ([0, 0], [[1.0], [1.0]], None),
        ([0, 0], [0.5, 0.5], None),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], [1.0]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(y: list[int], p: object, weights: object) -> None:
    with pytest.raises(ValueError, match=r"need|must"):
        Scores(y, p, weights)  # type: ignore[arg-type]


def test_shared_tops_are_counted_and_go_to_the_first_class() -> None:
    p = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]])
    scores = Scores([1, 1, 0, 2], p)
    assert scores.predicted.tolist() == [0, 1, 0, 0]
    codes, ties = decide(p)
    assert (codes.tolist(), ties) == (scores.predicted.tolist(), 3)
    assert (scores.ahead == 0).tolist() == [False, True, True, False]
    assert Scores([0, 1], [[0.5, 0.5], [0.5, 0.5]]).predicted.tolist() == [0, 0]
