"""Rankings of more items than memory holds, compared in pairs: the answer of the same items in memory."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, InvalidInput, TooLarge
from app.domain.inputs import ranking
from app.domain.inputs.matrices import MatrixInput
from app.services.compare.answers import RunComparison
from app.services.compare.comparisons import (
    AskedComparison,
    compare,
    compare_again,
)
from app.services.compare.elsewhere import Rereading
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples
from tests.engine import ENGINE
from tests.services.referenced import Parts, asked_of_sources

ROWS, QUERIES = 2000, 80
RANDOM = np.random.default_rng(31)
METRICS = ["ndcg_at_k(k=3)", "mean_average_precision", "mean(mean_reciprocal_rank, query_auc)", "precision_at_k(k=7)"]
DATA: Any = {"data": {"columns": {"query_id": "session"}}}


class Ranking(NamedTuple):
    """Items of one run, in any order."""

    names: NDArray[Any]
    grades: NDArray[np.float64]
    scores: NDArray[np.float64]

    def some(self, rows: Any) -> "Ranking":
        return Ranking(*(column[rows] for column in self))

    @property
    def source(self) -> MatrixInput:
        return ranking.Ranking(query_ids=self.names, relevance=self.grades, scores=self.scores).read("/input")

    @property
    def parts(self) -> list[MatrixInput]:
        """Parts of any size, in any order."""
        order = RANDOM.permutation(self.names.size)
        cuts = np.sort(RANDOM.choice(np.arange(1, order.size), RANDOM.integers(1, 20), replace=False))
        return [self.some(rows).source for rows in np.split(order, cuts)]


def rankings(count: int = 2, *, texts: bool = False) -> list[Ranking]:
    """Runs on the same items; some queries have no relevant item, and scores are often tied."""
    query = RANDOM.integers(0, QUERIES, ROWS)
    grades = np.where(RANDOM.random(ROWS) < 0.7, 0.0, RANDOM.random(ROWS).round(2)) * (query % 11 > 0)
    names = np.array([f"0{one}" if one % 2 else str(one) for one in query]) if texts else query
    return [Ranking(names, grades, (grades + RANDOM.normal(size=ROWS)).round(1)) for _ in range(count)]


def asked_of(runs: Sequence[Ranking], minimum: float = 1.0) -> tuple[AskedComparison, KeptSamples]:
    """A comparison of runs, and their items in memory."""
    sources = [replace(one.source, facts={**one.source.facts, **DATA}) for one in runs]
    return asked_of_sources(sources, METRICS, minimum_matched=minimum, draws=200)


def streamed(
    asked: AskedComparison,
    runs: Sequence[Ranking],
    folder: Path,
    memory: int = 40_000,
    kept: KeptSamples | None = None,
) -> RunComparison:
    """The same where the items are streamed."""
    folder.mkdir()
    parts = Parts({record.id: run.parts for record, run in zip(asked.runs.records, runs, strict=True)})
    reading = Rereading(parts, memory, folder, ENGINE)
    return compare_again(asked, kept or KeptSamples(), reading, identifier=asked.runs.records[0].id)


def at_once(asked: AskedComparison, kept: KeptSamples) -> RunComparison:
    return compare(asked, kept, identifier=asked.runs.records[0].id)


@pytest.mark.parametrize(("count", "texts"), [(2, False), (3, True)])
def test_the_comparison_is_that_of_the_items_at_hand(tmp_path: Path, count: int, *, texts: bool) -> None:
    runs = rankings(count, texts=texts)
    asked, kept = asked_of(runs)
    expected = at_once(asked, kept)
    assert expected.design.paired
    assert expected.design.reason == f"same {QUERIES} queries"
    assert all(one.differences[0].p_value is not None for one in expected.metrics.values())
    for number, memory in enumerate((4096, 40_000, 1 << 20)):
        assert repr(streamed(asked, runs, tmp_path / str(number), memory)) == repr(expected)
        assert not [*(tmp_path / str(number)).iterdir()]


def test_queries_in_common_are_compared_and_others_left_out(tmp_path: Path) -> None:
    first, second = rankings()
    runs = [first.some(first.names < QUERIES - 5), second.some(second.names > 3)]
    # Of one run ids are texts.
    runs[1] = runs[1]._replace(names=runs[1].names.astype(np.str_))
    asked, kept = asked_of(runs, 0.8)
    assert repr(streamed(asked, runs, tmp_path / "a")) == repr(at_once(asked, kept))
    asked, _ = asked_of(runs)
    with pytest.raises(IncomparableRuns, match=r"only \d+ of 7\d queries are common"):
        streamed(asked, runs, tmp_path / "b")


def test_a_run_that_was_kept_is_compared_with_one_that_went_by(tmp_path: Path) -> None:
    runs = rankings()
    asked, kept = asked_of(runs)
    first, *others = asked.runs.records
    without = {name: fact for name, fact in first.facts.items() if name != "data"}
    mixed = replace(asked, runs=Runs.align([replace(first, facts=without), *others]), elsewhere=tuple(others))
    assert repr(streamed(mixed, runs, tmp_path / "a", kept=kept)) == repr(at_once(asked, kept))
    with pytest.raises(IncomparableRuns, match="were not saved"):
        streamed(mixed, runs, tmp_path / "b")


def test_many_queries_change_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of many queries are read each time, and only those of some are in memory."""
    monkeypatch.setattr("app.kernel.streamed.queries._HELD", 500)
    monkeypatch.setattr("app.kernel.uncertainty.jackknife._MOST_BLOCKS", 30)
    monkeypatch.setattr(f"{__name__}.METRICS", ["min(ndcg_at_k(k=3), precision_at_k(k=7))"])
    runs = rankings()
    asked, kept = asked_of(runs)
    assert repr(streamed(asked, runs, tmp_path / "a")) == repr(at_once(asked, kept))


def test_what_cannot_be_paired_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = rankings()
    other = second._replace(grades=np.where(second.names == 5, second.grades + 1.0, second.grades))
    asked, _ = asked_of([first, other])
    with pytest.raises(IncomparableRuns, match="what is true of the common ids is not the same in run 2"):
        streamed(asked, [first, other], tmp_path / "a")
    asked, _ = asked_of([first, second])
    with pytest.raises(InvalidInput, match="other ones were read") as changed:
        streamed(asked, [first, second.some(slice(1, None))], tmp_path / "b")
    assert (changed.value.faults[0].pointer, changed.value.faults[0].code) == ("/evaluations/1", "data_changed")


def test_too_many_queries_are_told_before_any_item_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many there are is known of every run."""
    first, second = rankings()
    runs = [first.some(first.names < 60), second]
    asked, _ = asked_of(runs)
    monkeypatch.setattr("app.services.runs.rankings._ALWAYS", 70)
    monkeypatch.setattr("app.services.compare.elsewhere.kept_queries", None)
    with pytest.raises(TooLarge, match="at most 70 queries of each of 2 runs in") as raised:
        streamed(asked, runs, tmp_path / "a", 8192)
    assert raised.value.pointer == "/evaluations/1"


def test_memory_does_not_grow_with_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = np.repeat(np.arange(20_000), 2)
    grades = (RANDOM.random(names.size) < 0.5).astype(np.float64)
    whole = Ranking(names, grades, RANDOM.normal(size=names.size))
    runs = [whole, whole._replace(scores=-whole.scores).some(slice(2, None))]
    peaks = []
    for metrics in (4, 40):
        monkeypatch.setattr(f"{__name__}.METRICS", [f"precision_at_k(k={k})" for k in range(1, metrics + 1)])
        asked, _ = asked_of(runs, 0.9)
        tracemalloc.start()
        found = streamed(asked, runs, tmp_path / str(metrics), 1 << 20)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(found.metrics) == metrics
    assert peaks[1] < peaks[0] + (12 << 20), peaks
