"""Metrics of streamed probabilities, their sampling errors and limits, beside those of the samples in memory."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from app.kernel.metrics.card import Explainer, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.calibration import calibration_intercept, calibration_slope
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import cells_of_groups
from app.kernel.streamed.metrics import linearised, streamed_values
from app.kernel.streamed.rows import NotStreamed
from app.kernel.streamed.scores import StreamedScores
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import Influences, Linearisation, by_groups, limits
from app.outbound import batches
from app.services.ports import OpenEngine
from tests.kernel.streamed.problems import PROBLEMS, Problem, drawn, streamed

LINES = {calibration_intercept.key, calibration_slope.key}
METRICS = {metric.key: metric for metric in catalogue().of_probabilities.metrics}
# In an engine all are columns of float64.
NAMES = [name for name in PROBLEMS if "float32" not in name and name != "one column"]
WEIGHTED = ["two columns", "one column tied", "one class", "extreme", "at the limits of bins", "three classes tied"]
EACH = pytest.mark.parametrize(
    ("problem", "weighted"),
    [*((PROBLEMS[name], False) for name in NAMES), *((PROBLEMS[name], True) for name in WEIGHTED)],
    ids=[*NAMES, *(f"{name}, weighted" for name in WEIGHTED)],
)


def weights_of(problem: Problem, *, weighted: bool) -> Array | None:
    """Weights, some of which are 0."""
    if not weighted:
        return None
    random = np.random.default_rng(3)
    return np.asarray(random.exponential(size=problem.y.size) * (random.random(problem.y.size) > 0.1) + 0.0)


def check_values(found: StreamedScores, whole: Scores) -> None:
    values = streamed_values(found, METRICS)
    assert len(values) > 37 + (whole.n_classes == 2)
    for key, own in values.items():
        with silently():
            expected = METRICS[key].compute(whole)
        # Lines are those where steps come to an end.
        np.testing.assert_allclose(own, expected, rtol=1e-9 if key in LINES else 1e-12, atol=1e-11, err_msg=key)


def lines_of(found: StreamedScores, own: Influences) -> Iterator[tuple[str, Linearisation, Linearisation]]:
    """Streamed and in memory, of all that has a closed form."""
    for key in streamed_values(found, METRICS):
        metric = METRICS[key]
        for code in range(found.n_classes) if metric.card.scope is Scope.CLASS else [None]:
            first, second = linearised(found, metric, code), own.of(metric, code)
            if first is not None and second is not None and np.isfinite(second.value):
                yield f"{key}@{code}", first, second


@EACH
def test_values_and_limits_are_those_of_the_samples(engine: OpenEngine, problem: Problem, weighted: bool) -> None:
    weights = weights_of(problem, weighted=weighted)
    if weights is not None and not weights.any():
        weights[:] = 1.0
    found = streamed(engine, problem, weights)
    whole = Scores(problem.y, problem.rows, weights)
    own, expected = found.outcomes, whole.outcomes
    np.testing.assert_array_equal(own.lowest, expected.lowest)
    np.testing.assert_array_equal(own.highest, expected.highest)
    check_values(found, whole)
    assert own.excess == pytest.approx(expected.excess, rel=1e-9, abs=1e-12)
    assert own.clipped == expected.clipped
    np.testing.assert_allclose(own.squared_error, expected.squared_error, rtol=1e-12)
    if weights is None:
        assert own.confident == pytest.approx(expected.confident, rel=1e-12)
        np.testing.assert_allclose(own.leaning, expected.leaning, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(own.variance, expected.variance, rtol=1e-10, atol=1e-11)
    for code in range(whole.n_classes):
        assert float(found.ranking(code).resolution) == pytest.approx(float(whole.ranking(code).resolution), abs=1e-13)
        if weights is None:
            assert own.unsure_of(code) == pytest.approx(expected.unsure_of(code), rel=1e-12)
    for name, first, second in lines_of(found, Influences(Scores(problem.y, problem.rows, weights))):
        # Places between the points of a curve are interpolated.
        exact = "ovr" not in name and "_average_precision" not in name
        rounding = 1e-9 if exact else 2e-3
        assert first.variance == pytest.approx(second.variance, rel=rounding, abs=1e-14, nan_ok=True), name
        assert (first.method, first.strata, first.worth) == (second.method, second.strata, first.worth), name
        assert first.freedom == pytest.approx(second.freedom, rel=1e-6), name
        ends, others = limits(first), limits(second)
        assert (ends is None) == (others is None), name
        if ends is not None and others is not None:
            width = others.high - others.low
            near = (1e-6 if exact else 1e-3) * width + 1e-11
            assert (ends.low, ends.high) == pytest.approx((others.low, others.high), abs=near), name


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("classes", [2, 3])
def test_groups_add_what_their_samples_do(engine: OpenEngine, classes: int, weighted: bool) -> None:
    problem = drawn(600, classes, 12)
    groups = np.random.default_rng(4).integers(0, 25, 600)
    weights = weights_of(problem, weighted=weighted)
    found = streamed(engine, problem, weights, groups)
    grouping, count = Grouping.of(groups), 0
    for name, first, second in lines_of(found, Influences(Scores(problem.y, problem.rows, weights))):
        own, other = by_groups(first, grouping), by_groups(second, grouping)
        # Places, and precision, between the points of a curve are interpolated.
        near, freedom = (1e-3, 1e-3) if "roc" in name or "precision" in name else (1e-8, 1e-9)
        assert own.variance == pytest.approx(other.variance, rel=near, abs=1e-14, nan_ok=True), name
        assert own.freedom == pytest.approx(other.freedom, rel=0.05 if "precision" in name else freedom), name
        count += 1
    assert count > 15


def test_groups_that_are_all_alike_have_no_variance(engine: OpenEngine) -> None:
    once = drawn(120, 3, 12)
    y, rows = np.tile(once.y, 5), np.tile(once.rows, (5, 1))
    groups = np.repeat(np.arange(5), 120)
    found, grouping = streamed(engine, Problem(y, rows, rows), None, groups), Grouping.of(groups)
    variances = {
        name: (by_groups(first, grouping).variance, by_groups(second, grouping).variance)
        for name, first, second in lines_of(found, Influences(Scores(y, rows)))
    }
    assert len(variances) > 15
    assert {name: both for name, both in variances.items() if any(both)} == {}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_cells_of_groups_hold_what_the_samples_weigh(engine: OpenEngine, weighted: bool) -> None:
    problem = drawn(600, 2, 12)
    groups = np.random.default_rng(4).integers(0, 25, 600)
    weights = weights_of(problem, weighted=weighted)
    found = streamed(engine, problem, weights, groups)
    for code, cells in cells_of_groups(found, [1, None]).items():
        whole = found.cells(code).weights
        assert cells.each is not None
        np.testing.assert_allclose(cells.each.sum(axis=0), whole[np.nonzero(whole)])
        # As few groups are sets of their own.
        np.testing.assert_allclose(np.sort(cells.each.sum(axis=1)), np.sort(np.bincount(groups, weights)))


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_any_size(engine: OpenEngine, classes: int) -> None:
    random = np.random.default_rng(8)
    y = random.integers(0, classes, 900).astype(np.int32)
    values = random.normal(size=(900, classes)).round(2)
    columns = {"s": values[:, 1]} if classes == 2 else {f"p{code}": own for code, own in enumerate(values.T)}
    table = pa.table({"y": y, **columns})
    rows = engine.take(table.schema, table.to_batches())
    found = StreamedScores(rows, classes, probabilities=False, mirrored=classes == 2)
    whole = Scores.of_scores(y, values[:, 1]) if classes == 2 else Scores.of_class_scores(y, values)
    for key, own in streamed_values(found).items():
        metric = METRICS[key]
        if not metric.key.startswith("calibration"):
            with silently():
                np.testing.assert_allclose(own, metric.compute(whole), rtol=1e-12, atol=1e-13, err_msg=key)


SEPARATED = Problem(np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.2, 0.4]), np.zeros((4, 2)))
WRONG_WAY = SEPARATED._replace(y=np.array([1, 1, 0, 0]))
CERTAIN = SEPARATED._replace(y=np.array([0, 1, 1, 0]), given=np.array([0.0, 0.3, 0.2, 1.0]))


@pytest.mark.parametrize(
    ("problem", "clip"), [(SEPARATED, 2.0**-52), (WRONG_WAY, 2.0**-52), (CERTAIN, 0.0), (CERTAIN, 0.3), (CERTAIN, 1e-9)]
)
def test_where_there_is_no_line_it_says_what_samples_say(engine: OpenEngine, problem: Problem, clip: float) -> None:
    problem = problem._replace(rows=np.column_stack([1.0 - problem.given, problem.given]))
    whole, found = Scores(problem.y, problem.rows), streamed(engine, problem)
    for metric in (calibration_intercept, calibration_slope):
        with silently():
            own, expected = metric.compute(found, clip=clip), metric.compute(whole, clip=clip)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11)
        for code in np.flatnonzero(~np.isfinite(expected)).tolist():
            told = [
                Explainer[Scores](one).explain(metric, code, float(expected[code])).condition.code
                for one in (found, whole)
            ]
            assert told[0] == told[1]


def hard_lines() -> dict[str, Problem]:
    """Members above others but for one of each, hardly any spread, and an outlier."""
    random, size = np.random.default_rng(1), 20_000
    scores = np.sort(random.uniform(0.4, 0.6, size))
    members = np.arange(size) >= size // 2
    members[size // 2 - 1], members[size // 2] = True, False
    narrow = 0.5 + 1e-7 * random.normal(size=size)
    outlier = random.uniform(0.4, 0.6, size)
    outlier[0] = 1e-300
    return {
        "all but separated": of_column(members, scores),
        "narrow": of_column(random.random(size) < 0.3, narrow),
        "outlier": of_column(random.random(size) < outlier, outlier),
    }


def of_column(members: Mask, scores: Array) -> Problem:
    return Problem(members.astype(np.int64), scores, np.column_stack([1.0 - scores, scores]))


@pytest.mark.parametrize("name", ["all but separated", "narrow", "outlier"])
def test_hard_lines_are_those_of_the_samples(engine: OpenEngine, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 1 << 20)
    problem = hard_lines()[name]
    found, whole = streamed(engine, problem), Scores(problem.y, problem.rows)
    for metric in (calibration_intercept, calibration_slope):
        np.testing.assert_allclose(metric.compute(found), metric.compute(whole), rtol=1e-6, atol=1e-9)


def test_what_needs_the_samples_says_so(engine: OpenEngine) -> None:
    found = streamed(engine, drawn(50, 3, 2))
    for name in ("p_true", "predicted", "by_p_true", "y"):
        with pytest.raises(NotStreamed, match="which were streamed"):
            getattr(found, name)
    with pytest.raises(NotStreamed, match=r"summed up to 0.1"):
        found.ranking(0).area_between(0.0, 0.2)
    with pytest.raises(NotStreamed, match="15 bins"):
        found.ranking(0).between(np.array([0.5]))


def test_a_share_of_all_weighted_samples_is_one_to_the_last_digit(engine: OpenEngine) -> None:
    """Else it has no limits at the edge: those of samples without weights would be shown."""
    weights = np.random.default_rng(1).lognormal(size=400)
    found = streamed(engine, PROBLEMS["all equal"], weights)
    assert streamed_values(found)["fraction_uncertain"] == 1.0
