"""Reported scores against every matrix there is."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tests.kernel.exact_agreement
import tests.kernel.exact_classes
import tests.kernel.exact_information
import tests.kernel.exact_overall  # noqa: F401 - importing them fills CLASS and OVERALL
from app.kernel.consistency.integer_programmes import (
    NotLinearError,
    check_classes,
    check_folds,
    linear_means,
    linear_scores,
)
from app.kernel.consistency.reported_scores import (
    Printed,
    Score,
    ScoreRange,
    printed_range,
    readings,
    score_of,
    scores_of_two_classes,
)
from app.kernel.consistency.two_classes import Feasible, Fitting, feasible_matrices, fitting_sizes, search_rows
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import silently
from tests.bank import each
from tests.kernel.exact import CLASS, OVERALL, Infinite, Undefined, Whole, decimal, fractions

SCORES = scores_of_two_classes()


def ranges(texts: dict[str, str], printed: str = Printed.NEAREST) -> list[tuple[Score, ScoreRange]]:
    return [(SCORES[name], printed_range(text, Printed(printed))) for name, text in texts.items()]


def feasible(p: int, n: int, printed: str = Printed.NEAREST, **scores: str) -> Feasible:
    return feasible_matrices(p, n, ranges(scores, printed))


def of_classes(texts: dict[str, str]) -> list[tuple[Score, ScoreRange]]:
    """Scores of classes by their index behind an @."""
    found = []
    for name, text in texts.items():
        key, _, index = name.partition("@")
        of = int(index) if index else None
        found.append((score_of(key, catalogue().by_name[key].card.defaults, of), printed_range(text)))
    return found


def alternatives(p: int, n: int, texts: dict[str, str], printed: Printed) -> dict[str, int]:
    """Readings that some matrix fits, with how many do."""
    found = {}
    for reading in readings([(SCORES[name], text) for name, text in texts.items()], printed):
        sizes = (n, p) if reading.sizes_exchanged else (p, n)
        count = feasible_matrices(*sizes, reading.reported, undefined_as_zero=reading.undefined_as_zero).count
        if count:
            found[reading.code] = count
    return found


def test_published_impossible_report() -> None:
    from mlscorecheck.check.binary import check_1_testset_no_kfold

    scores = {"accuracy": "0.9567", "recall": "0.8545", "specificity": "0.9734"}
    found = feasible(100, 200, **scores)
    assert found.count == 0
    assert found.examples() == []
    assert found.implied() == {}
    theirs = check_1_testset_no_kfold(
        testset={"p": 100, "n": 200}, scores={"acc": 0.9567, "sens": 0.8545, "spec": 0.9734}, eps=1e-4
    )
    assert theirs["inconsistency"]
    assert alternatives(100, 200, scores, Printed.NEAREST) == {}


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
    assert list(alternatives(10, 20, {"accuracy": ".766"}, Printed.NEAREST)) == ["truncated"]


def test_printed_numbers() -> None:
    half = printed_range("0.80")
    assert (half.low, half.high) == (Fraction(795, 1000), Fraction(805, 1000))
    cut = printed_range("-0.5", Printed.TRUNCATED)
    assert (cut.low, cut.high) == (Fraction(-6, 10), Fraction(-1, 2))
    for text in ("0.0", "-0.0"):
        cut = printed_range(text, Printed.TRUNCATED)
        assert (cut.low, cut.high) == (Fraction(-1, 10), Fraction(1, 10))
    assert printed_range("1").high == Fraction(3, 2)


def witnessed(score: Score, tp: int, tn: int, p: int, n: int) -> Any:
    """The definition from the literature, in exact fractions or 60 digits; None where there is no value."""
    counts = [[tn, n - tn], [p - tp, tp]]
    whole = Whole(fractions(np.array(counts).T if score.transposed else np.array(counts)))
    try:
        return OVERALL[score.key](whole) if score.of is None else CLASS[score.key](whole.classes[score.of])
    except (Undefined, Infinite):
        return None


# Shares, ratios, and values below 0, with few and with many digits.
PRINTED = ("0.67", "0.7", "0.0", "1.0", "-0.3", "0.583", "0.2500", "2", "3.5")


def also_transposed() -> list[Score]:
    """Scores, and the same with rows and columns exchanged, as when recall was printed as precision."""
    return [*SCORES.values(), *(score.turned() for score in SCORES.values() if score.exact.transposable)]


@pytest.mark.slow
@each("score", also_transposed(), ids=str)
def test_every_score_finds_what_trying_all_matrices_finds(score: Score) -> None:
    for p, n in ((4, 7), (6, 3), (1, 1)):
        values = {(tp, tn): witnessed(score, tp, tn, p, n) for tp, tn in product(range(p + 1), range(n + 1))}
        for text in PRINTED:
            wanted = printed_range(text)
            low, high = (decimal(end) for end in (wanted.low, wanted.high))
            expected = {cell for cell, value in values.items() if value is not None and low <= decimal(value) <= high}
            found = feasible_matrices(p, n, [(score, wanted)])
            assert set(found.examples(10_000)) == expected, (text, p, n)
            assert found.count == len(expected)


@each("key", ("fdr", "false_omission_rate", "fn_per_fp", "macro_precision", "mcc"))
def test_what_does_not_exist_may_have_been_printed_as_0(key: str) -> None:
    """Wherever the values beside it are: at 1, or above 0 between two that were printed as 0."""
    score, wanted = SCORES[key], printed_range("0.00")
    for p, n in ((4, 7), (6, 3), (1, 1)):
        cells = [*product(range(p + 1), range(n + 1))]
        values = {(tp, tn): Fraction(0) if (one := score.value(tp, tn, p, n)) is None else one for tp, tn in cells}
        infinite = {(tp, tn) for tp, tn in cells if score.is_infinite(tp, tn, p, n)}
        expected = {
            cell
            for cell, value in values.items()
            if cell not in infinite and wanted.holds(value, squared=score.exact.squared)
        }
        found = feasible_matrices(p, n, [(score, wanted)], undefined_as_zero=True)
        assert set(found.examples(100)) == expected, (p, n)
        assert found.count == len(expected)
        assert len(fitting_sizes([(p, n), (n, p)], [(score, wanted)], undefined_as_zero=True)) == 2


PARAMETERS = [
    ("f_beta", {"beta": 2.0}),
    ("f_beta", {"beta": 0.5}),
    ("f_beta", {"beta": 0.1}),
    ("f_beta_negative", {"beta": 3.0}),
    ("macro_f_beta", {"beta": 2.0, "undefined": "strict"}),
    ("micro_f_beta", {"beta": 2.0}),
    ("tversky_index", {"alpha": 0.2, "beta": 1.5}),
    ("net_benefit", {"threshold": 0.2}),
    ("weighted_balanced_accuracy", {"weight": 0.3}),
    ("weighted_h_mean", {"beta": 2.0}),
]


@each(("key", "parameters"), PARAMETERS)
def test_scores_with_parameters(key: str, parameters: dict[str, Any]) -> None:
    """Held against the metric itself on every matrix, far from the ends of what a printed value stands for."""
    metric, score = catalogue().of_matrices.by_name[key], score_of(key, parameters, 1)
    p, n = 8, 11
    cells = list(product(range(p + 1), range(n + 1)))
    tables = Table(np.array([[[tn, n - tn], [p - tp, tp]] for tp, tn in cells], dtype=float))
    with silently():
        values = metric(tables, **parameters)
    values = values[:, 1] if metric.card.scope is Scope.CLASS else values
    for text in ("0.61", "0.5", "0.875", "-0.1", "0.333"):
        wanted = printed_range(text)
        inside = (values >= float(wanted.low) - 1e-12) & (values <= float(wanted.high) + 1e-12)
        found = feasible_matrices(p, n, [(score, wanted)])
        assert set(found.examples(10_000)) == {cell for cell, is_inside in zip(cells, inside, strict=True) if is_inside}


def test_what_has_no_exact_form_is_not_known() -> None:
    for key, parameters in (("roc_similarity", {}), ("macro_precision", {"undefined": "zero"})):
        with pytest.raises(KeyError):
            score_of(key, parameters, None)


def test_what_a_report_of_two_classes_is_made_of_is_known() -> None:
    wanted = {
        "h_mean", "upm", "markedness", "informedness", "likelihood_ratio_positive", "likelihood_ratio_negative",
        "diagnostic_odds_ratio", "f_beta", "macro_f1", "macro_precision", "gwet_ac1", "jaccard_negative", "error_rate",
    }  # fmt: skip
    assert wanted <= set(SCORES)


@each("score", also_transposed(), ids=str)
def test_scores_rise_or_fall(score: Score) -> None:
    """With each of the two counts while the other stays, undefined at the ends at most: what searching rests on."""
    for p, n in product((1, 2, 6, 25, 45), (1, 3, 9, 30, 60)):
        tp, tn = np.meshgrid(np.arange(p + 1.0), np.arange(n + 1.0), indexing="ij")
        values = score.floating(tp, tn, np.full(tp.shape, float(p)), np.full(tp.shape, float(n)))
        for lines in (np.clip(values, -1e9, 1e9), np.clip(values.T, -1e9, 1e9)):
            assert not np.isnan(lines[:, 1:-1]).any()
            steps = np.diff(lines, axis=1)
            rises, falls = (((sign * steps >= -1e-12) | np.isnan(steps)).all(axis=1) for sign in (1, -1))
            assert (rises | falls).all(), (p, n)


@each("name", SCORES)
def test_scores_are_those_of_the_catalogue(name: str) -> None:
    p, n, score = 6, 9, SCORES[name]
    metric = catalogue().of_matrices.by_name[score.key]
    cells = list(product(range(p + 1), range(n + 1)))
    with silently():
        values = metric(Table(np.array([[[tn, n - tn], [p - tp, tp]] for tp, tn in cells], dtype=float)))
    values = values if score.of is None else values[:, score.of]
    tp, tn = np.array(cells, dtype=float).T
    floating = score.floating(tp, tn, np.full(len(cells), float(p)), np.full(len(cells), float(n)))
    np.testing.assert_allclose(floating, values, atol=1e-12)
    for cell, value in zip(cells, values.tolist(), strict=True):
        exact = score.value(*cell, p, n)
        assert (exact is None) == (not np.isfinite(value))
        if exact is not None:
            found = float(exact)
            assert (np.sign(found) * np.sqrt(abs(found)) if score.exact.squared else found) == pytest.approx(
                value, abs=1e-12
            )


def test_reports_of_real_matrices_are_always_consistent() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        p, n = (int(x) for x in random.integers(5, 300, 2))
        tp, tn = int(random.integers(1, p + 1)), int(random.integers(1, n + 1))
        scores = {}
        for name in ("accuracy", "f1", "mcc", "g_mean", "cohen_kappa", "npv"):
            scores[name] = f"{float(SCORES[name].floating(*np.array([tp, tn, p, n], dtype=float)[:, None])[0]):.4f}"
        found = feasible(p, n, **scores)
        assert (tp, tn) in found.examples(10**6)
        for name, (low, high) in found.implied().items():
            value = SCORES[name].floating(*np.array([tp, tn, p, n], dtype=float)[:, None])[0]
            assert np.isnan(value) or low - 1e-12 <= value <= high + 1e-12


def test_large_counts_need_no_table_of_all_matrices() -> None:
    found = feasible(2_000_000, 3000, accuracy="0.95", recall="0.95")
    assert found.count > 10**6
    assert len(found.examples()) == 5
    assert found.implied()["recall"][0] == pytest.approx(0.945, abs=1e-6)


@pytest.mark.parametrize("printed", Printed)
def test_sizes_that_fit_are_those_of_one_search_each(printed: Printed) -> None:
    texts = {"accuracy": "0.83", "precision": "0.71", "npv": "0.9"}
    scores = ranges(texts, printed)
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
    recall = [*ranges({"recall": "0.9"}, Printed.TRUNCATED), *ranges({"specificity": "0.500"})]
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
    assert {"swapped_classes", "swapped_counts"} <= alternatives(50, 150, swapped, Printed.NEAREST).keys()
    turned = {"recall": "0.4000", "precision": "0.8000", "accuracy": "0.6500"}
    assert feasible(50, 150, **turned).count == 0
    assert "transposed" in alternatives(50, 150, turned, Printed.NEAREST)
    never = {"recall": "0.000", "precision": "0.000", "specificity": "1.000"}
    assert feasible(50, 150, **never).count == 0
    assert "undefined_as_zero" in alternatives(50, 150, never, Printed.NEAREST)


def test_classes() -> None:
    matrix = np.array([[30, 5, 5], [4, 20, 6], [1, 2, 27]])
    table = Table(matrix)
    actual = [40, 30, 30]
    overall = {"accuracy": "0.7700", "balanced_accuracy": f"{table.recall.mean():.4f}"}
    by_class = {
        f"{key}@{k}": f"{getattr(table, key)[k]:.4f}" for key in ("recall", "precision", "f1") for k in range(3)
    }
    found = check_classes(actual, of_classes(overall | by_class))
    assert found.consistent is True
    assert found.example is not None
    np.testing.assert_array_equal(found.example.sum(1), actual)
    np.testing.assert_allclose(np.diagonal(found.example), np.diagonal(matrix))
    impossible = overall | by_class | {"precision@0": "0.7000"}
    assert check_classes(actual, of_classes(impossible)).consistent is False
    assert check_classes(actual, of_classes({"accuracy": "0.7750"})).consistent is False
    with pytest.raises(NotLinearError):
        check_classes(actual, of_classes({"macro_precision": "0.7"}))


# Each text is the score of some matrix with these row sums; the first, of [[18, 27, 37], [16, 37, 3], [11, 132, 12]].
@pytest.mark.parametrize(
    ("actual", "texts"),
    [
        ([82, 56, 155], {"macro_fnr": "0.68078472"}),
        ([2485, 1911], {"balanced_accuracy_ovr@1": "0.55129900"}),
        ([6372, 612], {"f_beta_negative@1": "0.89685012", "balanced_accuracy_ovr@1": "0.90498874"}),
        ([4936, 6960, 8532, 2803], {"error_rate_ovr@0": "0.34617537"}),
    ],
)
def test_many_digits_of_real_matrices_are_possible(actual: list[int], texts: dict[str, str]) -> None:
    found = check_classes(actual, of_classes(texts))
    assert found.consistent is True
    assert found.example is not None
    np.testing.assert_array_equal(found.example.sum(axis=1), actual)


def test_counts_that_fit_up_to_rounding_are_no_example() -> None:
    """Means over folds near 0.4093 are as near to each other as the solver can tell."""
    found = check_folds(
        [(1870, 615), (687, 510), (634, 446), (1647, 1573), (1766, 434)],
        ranges({"micro_specificity": "0.409256317664"}),
    )
    assert (found.consistent, found.example, found.implied) == (None, None, {})


LINEAR = linear_scores(3)


def test_what_can_be_said_of_several_classes() -> None:
    assert {
        "accuracy", "error_rate", "balanced_accuracy", "adjusted_balanced_accuracy", "macro_fnr", "recall", "precision",
        "f1", "f_beta", "jaccard", "specificity", "npv", "fpr", "fdr", "informedness", "net_benefit", "lift",
        "tversky_index", "accuracy_ovr", "bennett_s", "cohen_kappa",
    } <= set(LINEAR)  # fmt: skip
    assert not {"mcc", "h_mean", "macro_f1", "markedness", "upm", "macro_precision"} & set(LINEAR)
    assert {"accuracy", "recall", "specificity", "fnr", "informedness", "net_benefit"} <= set(linear_means())
    assert not {"f1", "precision", "mcc", "g_mean"} & set(linear_means())


@pytest.mark.slow
@each("name", LINEAR)
def test_scores_of_several_classes_against_all_matrices(name: str) -> None:
    """Which values printed to two digits some matrix of 3, 2 and 2 has, for the first class or for all."""
    rows = [[row for row in product(range(size + 1), repeat=3) if sum(row) == size] for size in (3, 2, 2)]
    matrices = np.array(list(product(*rows)), dtype=np.float64)
    metric = catalogue().of_matrices.by_name[name]
    of_class = metric.card.scope is Scope.CLASS
    with silently():
        values = metric(Table(matrices))
    values = values[:, 0] if of_class else values
    values = values[np.isfinite(values)]
    # Some are shares of sevenths, thirds or halves, and of some scores only; each score is asked for a third of them.
    texts = ("-0.17", "0.00", "0.14", "0.33", "0.50", "0.57", "0.67", "0.83", "1.00", "1.20")
    for text in texts[list(LINEAR).index(name) % 3 :: 3]:
        wanted = printed_range(text)
        there = any(float(wanted.low) - 1e-12 <= value <= float(wanted.high) + 1e-12 for value in values)
        found = check_classes([3, 2, 2], of_classes({f"{name}@0" if of_class else name: text}))
        assert found.consistent is there, text


def test_implied_ranges_are_those_of_all_matrices() -> None:
    rows = [[row for row in product(range(size + 1), repeat=3) if sum(row) == size] for size in (4, 3, 3)]
    table = Table(np.array(list(product(*rows)), dtype=np.float64))
    with silently():
        fits = (np.abs(table.precision[:, 0] - 0.75) <= 0.005) & (np.abs(table.recall[:, 1] - 0.67) <= 0.005)
        values = {"accuracy": table.accuracy, "balanced_accuracy": table.recall.mean(axis=1)}
        values |= {f"recall@{k}": table.recall[:, k] for k in range(3)}
    found = check_classes([4, 3, 3], of_classes({"precision@0": "0.75", "recall@1": "0.67"}))
    assert set(found.implied) == set(values)
    for name, ends in found.implied.items():
        assert ends == pytest.approx((values[name][fits].min(), values[name][fits].max())), name


def test_implied_ranges_are_exact_where_values_are_close() -> None:
    recalls = np.meshgrid(*(np.arange(size + 1) / size for size in (37, 41, 43)))
    means = np.mean(recalls, axis=0)
    fits = means[np.abs(means - 0.467) <= 0.0005]
    found = check_classes([37, 41, 43], of_classes({"balanced_accuracy": "0.467"}))
    assert found.implied["balanced_accuracy"] == pytest.approx((fits.min(), fits.max()), abs=1e-6)


# The other library solves with PuLP as it was before its fourth version.
@pytest.mark.filterwarnings("ignore:.*PuLP 4.0:DeprecationWarning")
@pytest.mark.parametrize("recall", ["0.7500", "0.7625", "0.7525", "0.7417"])
def test_means_over_folds_as_another_library_has_them(recall: str) -> None:
    from mlscorecheck.check.binary import check_1_dataset_known_folds_mos

    folds = [(10, 20), (10, 20), (12, 18)]
    scores = {"sens": float(recall), "acc": 0.8333}
    theirs = check_1_dataset_known_folds_mos(
        dataset={"p": 32, "n": 58},
        folding={"folds": [{"p": p, "n": n} for p, n in folds]},
        scores=scores,
        eps=5e-5,
    )
    found = check_folds(folds, ranges({"recall": recall, "accuracy": "0.8333"}))
    assert (found.consistent is False) == theirs["inconsistency"]


def test_implied_means_over_folds() -> None:
    found = check_folds([(2, 3), (3, 2)], ranges({"recall": "0.75"}))
    # tp of 2 and of 3 with (a/2 + b/3)/2 in [.745, .755]: none but a half and one.
    assert found.implied["recall"] == pytest.approx((0.75, 0.75))
    assert found.implied["specificity"] == pytest.approx((0, 1))
    assert found.implied["balanced_accuracy"] == pytest.approx((0.375, 0.875))


def test_folds() -> None:
    folds = [(10, 20), (10, 20), (11, 19)]
    tp, tn = [8, 7, 9], [18, 20, 15]
    recall = sum(t / p for t, (p, _) in zip(tp, folds, strict=True)) / 3
    accuracy = sum((a + b) / (p + n) for a, b, (p, n) in zip(tp, tn, folds, strict=True)) / 3
    found = check_folds(folds, ranges({"recall": f"{recall:.4f}", "accuracy": f"{accuracy:.4f}"}))
    assert found.consistent is True
    assert found.example is not None
    assert found.example.shape == (3, 2)
    assert check_folds([(10, 20)] * 3, ranges({"accuracy": "0.7500"})).consistent is False
    both = ranges({"recall": "1.000", "specificity": "1.000", "accuracy": "0.900"})
    assert check_folds(folds, both).consistent is False
    with pytest.raises(NotLinearError):
        check_folds(folds, ranges({"f1": "0.5"}))
