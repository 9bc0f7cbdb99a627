"""Runs of more samples than memory holds, compared on metrics of probabilities: what the samples at hand say."""

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, TooLarge
from app.domain.identifiers import new_id
from app.domain.inputs.matrices import MatrixInput, with_weights
from app.domain.inputs.probabilities import Accompanying, from_probabilities, from_scores
from app.kernel.compare.folded.orders import Orders
from app.kernel.compare.folded.sums import PairedSums
from app.services.compare.answers import RunComparison
from app.services.compare.comparisons import (
    AskedComparison,
    Besides,
    CostQuestion,
    NewComparison,
    compare,
    compare_again,
    understood,
)
from app.services.compare.elsewhere import Rereading
from app.services.runs.aligned import Runs
from app.services.runs.pairing import PairingMode
from app.services.runs.reading import KeptSamples
from app.services.stored import unkept_record
from tests.services.referenced import Parts, Threads

ROWS = 700
RANDOM = np.random.default_rng(1988)
DATA: Any = {"data": {"columns": {"sample_id": "id"}}}


class Model(NamedTuple):
    """One run: rows in its order, what it says of them, and its classes in its order."""

    rows: NDArray[np.int64]
    truth: NDArray[np.int64]
    outputs: NDArray[np.float64]
    labels: list[str]
    groups: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    def source(self, chosen: slice) -> MatrixInput:
        """Some of its samples."""
        rows = self.rows[chosen]
        names = np.array([f"c{code}" for code in range(self.outputs.shape[1])])
        groups = None if self.groups is None else self.groups[rows].tolist()
        weights = None if self.weights is None else self.weights[rows].tolist()
        in_parts = rows.size < self.rows.size
        beside = Accompanying(
            labels=self.labels,
            sample_ids=rows.tolist(),
            group_ids=groups,
            sample_weight=None if in_parts else weights,
        )
        truth = names[self.truth[rows]].tolist()
        columns = [int(label[1:]) for label in self.labels]
        outputs = self.outputs[rows][:, columns]
        if self.is_sure:
            found = from_probabilities(truth, outputs, beside, sum_tolerance=1e-6, renormalize=False, pointer="/input")
        else:
            found = from_scores(truth, outputs, beside, pointer="/input")
        if in_parts and weights is not None:
            # All of a part may weigh nothing.
            found = with_weights(found, weights, "/input/sample_weight")
        return replace(found, facts={**found.facts, **DATA})

    @property
    def is_sure(self) -> bool:
        """Are these probabilities?"""
        return bool(self.outputs.min() >= 0.0)

    def parts(self) -> list[MatrixInput]:
        """All of them, in parts of any size, one of a single row, in any order."""
        cuts = np.unique([1, *RANDOM.choice(np.arange(2, self.rows.size), RANDOM.integers(0, 30), replace=False)])
        ends = [0, *cuts.tolist(), self.rows.size]
        parts = [self.source(slice(start, stop)) for start, stop in pairwise(ends)]
        return [parts[place] for place in RANDOM.permutation(len(parts))]


def models(classes: int, count: int = 2, *, scores: bool = False) -> list[Model]:
    """Runs on most of the samples in any order, their classes in any order; some probabilities are the same."""
    truth = np.concatenate([np.arange(classes), RANDOM.integers(0, classes, ROWS - classes)])
    made = []
    for skill in np.linspace(0.5, 0.8, count):
        outputs = RANDOM.dirichlet(np.ones(classes), ROWS) * (1.0 - skill) + skill * np.eye(classes)[
            truth
        ] * RANDOM.random((ROWS, 1))
        outputs /= outputs.sum(axis=1)[:, None]
        outputs[::4] = outputs[RANDOM.integers(0, 9, outputs[::4].shape[0])]
        rows = RANDOM.permutation(ROWS)[: ROWS - 15]
        labels = RANDOM.permutation([f"c{code}" for code in range(classes)]).tolist()
        made.append(Model(rows, truth, 4.0 * outputs - 1.0 if scores else outputs, labels))
    return made


def asked_of(runs: Sequence[Model], metrics: Sequence[str], **others: Any) -> tuple[AskedComparison, KeptSamples]:
    """A comparison of runs, and their samples at hand."""
    sources = [run.source(slice(None)) for run in runs]
    records = [replace(unkept_record(one), id=new_id()) for one in sources]
    new = NewComparison(
        evaluations=tuple(record.id for record in records),
        metrics=tuple(metrics),
        paired=PairingMode.TRUE,
        minimum_matched=0.9,
        **others,
    )
    aligned = Runs.align(records)
    asked = AskedComparison(new, aligned, understood(new, aligned), tuple(records))
    samples = {record.id: one.samples for record, one in zip(records, sources, strict=True) if one.samples is not None}
    return asked, KeptSamples.of(samples)


def folded(
    asked: AskedComparison, runs: Sequence[Model], folder: Path, memory: int = 120_000, cluster: Threads | None = None
) -> RunComparison:
    """The same where the samples go by."""
    folder.mkdir()
    parts = Parts({record.id: run.parts() for record, run in zip(asked.runs.records, runs, strict=True)})
    return compare_again(
        asked, KeptSamples(), Rereading(parts, memory, folder, cluster), identifier=asked.runs.records[0].id
    )


def check_close(found: Any, expected: Any, place: str = "") -> None:
    """The same but for the last digits of numbers."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for name, value in expected.items():
            check_close(found[name], value, f"{place}/{name}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            check_close(found[number], value, f"{place}/{number}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-13, nan_ok=True), place
    elif isinstance(expected, str):
        assert found == expected, place
    else:
        assert found == expected, place


LOSSES = [
    "log_loss",
    "log_loss(clip=0.01)",
    "brier_score",
    "spherical_score",
    "balanced_log_loss",
    "balanced_brier_score",
    "ranked_probability_score",
    "au_mcp",
    "au_imcp",
    "mean_phi@*",
    "fraction_correct_certain",
    "fraction_uncertain",
    "fraction_incorrect_certain",
    "mean(brier_score, log_loss)",
    "mean(mean_phi@*)",
    "brier_skill_score",
    "d2_log_loss",
    "gmean(au_mcp, spherical_score)",
]

# Averages over pairs of classes, and over all scores of all samples.
PAIRS = ["roc_auc_ovo_macro", "roc_auc_ovo_weighted", "roc_auc_ovr_micro", "mean(roc_auc_ovo_macro, roc_auc_ovr_macro)"]

AREAS = ["roc_auc@*", "roc_auc@c1", "roc_gini@c0", "roc_auc_ovr_macro", "roc_auc_ovr_weighted", "mean(roc_auc@*)"]


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3), (10, 2)])
@pytest.mark.parametrize("scores", [False, True])
def test_areas_are_compared_as_those_of_the_samples_at_hand(
    tmp_path: Path, classes: int, count: int, *, scores: bool
) -> None:
    runs = models(classes, count, scores=scores)
    names = [*AREAS, "roc_auc_ovo_macro", "roc_auc_ovo_weighted"] if classes == 2 else AREAS
    asked, kept = asked_of(runs, names if scores else [*names, "mean(roc_auc@c0, au_imcp)"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(folded(asked, runs, tmp_path / "a")), asdict(expected))


@pytest.mark.parametrize(("classes", "scores", "weighted"), [(2, 0, 0), (3, 0, 0), (3, 0, 1), (3, 1, 0), (5, 0, 1)])
def test_areas_of_pairs_and_of_all_scores_are_compared_as_those_of_the_samples_at_hand(
    tmp_path: Path, classes: int, scores: int, weighted: int
) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 40.0], ROWS) if weighted else None
    runs = [one._replace(weights=weights) for one in models(classes, scores=bool(scores))]
    asked, kept = asked_of(runs, PAIRS)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    answers = [
        folded(asked, runs, tmp_path / str(number), memory, cluster)
        for number, (memory, cluster) in enumerate([(1 << 18, None), (1 << 20, Threads())])
    ]
    check_close(asdict(answers[0]), asdict(expected))
    assert repr(answers[1]) == repr(answers[0])


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3), (10, 2)])
def test_means_are_compared_as_those_of_the_samples_at_hand(tmp_path: Path, classes: int, count: int) -> None:
    runs = models(classes, count)
    asked, kept = asked_of(runs, [*LOSSES, "accuracy"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(folded(asked, runs, tmp_path / "a")), asdict(expected))


@pytest.mark.parametrize("turned", [False, True])
def test_a_share_has_its_own_method_whatever_else_is_asked(tmp_path: Path, *, turned: bool) -> None:
    runs, metrics = models(3), ["fraction_correct_certain", "mean(fraction_correct_certain)"]
    asked, kept = asked_of(runs, metrics[::-1] if turned else metrics)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert len({expected.metrics[name].differences[0].p_value for name in metrics}) == 2
    check_close(asdict(folded(asked, runs, tmp_path / "a")), asdict(expected))


@pytest.mark.parametrize("shares", [[0.7, 0.3], [0.5, 0.5], [0.5, 0.3, 0.2]])
def test_a_model_is_tested_against_one_that_always_says_the_same(tmp_path: Path, shares: list[float]) -> None:
    first, second = models(len(shares))
    runs = [first, second._replace(outputs=np.tile(shares, (ROWS, 1)))]
    metrics = ["balanced_log_loss", "balanced_brier_score", "mean(balanced_log_loss, balanced_brier_score)"]
    for number, some in enumerate((runs, runs[::-1])):
        asked, kept = asked_of(some, metrics)
        expected = compare(asked, kept, identifier=asked.runs.records[0].id)
        for found in expected.metrics.values():
            (difference,) = found.differences
            assert difference.p_value is not None
            assert 0.0 <= difference.p_value <= 1.0
            assert difference.low is not None
            assert np.isfinite(difference.low)
        check_close(asdict(folded(asked, some, tmp_path / str(number))), asdict(expected))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_splits_orders_memory_and_processes_change_no_bit(tmp_path: Path, classes: int, *, weighted: bool) -> None:
    weights = np.exp(RANDOM.normal(0.0, 3.0, 50))[RANDOM.integers(0, 50, ROWS)] if weighted else None
    runs = [one._replace(weights=weights) for one in models(classes)]
    asked, _ = asked_of(
        runs, ["log_loss", "brier_score", "spherical_score", "au_imcp", "fraction_uncertain", "roc_auc@c0"]
    )
    answers = []
    for number in range(6):
        cluster = Threads() if number % 2 == 0 else None
        memory = int(RANDOM.choice([8_000, 40_000, 1 << 20]))
        # What differs by its weight is held in a quarter.
        memory = max(memory, weighted << 18)
        answers.append(folded(asked, runs, tmp_path / str(number), memory, cluster))
        assert cluster is None or cluster.tasks >= 1
    for one in answers[1:]:
        assert repr(one) == repr(answers[0])


@pytest.mark.parametrize("seen", [2, 1])
def test_what_has_no_value_says_why(tmp_path: Path, seen: int) -> None:
    first, second = models(3)
    # The second is sure of what is not so, and neither has seen the last classes.
    wrong = np.eye(3)[(first.truth + 1) % 3]
    outputs = np.where(np.arange(ROWS)[:, None] % 50 == 0, wrong, second.outputs)
    runs = [
        one._replace(rows=one.rows[one.truth[one.rows] < seen]) for one in (first, second._replace(outputs=outputs))
    ]
    metrics = ["log_loss(clip=0)", "balanced_brier_score", "mean_phi@*", "brier_score", "d2_log_loss", "roc_auc@*"]
    asked, kept = asked_of(runs, metrics)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert len(expected.notes) >= 5
    check_close(asdict(folded(asked, runs, tmp_path / "a")), asdict(expected))


def test_of_scores_losses_are_undefined(tmp_path: Path) -> None:
    runs = models(3, scores=True)
    asked, kept = asked_of(runs, ["log_loss", "fraction_uncertain", "au_mcp"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    answer = folded(asked, runs, tmp_path / "a")
    check_close(asdict(answer), asdict(expected))
    assert "no probabilities" in answer.notes[-1]


def test_what_was_resampled_is_left_out_and_said(tmp_path: Path) -> None:
    runs = models(2)
    asked, _ = asked_of(runs, ["average_precision@c1", "min(brier_score, log_loss)", "log_loss", "minimum_cost"])
    answer = folded(asked, runs, tmp_path / "a")
    for name in ("average_precision@c1", "min(brier_score, log_loss)", "minimum_cost"):
        found = answer.metrics[name]
        (difference,) = found.differences
        assert all(
            one is not None and np.isnan(one) for one in (*found.values, difference.difference, difference.p_value)
        )
        assert difference.reason is not None
        assert difference.reason.endswith("not all metrics are added up sample by sample (not_folded)")
    assert np.isfinite(answer.metrics["log_loss"].differences[0].p_value or np.nan)
    assert any("average_precision@c1, min(brier_score, log_loss), minimum_cost" in note for note in answer.notes)
    costs = Besides(costs=CostQuestion(best_thresholds=True))
    asked, _ = asked_of(runs, ["log_loss"], besides=costs)
    with pytest.raises(TooLarge, match="for best_thresholds, got more"):
        folded(asked, runs, tmp_path / "b")


def test_an_improper_score_that_disagrees_is_found(tmp_path: Path) -> None:
    sure, calibrated = models(2)
    # Right a little more often and far too sure of it.
    guess = np.where(RANDOM.random(ROWS) < 0.8, sure.truth, 1 - sure.truth)
    runs = [
        sure._replace(outputs=np.eye(2)[guess] * 0.9999 + 0.00005),
        calibrated._replace(outputs=np.eye(2)[guess] * 0.5 + 0.25),
    ]
    asked, kept = asked_of(runs, ["au_imcp"])
    answer = folded(asked, runs, tmp_path / "a")
    check_close(asdict(answer), asdict(compare(asked, kept, identifier=asked.runs.records[0].id)))
    assert answer.findings is not None
    assert answer.findings[0].code == "improper_score_disagrees"


def test_runs_that_say_the_same_have_no_difference(tmp_path: Path) -> None:
    first, _ = models(2)
    runs = [first, first._replace(rows=first.rows[::-1])]
    asked, kept = asked_of(runs, ["log_loss", "au_imcp", "fraction_uncertain"])
    answer = folded(asked, runs, tmp_path / "a")
    check_close(asdict(answer), asdict(compare(asked, kept, identifier=asked.runs.records[0].id)))
    assert {found.differences[0].p_value for found in answer.metrics.values()} == {1.0}


OF_MATRICES = ["accuracy", "mcc", "recall@*", "macro_f1"]


@pytest.mark.parametrize("named", [np.str_, np.int64])
@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3)])
def test_groups_are_compared_as_those_of_the_samples_at_hand(
    tmp_path: Path, classes: int, count: int, named: type[Any]
) -> None:
    groups = RANDOM.integers(-20, 60, ROWS)
    runs = [one._replace(groups=groups.astype(named)) for one in models(classes, count)]
    # What groups are called in other runs says nothing.
    runs[1] = runs[1]._replace(groups=np.array([f"group {one}" for one in groups]))
    asked, kept = asked_of(runs, OF_MATRICES, besides=Besides(paired_tests=True))
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.design.resampling.resampled == "groups"
    for number, memory in enumerate((1 << 18, 1 << 19, 1 << 20)):
        cluster = Threads() if number else None
        assert repr(folded(asked, runs, tmp_path / str(number), memory, cluster)) == repr(expected)


@pytest.mark.parametrize("metric", ["accuracy", "fraction_uncertain"])
def test_runs_of_which_hardly_two_samples_say_the_same_are_refused(tmp_path: Path, metric: str) -> None:
    """What is known of samples that all differ grows with them, so it has to be held to the memory."""
    first, *others = models(9, 10)
    runs = [first, *(one._replace(rows=first.rows) for one in others)]
    asked, _ = asked_of(runs, [metric])
    with pytest.raises(
        TooLarge, match=r"combinations of actual class and predictions of all 10 runs.*fewer runs"
    ) as raised:
        folded(asked, runs, tmp_path / "a", 1 << 17)
    assert raised.value.pointer == "/evaluations"
    folded(asked, runs, tmp_path / "b", 1 << 20)


def test_samples_that_say_the_same_take_no_memory(tmp_path: Path) -> None:
    runs = models(2, 3)
    asked, kept = asked_of(runs, ["accuracy"])
    # Combinations of 27 parts take more than all of them together may.
    answer = folded(asked, runs, tmp_path / "a", 4 * 16 * 40)
    assert repr(answer) == repr(compare(asked, kept, identifier=asked.runs.records[0].id))


def test_groups_that_cannot_be_compared_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = RANDOM.integers(0, 60, ROWS)
    first, second = models(2)

    def refused(one: NDArray[Any], other: NDArray[Any] | None, metric: str = "accuracy", memory: int = 1 << 18) -> str:
        runs = [first._replace(groups=one), second._replace(groups=other)]
        asked, _ = asked_of(runs, [metric])
        with pytest.raises((IncomparableRuns, TooLarge)) as caught:
            folded(asked, runs, tmp_path / new_id().hex, memory)
        return str(caught.value.detail)

    merged = np.where(groups == 7, 8, groups)
    for one, other in ((groups, merged), (merged, groups)):
        assert "do not group the samples" in refused(one, other)
    assert "are one group" in refused(np.zeros(ROWS, dtype=np.int64), None)
    assert "log_loss needs probabilities" in refused(groups, groups, "log_loss")
    assert "of PREVAIL_DATA_MEMORY_BYTES" in refused(groups, groups, memory=4000)
    named = np.array([f"{one:0200}" for one in groups])
    assert "names of groups of at most 8192 bytes" in refused(named, named, memory=1 << 15)
    monkeypatch.setattr("app.services.runs.joins.groups.MOST_GROUPS", 50)
    assert "at most 50 groups" in refused(groups, groups)


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3)])
def test_weights_are_compared_as_those_of_the_samples_at_hand(tmp_path: Path, classes: int, count: int) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0], ROWS)
    runs = [one._replace(weights=weights * 3.0**place) for place, one in enumerate(models(classes, count))]
    asked, kept = asked_of(runs, OF_MATRICES, besides=Besides(paired_tests=True))
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    for number, memory in enumerate((1 << 18, 1 << 20)):
        cluster = Threads() if number else None
        assert repr(folded(asked, runs, tmp_path / str(number), memory, cluster)) == repr(expected)


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3), (10, 2)])
def test_weighted_means_are_compared_as_those_of_the_samples_at_hand(tmp_path: Path, classes: int, count: int) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0, 40.0], ROWS)
    runs = [one._replace(weights=weights * 3.0**place) for place, one in enumerate(models(classes, count))]
    # At hand what is left of a sum of weights is its rounding, where nothing is uncertain.
    metrics = [name for name in LOSSES if classes > 2 or name != "fraction_uncertain"]
    asked, kept = asked_of(runs, [*metrics, "accuracy"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(folded(asked, runs, tmp_path / "a", 1 << 19)), asdict(expected))


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 2), (2, 3), (10, 2)])
@pytest.mark.parametrize("scores", [False, True])
def test_weighted_areas_are_compared_as_those_of_the_samples_at_hand(
    tmp_path: Path, classes: int, count: int, *, scores: bool
) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0, 40.0], ROWS)
    runs = [
        one._replace(weights=weights * 2.0**place) for place, one in enumerate(models(classes, count, scores=scores))
    ]
    names = [*AREAS, "roc_auc_ovo_macro", "roc_auc_ovo_weighted"] if classes == 2 else AREAS
    asked, kept = asked_of(runs, names if scores else [*names, "mean(roc_auc@c0, au_imcp)"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(folded(asked, runs, tmp_path / "a", 1 << 19)), asdict(expected))


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 3)])
def test_weights_in_groups_are_compared_as_those_of_the_samples_at_hand(
    tmp_path: Path, classes: int, count: int
) -> None:
    groups = RANDOM.integers(-20, 60, ROWS)
    # Some groups weigh nothing. Sums are exact in any order, so that draws that are equal stay so.
    weights = np.where(groups % 10 == 0, 0.0, RANDOM.choice([0.0, 0.25, 1.75, 2.0], ROWS))
    runs = [
        one._replace(groups=groups, weights=weights * 2.0**place) for place, one in enumerate(models(classes, count))
    ]
    asked, kept = asked_of(runs, OF_MATRICES, besides=Besides(paired_tests=True))
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.design.resampling.resampled == "groups"
    answers = [
        folded(asked, runs, tmp_path / str(number), memory, Threads() if number else None)
        for number, memory in enumerate((1 << 19, 1 << 20))
    ]
    check_close(asdict(answers[0]), asdict(expected))
    assert repr(answers[1]) == repr(answers[0])


def test_what_weighs_nothing_says_nothing(tmp_path: Path) -> None:
    first, second = models(3)
    weights = RANDOM.choice([0.0, 0.3, 1.7], ROWS)
    # Without these rows no class 2 is left, and no value is infinite.
    weights[first.truth == 2] = 0.0
    outputs = np.where(weights[:, None] == 0.0, np.eye(3)[(first.truth + 1) % 3], second.outputs)
    runs = [first._replace(weights=weights), second._replace(weights=weights, outputs=outputs)]
    rest = [one._replace(rows=one.rows[weights[one.rows] > 0.0]) for one in runs]
    metrics = ["log_loss(clip=0)", "brier_score", "mean_phi@*", "d2_log_loss"]
    (asked, _), (left, _) = (asked_of(some, metrics) for some in (runs, rest))
    found, expected = folded(asked, runs, tmp_path / "a", 1 << 18), folded(left, rest, tmp_path / "b", 1 << 18)
    assert np.isfinite(found.metrics["log_loss(clip=0)"].differences[0].difference or np.nan)
    for name, one in expected.metrics.items():
        assert repr(found.metrics[name].values) == repr(one.values)
        assert repr(found.metrics[name].differences[0].p_value) == repr(one.differences[0].p_value)


def test_weights_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0], ROWS)
    other = weights.copy()
    other[:60] += 0.1
    first, second = models(2)

    def refused(one: NDArray[Any] | None, other: NDArray[Any] | None, memory: int = 1 << 18) -> str:
        runs = [run._replace(weights=own) for run, own in ((first, one), (second, other))]
        asked, kept = asked_of(runs, ["accuracy"])
        with pytest.raises((IncomparableRuns, TooLarge)) as caught:
            folded(asked, runs, tmp_path / new_id().hex, memory)
        if memory == 1 << 18:
            with pytest.raises(IncomparableRuns) as at_once:
                compare(asked, kept, identifier=new_id())
            assert str(caught.value.detail) == str(at_once.value.detail)
        return str(caught.value.detail)

    for one, two in ((weights, other), (other, weights), (weights, None), (None, weights)):
        assert "run 2 weighs the samples" in refused(one, two)
    assert "of PREVAIL_DATA_MEMORY_BYTES" in refused(RANDOM.random(ROWS), RANDOM.random(ROWS), memory=4000)


@pytest.mark.parametrize(("count", "parts"), [(2, 7), (8, 26)])
def test_rows_take_what_is_said_of_them_by_their_own_run(tmp_path: Path, count: int, parts: int) -> None:
    # Of 685 rows of each run: 96 bytes, three times an id and two outputs of 32 bytes, in parts of 40,000.
    cluster = Threads()
    first, *others = models(2, count)
    runs = [first, *(one._replace(rows=first.rows) for one in others)]
    asked, _ = asked_of(runs, ["log_loss"])
    folded(asked, runs, tmp_path / "a", 160_000, cluster)
    assert cluster.tasks == parts


def test_orders_are_read_once_the_runs_can_be_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, sums = [], Orders.sums

    def spied(self: Orders, *others: Any) -> PairedSums:
        read.append(self)
        return sums(self, *others)

    monkeypatch.setattr(Orders, "sums", spied)
    first, second = models(2)
    for rows, times in ((second.rows, 1), (second.rows[:300], 0)):
        runs = [first, second._replace(rows=rows)]
        asked, _ = asked_of(runs, ["roc_auc"])
        read.clear()
        if times:
            folded(asked, runs, tmp_path / "a")
        else:
            with pytest.raises(IncomparableRuns, match="common to all runs"):
                folded(asked, runs, tmp_path / "b")
        assert len(read) == times


def test_what_is_refused_says_what_there_is_and_what_helps(tmp_path: Path) -> None:
    """Names of groups go off a quarter of the memory, and of two runs there are no fewer to compare."""
    memory = 1 << 15
    for count, grouped in ((2, True), (3, True), (10, False)):
        names = np.array([f"{group:080}" for group in RANDOM.integers(0, 60, ROWS)])
        runs = [one._replace(rows=np.arange(ROWS), groups=names if grouped else None) for one in models(5, count)]
        asked, _ = asked_of(runs, ["accuracy"])
        with pytest.raises(TooLarge, match="those that say the same as one") as raised:
            folded(asked, runs, tmp_path / str(count), memory)
        found = re.search(r"at most (\d+) bytes, .* \((.*)\), got \d+ or more: (.*)", raised.value.detail)
        assert found is not None
        left, of, advice = found.groups()
        assert (int(left) < memory // 4) is grouped
        own = "a quarter of PREVAIL_DATA_MEMORY_BYTES"
        assert of == (f"what names of groups leave of {own}" if grouped else own)
        fewer = "" if count == 2 else "compare fewer runs at a time, or "
        assert advice == f"{fewer}raise PREVAIL_DATA_MEMORY_BYTES"
