"""Folded samples in groups beside the influences of the samples, summed within their groups, and exact fractions."""

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from app.kernel.folds import groups as group_sums
from app.kernel.folds import runs
from app.kernel.folds.entries import Groups
from app.kernel.folds.folded import FoldedSamples, FoldedScores
from app.kernel.folds.groups import GroupInfluence, GroupSums
from app.kernel.folds.metrics import folded_values
from app.kernel.folds.scores import OrderFold, ScoresFold
from app.kernel.folds.sums import COSINE, LOG_LOSS, PHI, RULED_OUT, SQUARED_ERROR, SURE
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families import calibration, imcp, proper_scores
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.arrays import silently
from app.kernel.samples.losses import sums_by_code
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import Influences
from tests.kernel.folds.problems import PROBLEMS, Problem, merged

ROOMY, TINY = 1 << 22, 1 << 10
NAMES = ["two columns", "one column tied", "one column of float32", "all equal", "three classes", "three classes tied"]


@pytest.fixture(autouse=True)
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and blocks of few samples, and few entries that are gathered: few samples make many of them."""
    monkeypatch.setattr(runs, "_LEAST", 16)
    monkeypatch.setattr(group_sums, "_GATHERED", 64)


def groups_of(problem: Problem, n_groups: int = 23) -> Groups:
    """A group for each sample, of unequal sizes, by any number."""
    random = np.random.default_rng(5)
    numbers = random.integers(0, 2**64, n_groups, dtype=np.uint64)
    return numbers.take((n_groups * random.random(problem.y.size) ** 2).astype(np.intp))


def folded(problem: Problem, groups: Groups, folder: Path, budget: int = TINY, step: int = 90) -> FoldedScores:
    with ScoresFold(problem.classes, budget, folder, grouped=True) as fold:
        for start in range(0, problem.y.size, step):
            part = slice(start, start + step)
            fold.add(problem.y[part], problem.given[part], groups[part])
        made = fold.finish()
        told(made)
    return made


MEANS = [
    (proper_scores.log_loss, LOG_LOSS),
    (proper_scores.brier_score, SQUARED_ERROR),
    (proper_scores.spherical_score, COSINE),
    (imcp.au_mcp, PHI),
]
CLASS_MEANS = [
    (proper_scores.balanced_log_loss, LOG_LOSS),
    (proper_scores.balanced_brier_score, SQUARED_ERROR),
    (imcp.au_imcp, PHI),
]
SHARES = [
    (imcp.fraction_correct_certain, [SURE], False),
    (imcp.fraction_incorrect_certain, [RULED_OUT], False),
    (imcp.fraction_uncertain, [SURE, RULED_OUT], True),
]
METRICS: dict[str, Metric[Scores]] = {
    metric.key: metric
    for metric in (roc_auc, imcp.mean_phi, *(one for one, _ in (*MEANS, *CLASS_MEANS)), *(one for one, *_ in SHARES))
}
Found = dict[tuple[str, int | None], GroupInfluence]


def influences(scores: FoldedSamples) -> Found:
    """What groups add to each value, by metric and class."""
    found: Found = {
        (roc_auc.key, code): scores.ranking(code).area_of_groups.influence
        for code in range(scores.n_classes)
        if 0 < scores.actual[code] < scores.n_samples
    }
    if not isinstance(scores, FoldedScores) or scores.sums_of_groups is None:
        return found
    sums = scores.sums_of_groups
    found |= {(metric.key, None): sums.mean(kind) for metric, kind in MEANS}
    found |= {(metric.key, None): sums.class_means(kind) for metric, kind in CLASS_MEANS}
    found |= {(imcp.mean_phi.key, code): sums.members(PHI, code) for code in range(scores.n_classes)}
    return found | {(metric.key, None): sums.share(rows, rest=rest) for metric, rows, rest in SHARES}


def told(scores: FoldedSamples) -> dict[tuple[str, int | None], tuple[bytes, bytes]]:
    return {key: (one.sums.tobytes(), one.about.tobytes()) for key, one in influences(scores).items()}


@pytest.mark.parametrize("name", NAMES)
def test_influences_are_those_of_the_samples(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    groups = groups_of(problem)
    found, grouping = influences(folded(problem, groups, tmp_path)), Grouping.of(groups)
    samples = Influences(Scores(problem.y, problem.rows))
    assert len(found) == 10 + 2 * problem.classes
    for (key, code), one in found.items():
        with silently():
            line = samples.of(METRICS[key], code)
        assert line is not None
        expected = sums_by_code(grouping.codes, line.influence, grouping.n_groups)
        np.testing.assert_allclose(one.sums, expected, rtol=1e-9, atol=1e-15, err_msg=key)
        if one.sums.any():
            about = sums_by_code(grouping.codes, (line.influence != 0).astype(float), grouping.n_groups)
            np.testing.assert_array_equal(one.about, about, err_msg=key)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_without_bounds_have_them_too(classes: int, tmp_path: Path) -> None:
    problem = PROBLEMS["one column tied" if classes == 2 else "three classes tied"]
    groups, logits = groups_of(problem), (10.0 * problem.rows - 3.0).round(1)
    with OrderFold(classes, TINY, tmp_path, grouped=True) as fold:
        for part in np.array_split(np.random.default_rng(2).permutation(problem.y.size), 5):
            fold.add(problem.y[part], logits[part, 1] if classes == 2 else logits[part], groups[part])
        found = influences(fold.finish())
    whole = Scores.of_scores(problem.y, logits[:, 1]) if classes == 2 else Scores.of_class_scores(problem.y, logits)
    samples, grouping = Influences(whole), Grouping.of(groups)
    for (_, code), one in found.items():
        line = samples.of(roc_auc, code)
        assert line is not None
        expected = sums_by_code(grouping.codes, line.influence, grouping.n_groups)
        np.testing.assert_allclose(one.sums, expected, rtol=1e-9, atol=1e-15)
    assert len(found) == classes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one column tied", "two columns", "three classes"])
def test_no_split_and_no_order_shows(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    groups, random, spilled = groups_of(problem), np.random.default_rng(7), 0
    expected = told(folded(problem, groups, tmp_path, ROOMY, problem.y.size))
    for _ in range(8):
        cuts = np.sort(random.integers(0, problem.y.size, random.integers(0, 6)))
        states = []
        for part in np.split(random.permutation(problem.y.size), cuts):
            folder = tmp_path if random.random() < 0.7 else None
            fold = ScoresFold(problem.classes, int(random.choice([TINY, 1 << 14, ROOMY])), folder, grouped=True)
            for batch in np.array_split(part, random.integers(1, 4)):
                fold.add(problem.y[batch], problem.given[batch], groups[batch])
            states.append(pickle.loads(pickle.dumps(fold)) if random.random() < 0.5 else fold)  # noqa: S301 - its own
        with merged(states, random) as fold:
            spilled += len(list(tmp_path.iterdir()))
            assert told(fold.finish()) == expected
        assert not list(tmp_path.iterdir())
    assert spilled > 8


def test_rows_that_are_pairs_and_rows_that_are_not_fold_together(tmp_path: Path) -> None:
    """They have orders of their own, the latter one more for the highest probability, which asks for no groups."""
    pairs, rows = PROBLEMS["one column tied"], PROBLEMS["two columns"]
    off = (rows.rows * (1.0 - 1e-9)).round(2)
    off[:, 0] *= 1.0 - 1e-9
    together = Problem(np.concatenate([pairs.y, rows.y]), pairs.given, np.concatenate([pairs.rows, off]))
    groups = groups_of(together, 5)
    grouping = Grouping.of(groups)
    with ScoresFold(2, TINY, tmp_path, grouped=True) as fold:
        fold.add(rows.y, off, groups[400:]).add(pairs.y, pairs.given, groups[:400])
        made = fold.finish()
        values, found = folded_values(made), influences(made)
    scores = Scores(together.y, together.rows)
    samples = Influences(scores)
    for code in (0, 1):
        line = samples.of(roc_auc, code)
        assert line is not None
        expected = sums_by_code(grouping.codes, line.influence, grouping.n_groups)
        np.testing.assert_allclose(found[roc_auc.key, code].sums, expected, rtol=1e-9, atol=1e-15)
    adaptive = calibration.adaptive_calibration_error
    assert values[adaptive.key] == pytest.approx(adaptive.compute(scores), rel=1e-11)


def test_areas_are_exact_fractions(tmp_path: Path) -> None:
    """Of few samples with ties, by counting pairs."""
    y, score = np.array([0, 1, 1, 0, 1, 0, 1, 0, 0]), np.array([1, 4, 4, 4, 3, 3, 2, 1, 0]) / 8
    groups = np.array([1, 1, 2, 3, 3, 2, 2, 1, 3], dtype=np.uint64)
    made = folded(Problem(y, score, np.column_stack([1 - score, score])), groups, tmp_path, step=2)
    found = made.ranking(1).area_of_groups.influence.sums
    won = [[Fraction(int(a > b) * 2 + int(a == b), 2) for b in score[y == 0]] for a in score[y == 1]]
    area = sum(map(sum, won), Fraction(0)) / 20
    sums = [0.0, 0.0, 0.0]
    for row, group in zip(won, groups[y == 1], strict=True):
        sums[int(group) - 1] += float(sum(row) / 5 - area) / 12**0.5
    for column, group in zip(zip(*won, strict=True), groups[y == 0], strict=True):
        sums[int(group) - 1] += float(sum(column) / 4 - area) / 20**0.5
    np.testing.assert_allclose(found, sums, rtol=1e-13)


@pytest.mark.slow
def test_one_score_of_all_samples_is_looked_at_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 20_000
    random = np.random.default_rng(3)
    y, groups = random.integers(0, 2, size), random.integers(0, 50, size).astype(np.uint64)
    problem = Problem(y, np.full(size, 0.25), np.full((size, 2), [0.75, 0.25]))
    made = folded(problem, groups, tmp_path, step=1000)
    assert not made.ranking(1).area_of_groups.influence.sums.any()
    with ScoresFold(2, TINY, tmp_path, grouped=True) as fold:
        for start in range(0, size, 1000):
            fold.add(y[start : start + 1000], problem.given[start : start + 1000], groups[start : start + 1000])
        parts = [*fold.finish()._stretches(1)]
    # Each of the 50 groups twice, and what came of the last run.
    assert max(len(part.in_groups().groups) for part in parts) < 1000


def test_sums_of_groups_are_those_of_dictionaries() -> None:
    random = np.random.default_rng(9)
    groups, cells = random.integers(0, 40, 3000).astype(np.uint64) << np.uint64(58), random.integers(0, 3, 3000)
    values, times = random.integers(0, 1 << 61, (2, 3000)), random.integers(1, 3, 3000)
    expected: dict[tuple[int, int], list[int]] = {}
    for row in range(3000):
        one = expected.setdefault((int(groups[row]), int(cells[row])), [0, 0, 0])
        for place, more in enumerate((1, *values[:, row].tolist())):
            one[place] += int(more) * int(times[row])
    states = [
        GroupSums(2).add(groups[part], cells[part], values[:, part], times[part])
        for part in np.array_split(random.permutation(3000), 11)
    ]
    whole = states[0]
    for state in states[1:]:
        whole.merge(pickle.loads(pickle.dumps(state)))  # noqa: S301 - its own
    found = whole.read()
    keys = list(zip(found.groups.tolist(), found.cells.tolist(), strict=True))
    assert keys == sorted(expected)
    rows = zip(found.counts.tolist(), found.total(0), found.total(1), strict=True)
    assert [list(row) for row in rows] == [expected[key] for key in keys]
    assert whole.n_groups == len({group for group, _ in expected})


def test_groups_are_of_all_samples_or_of_none(tmp_path: Path) -> None:
    one = np.array([0.2, 0.7])
    with pytest.raises(ValueError, match="groups of 2 samples"):
        ScoresFold(2, ROOMY, None, grouped=True).add(np.array([0, 1]), one)
    with pytest.raises(ValueError, match="without groups"):
        OrderFold(2, ROOMY, None).add(np.array([0, 1]), one, np.zeros(2, np.uint64))
    with pytest.raises(ValueError, match="groups of 2 samples"):
        OrderFold(2, ROOMY, None, grouped=True).add(np.array([0, 1]), one, np.zeros(3, np.uint64))
    with pytest.raises(ValueError, match="cannot be merged"):
        ScoresFold(2, ROOMY, None).merge(ScoresFold(2, ROOMY, None, grouped=True))
