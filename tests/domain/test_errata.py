"""What docs/reference/errata.md claims of values is computed here, and the page is searched for each."""

import math
from fractions import Fraction
from pathlib import Path

import pytest

from app.domain.expressions.expressions import parse
from app.kernel.matrix.h_mean_bounds import critical_recall, h_mean_upper_bound
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import compute
from tests.bank import each

PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "errata.md").read_text(encoding="utf-8")
BASE = [[55, 5], [10, 30]]
PAPER = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
# Martín De Diego et al. (2022), table 13; rows are predicted there.
VEHICLE_A = [[1, 0, 0, 29], [0, 13, 25, 0], [42, 0, 4, 6], [0, 29, 14, 4]]
VEHICLE_B = [[43, 0, 5, 32], [0, 42, 38, 7], [0, 0, 0, 0], [0, 0, 0, 0]]
VEHICLE_C = [[1, 0, 0, 27], [0, 4, 15, 0], [42, 0, 4, 6], [0, 38, 24, 6]]
VEHICLE_D = [[35, 0, 0, 8], [8, 42, 43, 31], [0, 0, 0, 0], [0, 0, 0, 0]]
VEHICLE_E = [[4, 1, 3, 36], [0, 9, 21, 0], [39, 0, 4, 2], [0, 32, 15, 1]]
CONNECT_A = [[606, 611, 636], [215, 2061, 353], [461, 662, 7905]]


def value(matrix: list[list[int]], text: str, *, predicted_rows: bool = False) -> float:
    rows = [list(row) for row in zip(*matrix, strict=True)] if predicted_rows else matrix
    labels = [str(k + 1) for k in range(len(rows))]
    return float(compute(parse(text, labels, 1 if len(rows) == 2 else None), Table(rows)))


@each(
    ("text", "printed"),
    [
        ("recall", "0.75"),
        ("specificity", "0.9167"),
        ("precision", "0.8571"),
        ("npv", "0.8462"),
        ("false_omission_rate", "0.1538"),
        ("accuracy", "0.85"),
        ("mcc", "0.6847"),
        ("cohen_kappa", "0.6809"),
        ("likelihood_ratio_positive", "9.0"),
        ("likelihood_ratio_negative", "0.273"),
        ("balanced_accuracy", "0.833"),
        ("bennett_s", "0.70"),
    ],
)
def test_values_of_the_running_example(text: str, printed: str) -> None:
    assert f"{value(BASE, text):.{len(printed.partition('.')[2])}f}" == printed
    assert printed in PAGE


def test_identities_of_the_survey() -> None:
    for beta in (0.3, 1, 4):
        assert value(BASE, f"micro_f_beta(beta={beta})") == pytest.approx(value(BASE, "accuracy"))
    for matrix in (BASE, PAPER):
        rescaled = 1 - 2 * (1 - value(matrix, "accuracy")) / len(matrix)
        assert value(matrix, "average_accuracy") == pytest.approx(rescaled)
    assert value(BASE, "survey_balanced_accuracy") == pytest.approx(value(BASE, "balanced_accuracy"))
    assert value(PAPER, "survey_balanced_accuracy") != pytest.approx(value(PAPER, "balanced_accuracy"), abs=0.01)
    assert value(PAPER, "macro_f1_of_means") == pytest.approx(0.870, abs=5e-4)
    assert value(PAPER, "macro_f1") == pytest.approx(0.803, abs=5e-4)


def test_formulas_of_the_gps_paper() -> None:
    precision, recall, specificity, npv = (value(BASE, key) for key in ("precision", "recall", "specificity", "npv"))
    odds = [rate / (1 - rate) for rate in (precision, recall, specificity)]
    assert 1 / (1 + odds[0] / odds[1] / odds[2]) == pytest.approx(npv)
    assert 1 / (1 + odds[1] * odds[2] / odds[0]) == pytest.approx(1 - npv)
    root = math.sqrt(precision * recall * specificity * npv)
    numerator = 1 - 5 * 10 / (30 * 55)
    assert numerator * root == pytest.approx(value(BASE, "mcc"))
    assert f"{numerator:.4f} / {root:.4f} = {numerator / root:.3f}" in PAGE
    assert pytest.approx(0.118, abs=5e-4) == 0.85 / (0.85 + 85 * 15 / 200)
    assert f"{2 * 600 / (2 * 600 + 120):.3f}" == "0.909"


@each(
    ("matrix", "text", "right", "printed"),
    [
        (VEHICLE_B, "gps_npv", 0.86, 0.80),
        (VEHICLE_C, "gps_npv", 0.69, 0.67),
        (VEHICLE_D, "gps_npv", 0.85, 0.67),
        (VEHICLE_E, "npv@4", 0.68, 0.67),
        (VEHICLE_B, "h_mean", 0.0, math.nan),
        (VEHICLE_D, "h_mean", 0.0, math.nan),
        (VEHICLE_D, "precision@3", math.nan, 0.0),
        (CONNECT_A, "gps_upm_sd", 0.117, 0.08),
        (VEHICLE_A, "gps_upm_sd", 0.058, 0.04),
        (VEHICLE_C, "gps_precision_sd", 0.028, 0.09),
        (VEHICLE_E, "gps_recall_sd", 0.034, 0.11),
    ],
)
def test_numbers_of_the_gps_paper(matrix: list[list[int]], text: str, right: float, printed: float) -> None:
    computed = value(matrix, text, predicted_rows=True)
    assert computed == pytest.approx(right, abs=5e-3 if right > 0.2 else 5e-4, nan_ok=True)
    assert computed != pytest.approx(printed, abs=5e-3)


@pytest.mark.parametrize(("matrix", "shown"), [(CONNECT_A, "0.086"), (VEHICLE_A, "0.043")])
def test_the_dispersion_over_all_rates(matrix: list[list[int]], shown: str) -> None:
    text = "gps_sd(precision@*, recall@*, specificity@*, npv@*)"
    assert f"{value(matrix, text, predicted_rows=True):.3f}" == shown
    assert shown in PAGE


def test_micro_f1_of_the_rests() -> None:
    """Every entry of table 9 by its pooled counts; the accuracy is what is printed there."""
    columns = {
        "0.91": [[90, 10, 10], [10, 90, 10], [10, 10, 90]],
        "0.80": [[90, 30, 30], [30, 90, 30], [30, 30, 90]],
        "0.76": [[90, 60, 0], [60, 90, 60], [0, 60, 90]],
        "0.67": [[50, 100, 0], [0, 50, 100], [100, 0, 50]],
        "0.50": [[0, 150, 0], [0, 0, 150], [150, 0, 0]],
    }
    assert "0.91, 0.80, 1.00, 1.00, 0.80, 0.76, 0.67, 0.50, 0.50" in PAGE
    for shown, matrix in columns.items():
        table = Table(matrix)
        pooled = 2 * table.tn.sum() / (2 * table.tn.sum() + table.errors.sum())
        assert f"{pooled:.2f}" == shown


def test_values_of_the_harmonic_mean_paper() -> None:
    assert f"{value(PAPER, 'mcc'):.5f}" == "0.93945"
    assert critical_recall(classes=35, weak=1, max_recall=1.0, target=0.8) == pytest.approx(float(Fraction(4, 39)))
    assert f"{h_mean_upper_bound(classes=35, weak=1, weak_recall=0.103, max_recall=1.0):.5f}" == "0.80076"
    assert f"{100 * (0.896 - 0.803) / 0.803:.2f}" == "11.58"
    assert value([[10, 0], [8, 2]], "lehmer_mean_recall(r=1)") == pytest.approx(0.867, abs=5e-4)
    assert value([[10, 0], [6, 4]], "lehmer_mean_recall(r=1)") == pytest.approx(0.829, abs=5e-4)
    for shown in ("0.93945", "4/39", "0.80076", "11.58", "0.867", "0.829"):
        assert shown in PAGE


# Table 2 of Aguilar-Ruiz (2025): samples and accuracy.
TABLE_2 = {
    "vertebral_column": (310, "0.842"), "hepatitis_c": (1385, "0.267"), "rice": (3810, "0.921"),
    "banknote": (1372, "0.993"), "musk_v2": (6598, "0.979"), "magic": (19020, "0.882"),
    "cardiotocography": (2126, "0.896"),
    "divorce": (170, "0.977"), "australian_credit": (690, "0.873"), "musk_v1": (476, "0.899"), "sonar": (208, "0.822"),
    "heart": (270, "0.833"), "iris": (150, "0.940"), "churn": (3150, "0.956"), "phishing": (11055, "0.972"),
    "occupancy": (10129, "0.998"), "landsat": (6435, "0.916"), "vowel": (990, "0.973"),
}  # fmt: skip


def shares_that_round_to(printed: str, n: int) -> list[Fraction]:
    """All k/n, exactly, that are printed so; a half may go either way."""
    half = Fraction(1, 2 * 10 ** len(printed.partition(".")[2]))
    return [Fraction(k, n) for k in range(n + 1) if abs(Fraction(k, n) - Fraction(printed)) <= half]


def test_accuracies_of_the_harmonic_mean_paper_that_no_counts_give() -> None:
    """In ten folds of equal size the mean over the folds is the pooled share, so it is k/n too."""
    impossible = {name for name, (n, printed) in TABLE_2.items() if not shares_that_round_to(printed, n)}
    assert {"divorce", "australian_credit"} <= impossible
    # The others of sizes that no ten equal folds have may be means over unequal folds.
    assert all(TABLE_2[name][0] % 10 for name in impossible - {"divorce", "australian_credit"})
    for shown in ("166/170 = 0.9765", "167/170 = 0.9824", "602/690 = 0.8725", "603/690 = 0.8739"):
        share, _, value_shown = shown.partition(" = ")
        assert shown in PAGE
        assert f"{float(Fraction(share)):.4f}" == value_shown


def test_values_of_the_imcp_paper() -> None:
    assert f"{100 * 72 / 6756:.4f}" == "1.0657"
    assert f"{1 - math.sqrt(1 - math.sqrt(0.5)):.3f}" == "0.459"
    assert "1.0657" in PAGE
    assert "0.459 is 1 − η" in PAGE
