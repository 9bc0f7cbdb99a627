"""One pass along an order beside numpy, scikit-learn and the samples in memory."""

import numpy as np
import pyarrow as pa
import pytest

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.areas import area_variance
from app.kernel.samples.influence import WeightedSamples
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores, Side
from app.kernel.streamed.along import MAX_FPR, QUANTILES, Along, cuts_of, placements
from app.kernel.streamed.rankings import StreamedRanking
from app.kernel.streamed.rows import EngineError, Rows
from app.outbound import batches
from app.services.ports import OpenEngine
from tests.witnesses import sk

SIZE = 5000


def scores_of(kind: str) -> tuple[Array, Mask, Array]:
    """Scores, members and weights."""
    random = np.random.default_rng(7)
    members = random.random(SIZE) < 0.3
    scores: Array = np.asarray(random.normal(size=SIZE) + members, dtype=np.float64)
    if kind == "tied":
        scores = scores.round(1)
    if kind == "two values":
        scores = np.where(scores > 0.5, 1.0, 0.0)
    if kind == "one value":
        scores = np.full(SIZE, 0.25)
    if kind == "apart":
        scores += 100 * members
    return scores, members, random.exponential(size=SIZE) + 0.1


def rows_of(engine: OpenEngine, **columns: Array | Mask) -> Rows:
    table = pa.table(columns)
    return engine.take(table.schema, table.to_batches(max_chunksize=999))


def along(rows: Rows, score: str, member: str, weight: str | None = None) -> Along:
    """All that adds up along an order."""
    made = rows.having(s=f"({score})::DOUBLE", m=f"({member})", v=weight or "1.0")
    found = made.sums("m", n="1", w="v", x="v * v")
    sides = dict.fromkeys([True, False], Side(0.0, 0.0, 0))
    for inside, size, own, squares in zip(found["m"], found["n"], found["w"], found["x"], strict=True):
        sides[bool(inside)] = Side(float(own), float(squares), int(size))
    curve, columns = Along(sides[True], sides[False]), ["s", "m", *([] if weight is None else ["w"])]
    for cuts in cuts_of(made.ordered("s DESC", columns=columns)):
        curve.add(cuts)
    return curve


def in_memory(scores: Array, members: Mask, weights: Array | None) -> Ranking:
    return Scores.of_scores(members, scores, weights).ranking(1)


KINDS = ("distinct", "tied", "two values", "one value", "apart")


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_that_of_the_samples_in_memory(engine: OpenEngine, kind: str, weighted: bool) -> None:
    scores, members, weights = scores_of(kind)
    found = along(rows_of(engine, p=scores, y=members, w=weights), "p", "y", "w" if weighted else None)
    own = in_memory(scores, members, weights if weighted else None)
    assert found.area == pytest.approx(float(own.auc), rel=1e-12)
    assert found.lost == pytest.approx(float(own.losses), rel=1e-12, abs=1e-9)
    assert found.precision == pytest.approx(float(own.average_precision * own.positives), rel=1e-12)
    assert found.precision_trapezoid == pytest.approx(float(own.precision_sum), rel=1e-12)
    assert found.gap == pytest.approx(float(own.ks), rel=1e-12, abs=1e-12)
    ranking = StreamedRanking(found, None)
    for quantile in QUANTILES:
        assert ranking.member_quantile(quantile) == own.member_quantile(quantile)
    assert ranking.area_between(0.0, MAX_FPR) == pytest.approx(float(own.area_between(0.0, MAX_FPR)), rel=1e-12)
    assert ranking.equal_error_rate == pytest.approx(float(own.equal_error_rate), rel=1e-12, abs=1e-15)
    area = np.trapezoid(*own.hulls[0])
    assert np.trapezoid(*found.hull) == pytest.approx(area, rel=1e-12)
    assert weighted or found.hull[0].size == own.hulls[0][0].size
    assert found.n_cuts == np.unique(scores).size
    influence = WeightedSamples(Scores.of_scores(members, scores, weights if weighted else None)).areas[1][1]
    parts = [float((influence[side] ** 2).sum()) for side in (members, ~members)]
    assert found.variances == pytest.approx(parts, rel=1e-10, abs=1e-20)


def test_the_variance_is_that_of_delong(engine: OpenEngine) -> None:
    scores, members, _ = scores_of("tied")
    found = along(rows_of(engine, p=scores, y=members), "p", "y")
    assert sum(found.variances) == pytest.approx(area_variance(in_memory(scores, members, None)), rel=1e-12)
    assert found.area == pytest.approx(sk.roc_auc_score(members, scores), rel=1e-12)
    precision = sk.average_precision_score(members, scores)
    assert found.precision / found.members.weight == pytest.approx(precision, rel=1e-12)


def test_equal_scores_have_no_variance(engine: OpenEngine) -> None:
    found = along(rows_of(engine, p=np.full(7, 0.1), y=np.arange(7) < 3), "p", "y")
    assert (found.area, found.variances) == (0.5, (0.0, 0.0))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
def test_placements_are_those_of_all_samples(engine: OpenEngine, kind: str, weighted: bool) -> None:
    scores, members, weights = scores_of(kind)
    found = along(rows_of(engine, p=scores, y=members, w=weights), "p", "y", "w" if weighted else None)
    given = weights if weighted else None
    own = WeightedSamples(Scores.of_scores(members, scores, given)).areas[1][1]
    placed = placements(found, scores, members) * (1.0 if given is None else given)
    assert float((placed**2).sum()) == pytest.approx(float((own**2).sum()), rel=1e-4, abs=1e-20)
    np.testing.assert_allclose(placed, own, rtol=0, atol=2e-3 * np.abs(own).max() + 1e-20)


def test_one_side_has_no_area(engine: OpenEngine) -> None:
    found = along(rows_of(engine, p=np.array([0.5, 0.2]), y=np.array([True, True])), "p", "y")
    assert np.isnan(found.area)
    assert np.isnan(found.variances).all()
    assert [*map(float, StreamedRanking(found, None).member_quantile(0.5))] == [0.2, 0.5]


def test_batches_do_not_matter(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, members, weights = scores_of("tied")
    rows = rows_of(engine, p=scores, y=members, w=weights)

    def said(found: Along) -> list[float]:
        partial = float(StreamedRanking(found, None).area_between(0.0, MAX_FPR))
        return [found.area, *found.variances, found.precision, partial, found.gap]

    expected = said(along(rows, "p", "y", "w"))
    for size in (1, 13, 1 << 20):
        monkeypatch.setattr(batches, "BATCH_ROWS", size)
        assert said(along(rows, "p", "y", "w")) == pytest.approx(expected, rel=1e-12)


def test_a_fault_of_the_engine_is_told(engine: OpenEngine) -> None:
    with pytest.raises(EngineError):
        along(rows_of(engine, p=np.array([0.5]), y=np.array([True])), "nowhere", "y")
