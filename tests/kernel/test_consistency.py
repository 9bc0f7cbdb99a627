"""Reported scores against every matrix there is."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mlscorecheck.check.binary import check_1_dataset_known_folds_mos, check_1_testset_no_kfold

from app.kernel.consistency.integers import Answer, check_classes, check_folds
from app.kernel.consistency.intervals import (
    Feasible,
    Fitting,
    alternatives,
    feasible_matrices,
    fitting_sizes,
    search_rows,
)
from app.kernel.consistency.reported_scores import COMPLEMENTS, SCORES, Printed, normalise, printed_range
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import silently


def feasible(p: int, n: int, printed: str = Printed.NEAREST, **scores: str) -> Feasible:
    return feasible_matrices(
        p, n, normalise({name: printed_range(text, Printed(printed)) for name, text in scores.items()})
    )


def test_published_impossible_report() -> None:
    scores = {"accuracy": "0.9567", "recall": "0.8545", "specificity": "0.9734"}
    found = feasible(100, 200, **scores)
    assert found.count == 0
    assert found.examples() == []
    assert found.implied() == {}
    theirs = check_1_testset_no_kfold(
        testset={"p": 100, "n": 200}, scores={"acc": 0.9567, "sens": 0.8545, "spec": 0.9734}, eps=1e-4
    )
    assert theirs["inconsistency"]
    assert alternatives(100, 200, scores, Printed.NEAREST) == []


def test_published_set_of_three() -> None:
    found = feasible(50, 50, f1=".80", accuracy=".80")
    assert found.count == 3
    assert found.examples() == [(39, 41), (40, 40), (41, 39)]
    low, high = found.implied()["mcc"]
    assert low == pytest.approx(0.6, abs=1e-4)
    assert high == pytest.approx(0.6005, abs=1e-4)


def test_published_truncation() -> None:
    assert feasible(10, 20, accuracy=".766").count == 0
    assert feasible(10, 20, Printed.ANY, accuracy=".766").count > 0
    assert feasible(10, 20, Printed.TRUNCATED, accuracy=".766").count == feasible(10, 20, accuracy=".767").count
    found = alternatives(10, 20, {"accuracy": ".766"}, Printed.NEAREST)
    assert [alternative.code for alternative in found] == ["truncated"]


def test_printed_numbers() -> None:
    half = printed_range("0.80")
    assert (half.low, half.high) == (Fraction(795, 1000), Fraction(805, 1000))
    cut = printed_range("-0.5", Printed.TRUNCATED)
    assert (cut.low, cut.high) == (Fraction(-6, 10), Fraction(-1, 2))
    assert printed_range("1").high == Fraction(3, 2)
    for text in ("abc", "nan", "inf"):
        with pytest.raises(ValueError, match="number"):
            printed_range(text)
    with pytest.raises(KeyError):
        normalise({"area": half})
    with pytest.raises(ValueError, match="both classes"):
        feasible(0, 5, accuracy="0.5")


@pytest.mark.parametrize("name", [*SCORES, *COMPLEMENTS])
@pytest.mark.parametrize(("p", "n"), [(7, 12), (12, 7), (1, 1), (9, 9)])
def test_every_score_finds_what_trying_all_matrices_finds(name: str, p: int, n: int) -> None:
    base = SCORES[COMPLEMENTS.get(name, name)]
    for text in ("0.67", "0.7", "0.0", "1.0", "-0.3", "0.583"):
        wanted = printed_range(text)
        expected = set()
        for tp, tn in product(range(p + 1), range(n + 1)):
            value = base.exact(tp, tn, p, n)
            if value is None:
                continue
            if name in COMPLEMENTS:
                value = 1 - value
            if wanted.holds(value, squared=base.squared):
                expected.add((tp, tn))
        found = feasible(p, n, **{name: text})
        assert found.count == len(expected)
        assert set(found.examples(10_000)) == expected


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_the_catalogue_and_grow(name: str) -> None:
    p, n = 6, 9
    key = {"f1_negative": "f1", "jaccard_negative": "jaccard"}.get(name, name)
    known = {"recall", "specificity", "precision", "npv", "f1", "jaccard", "informedness", "fowlkes_mallows"}
    values = np.full((p + 1, n + 1), np.nan)
    for tp, tn in product(range(p + 1), range(n + 1)):
        exact = SCORES[name].exact(tp, tn, p, n)
        if exact is None:
            values[tp, tn] = 0.0
            continue
        value = float(exact)
        values[tp, tn] = np.sign(value) * np.sqrt(abs(value)) if SCORES[name].squared else value
        table = Table([[tn, n - tn], [p - tp, tp]])
        metric = catalogue().of_matrices.by_name.get(key)
        if metric is not None:
            with silently():
                found = np.atleast_1d(metric(table))
            theirs = found[0 if name.endswith("_negative") else -1] if key in known else found[0]
            assert values[tp, tn] == pytest.approx(float(theirs), abs=1e-12)
        floating = SCORES[name].floating(np.array(float(tp)), np.array(float(tn)), float(p), float(n))
        assert float(floating) == pytest.approx(values[tp, tn], abs=1e-12)
    assert (np.diff(values, axis=0) >= -1e-12).all()
    assert (np.diff(values, axis=1) >= -1e-12).all()


def test_reports_of_real_matrices_are_always_consistent() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        p, n = (int(x) for x in random.integers(5, 300, 2))
        tp, tn = int(random.integers(1, p + 1)), int(random.integers(1, n + 1))
        scores = {}
        for name in ("accuracy", "f1", "mcc", "g_mean", "cohen_kappa", "npv"):
            score = SCORES[name]
            value = float(score.floating(np.array(float(tp)), np.array(float(tn)), float(p), float(n)))
            scores[name] = f"{value:.4f}"
        found = feasible(p, n, **scores)
        assert (tp, tn) in found.examples(10**6)
        for name, (low, high) in found.implied().items():
            if name in SCORES:
                value = float(SCORES[name].floating(np.array(float(tp)), np.array(float(tn)), float(p), float(n)))
                assert low - 1e-12 <= value <= high + 1e-12


def test_large_counts_need_no_table_of_all_matrices() -> None:
    found = feasible(2_000_000, 3000, accuracy="0.95", recall="0.95")
    assert found.count > 10**6
    assert len(found.examples()) == 5
    assert found.implied()["recall"][0] == pytest.approx(0.945, abs=1e-6)


@pytest.mark.parametrize("printed", Printed)
def test_sizes_that_fit_are_those_of_one_search_each(printed: Printed) -> None:
    texts = {"accuracy": "0.83", "precision": "0.71", "npv": "0.9"}
    scores = normalise({name: printed_range(text, printed) for name, text in texts.items()})
    sizes = [(p, n) for p in range(1, 25) for n in range(1, 25)]
    found = fitting_sizes(sizes, scores)
    one_by_one = [size for size in sizes if feasible_matrices(*size, scores).count]
    assert [(one.positives, one.negatives) for one in found] == one_by_one
    assert 0 < len(found) < len(sizes)
    for one in found:
        assert (one.tp, one.tn) in feasible_matrices(one.positives, one.negatives, scores).examples(10_000)
    assert search_rows([(3, 7), (9, 2)]) == 4 + 3
    assert fitting_sizes([], scores) == []


def test_many_sizes_are_searched_in_portions() -> None:
    recall = normalise({"recall": printed_range("0.9", Printed.TRUNCATED), "specificity": printed_range("0.500")})
    sizes = [(100, n) for n in range(1, 3001)]
    assert search_rows(sizes) > 1 << 17
    found = fitting_sizes(sizes, recall)
    # The share nearest to one half is within .0005 of it for even n, and for odd ones from 1001 on.
    assert [one.negatives for one in found] == [n for n in range(1, 3001) if n % 2 == 0 or n >= 1001]
    assert found[0] == Fitting(100, 2, 90, 1)


def test_alternatives_name_what_would_fit() -> None:
    # tp 40 of 50, tn 90 of 150
    recall, precision, specificity = 40 / 50, 40 / 100, 90 / 150
    true = {"recall": f"{recall:.4f}", "precision": f"{precision:.4f}", "specificity": f"{specificity:.4f}"}
    assert feasible(50, 150, **true).count == 1
    swapped = {"recall": true["specificity"], "specificity": true["recall"], "accuracy": "0.6500"}
    codes = {a.code for a in alternatives(50, 150, swapped, Printed.NEAREST)}
    assert {"swapped_classes", "swapped_counts"} <= codes
    turned = {"recall": "0.4000", "precision": "0.8000", "accuracy": "0.6500"}
    assert feasible(50, 150, **turned).count == 0
    assert "transposed" in {a.code for a in alternatives(50, 150, turned, Printed.NEAREST)}
    never = {"recall": "0.000", "precision": "0.000", "specificity": "1.000"}
    assert feasible(50, 150, **never).count == 0
    assert "undefined_as_zero" in {a.code for a in alternatives(50, 150, never, Printed.NEAREST)}


def test_classes() -> None:
    matrix = np.array([[30, 5, 5], [4, 20, 6], [1, 2, 27]])
    table = Table(matrix)
    actual = [40, 30, 30]
    accuracy = {"accuracy": printed_range("0.7700"), "balanced_accuracy": printed_range(f"{table.recall.mean():.4f}")}
    by_class = {("recall", k): printed_range(f"{table.recall[k]:.4f}") for k in range(3)}
    by_class |= {("precision", k): printed_range(f"{table.precision[k]:.4f}") for k in range(3)}
    by_class |= {("f1", k): printed_range(f"{table.f1[k]:.4f}") for k in range(3)}
    found = check_classes(actual, accuracy, by_class)
    assert found.answer is Answer.CONSISTENT
    assert found.example is not None
    np.testing.assert_array_equal(found.example.sum(1), actual)
    np.testing.assert_allclose(np.diagonal(found.example), np.diagonal(matrix))
    impossible = by_class | {("precision", 0): printed_range("0.7000")}
    assert check_classes(actual, accuracy, impossible).answer is Answer.INCONSISTENT
    assert check_classes(actual, {"accuracy": printed_range("0.7750")}, {}).answer is Answer.INCONSISTENT
    with pytest.raises(KeyError):
        check_classes(actual, {"macro_precision": printed_range("0.7")}, {})
    with pytest.raises(ValueError, match="needs items"):
        check_classes([3, 0], {}, {})


@pytest.mark.parametrize("name", ["recall", "precision", "f1", "jaccard", "specificity", "npv"])
def test_scores_of_a_class_against_all_matrices(name: str) -> None:
    """Which values printed to two digits some matrix of 3, 2 and 2 has, for the first class."""
    rows = [[row for row in product(range(size + 1), repeat=3) if sum(row) == size] for size in (3, 2, 2)]
    matrices = np.array(list(product(*rows)), dtype=np.float64)
    with silently():
        values = getattr(Table(matrices), name)[:, 0]
    values = values[np.isfinite(values)]
    for cut in range(0, 101, 4):
        text = f"{cut / 100:.2f}"
        wanted = printed_range(text)
        there = any(float(wanted.low) - 1e-12 <= value <= float(wanted.high) + 1e-12 for value in values)
        found = check_classes([3, 2, 2], {}, {(name, 0): wanted})
        assert found.answer is (Answer.CONSISTENT if there else Answer.INCONSISTENT), text


def test_implied_ranges_are_those_of_all_matrices() -> None:
    rows = [[row for row in product(range(size + 1), repeat=3) if sum(row) == size] for size in (4, 3, 3)]
    table = Table(np.array(list(product(*rows)), dtype=np.float64))
    with silently():
        fits = (np.abs(table.precision[:, 0] - 0.75) <= 0.005) & (np.abs(table.recall[:, 1] - 0.67) <= 0.005)
        values = {"accuracy": table.accuracy, "balanced_accuracy": table.recall.mean(axis=1)}
        values |= {f"recall@{k}": table.recall[:, k] for k in range(3)}
    wanted = {("precision", 0): printed_range("0.75"), ("recall", 1): printed_range("0.67")}
    found = check_classes([4, 3, 3], {}, wanted)
    assert set(found.implied) == set(values)
    for name, ends in found.implied.items():
        assert ends == pytest.approx((values[name][fits].min(), values[name][fits].max())), name


@pytest.mark.parametrize("recall", ["0.7500", "0.7625", "0.7525", "0.7417"])
def test_means_over_folds_as_another_library_has_them(recall: str) -> None:
    folds = [(10, 20), (10, 20), (12, 18)]
    scores = {"sens": float(recall), "acc": 0.8333}
    theirs = check_1_dataset_known_folds_mos(
        dataset={"p": 32, "n": 58},
        folding={"folds": [{"p": p, "n": n} for p, n in folds]},
        scores=scores,
        eps=5e-5,
    )
    found = check_folds(folds, {"recall": printed_range(recall), "accuracy": printed_range("0.8333")})
    assert (found.answer is Answer.INCONSISTENT) == theirs["inconsistency"]


def test_implied_means_over_folds() -> None:
    found = check_folds([(2, 3), (3, 2)], {"recall": printed_range("0.75")})
    # tp of 2 and of 3 with (a/2 + b/3)/2 in [.745, .755]: none but a half and one.
    assert found.implied["recall"] == pytest.approx((0.75, 0.75))
    assert found.implied["specificity"] == pytest.approx((0, 1))
    assert found.implied["balanced_accuracy"] == pytest.approx((0.375, 0.875))


def test_folds() -> None:
    folds = [(10, 20), (10, 20), (11, 19)]
    tp, tn = [8, 7, 9], [18, 20, 15]
    recall = sum(t / p for t, (p, _) in zip(tp, folds, strict=True)) / 3
    accuracy = sum((a + b) / (p + n) for a, b, (p, n) in zip(tp, tn, folds, strict=True)) / 3
    means = {"recall": printed_range(f"{recall:.4f}"), "accuracy": printed_range(f"{accuracy:.4f}")}
    found = check_folds(folds, means)
    assert found.answer is Answer.CONSISTENT
    assert found.example is not None
    assert found.example.shape == (3, 2)
    assert check_folds([(10, 20)] * 3, {"accuracy": printed_range("0.7500")}).answer is Answer.INCONSISTENT
    both = {"recall": printed_range("1.000"), "specificity": printed_range("1.000"), "accuracy": printed_range("0.900")}
    assert check_folds(folds, both).answer is Answer.INCONSISTENT
    with pytest.raises(KeyError):
        check_folds(folds, {"f1": printed_range("0.5")})
    with pytest.raises(ValueError, match="both classes"):
        check_folds([(0, 5)], {})
