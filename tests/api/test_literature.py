"""Every number of the literature that a confusion matrix determines, asked through HTTP.

Each matrix is sent twice: as printed, with its orientation, and transposed, with the other one. What the papers got
wrong carries a verdict in the data; there the service has to give the right value, and the test says which and why.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.kernel.numerics.arrays import dispersion, geometric_mean, harmonic_mean, mean
from tests.bank import each

Entry = dict[str, Any]
Value = float | None
ENTRIES: list[Entry] = json.loads((Path(__file__).parents[1] / "data" / "paper_tables.json").read_text())
ORIENTATIONS = {"rows_actual": "actual_rows", "rows_predicted": "predicted_rows"}
TURNED = {"actual_rows": "predicted_rows", "predicted_rows": "actual_rows"}

# What the papers call it, and how it is asked for.
EXPRESSIONS = {
    "macro_f_mean_of_f": "macro_f1",
    "kappa": "cohen_kappa",
    "A": "balanced_accuracy",
    "G": "g_mean",
    "H": "h_mean",
    "macro_f1_neg": "macro_f1_negative",
    "macro_f1_pos": "macro_f1",
    "macro_precision_zero": "macro_precision(undefined=zero)",
    "micro_f1_neg_true": "micro_specificity",
    "range:ppv,tpr": "range(ppv@*, tpr@*)",
    "range:tnr": "range(tnr@*)",
    "range:tpr": "range(tpr@*)",
    # Of the positive class, which is not named here but in the input.
    "binary.f1_neg": "f1_negative",
    "binary.f1_pos": "f1",
    "binary.kappa": "cohen_kappa",
}
# Of matrices: asked under their own name.
SAME_NAME = {
    "accuracy", "average_accuracy", "mcc", "micro_f1", "macro_recall", "weighted_f1", "gps_npv", "gps_precision",
    "gps_precision_sd", "gps_recall", "gps_recall_sd", "gps_upm", "gps_upm_sd", "binary.accuracy",
    "binary.balanced_accuracy", "binary.fowlkes_mallows", "binary.g_mean", "binary.markedness", "binary.mcc",
    "binary.npv", "binary.ppv", "binary.tnr", "binary.tpr", "binary.upm", "binary.youden_j",
}  # fmt: skip
# Where a probability is what the value is computed from.
OF_PROBABILITIES = {"hellinger", "threshold_correct", "threshold_incorrect"}
# GPS of the UPMs as rates, where 0/0 has no value. `gps_upm` takes the form in counts, 0 there: the paper does both
STRICT_FORM = "gps(upm_strict@*)"
# Eq. 9 over the 4K base rates, which section 4.4 of the GPS paper takes without saying so.
OVER_BASE_RATES = "gps_sd(precision@*, recall@*, specificity@*, npv@*)"


def label(entry: Entry, number: str) -> str:
    """The label of the class that a paper counts from 1."""
    labels = entry["input"].get("labels")
    return str(labels[int(number) - 1]) if labels else str(int(number) - 1)


def expression(entry: Entry) -> str:
    """How the service is asked for an entry."""
    name: str = entry["metric"]
    if name == "gps_upm" and entry["printed"] == "NAN":
        return STRICT_FORM
    if name in EXPRESSIONS:
        return EXPRESSIONS[name]
    if name in SAME_NAME:
        return name.removeprefix("binary.")
    if name.startswith("gps_mixed"):
        function, _, parts = name.partition(":")
        items = [part.split("_") for part in parts.split(",")]
        inner = ", ".join(f"{metric}@{label(entry, number)}" for metric, number in items)
        return f"{function.replace('_mixed', '')}({inner})"
    metric, _, number = name.removeprefix("per_class.").partition(".")
    return f"{metric}@{label(entry, number)}"


MATRIX_ENTRIES = [entry for entry in ENTRIES if "matrix" in entry["input"]]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the service answered about one matrix, by expression."""

    values: dict[str, Value]
    codes: dict[str, str]


@pytest.fixture(scope="module")
def answers(client: httpx.Client) -> dict[tuple[str, bool], Answers]:
    """The answers by matrix and by whether it was sent turned: everything in one request."""
    asked: dict[str, list[str]] = {}
    for entry in MATRIX_ENTRIES:
        asked.setdefault(json.dumps(entry["input"]), []).append(expression(entry))
    keys = [(text, turned) for text in asked for turned in (False, True)]
    evaluations = [request(json.loads(text), asked[text], turned=turned) for text, turned in keys]
    reply = client.post("/v1/evaluations/batch?store=false", json={"evaluations": evaluations})
    assert reply.status_code == 207, reply.text
    found = {}
    for key, item in zip(keys, reply.json()["items"], strict=True):
        assert item["status"] == 200, item
        report = item["evaluation"]
        matrix = np.array(json.loads(key[0])["matrix"])
        actual_rows = matrix if json.loads(key[0])["orientation"] == "rows_actual" else matrix.T
        assert report["input"]["confusion_matrix"] == actual_rows.tolist()
        found[key] = Answers(report["requested"], {gap["metric"]: gap["code"] for gap in report["undefined"]})
    return found


def request(source: dict[str, Any], metrics: list[str], *, turned: bool) -> dict[str, Any]:
    matrix, orientation = source["matrix"], ORIENTATIONS[source["orientation"]]
    if turned:
        matrix, orientation = np.array(matrix).T.tolist(), TURNED[orientation]
    sent = {"kind": "confusion_matrix", "matrix": matrix, "orientation": orientation}
    if "labels" in source:
        sent["labels"] = source["labels"]
    if "positive" in source:
        sent["positive"] = source["labels"][source["positive"]]
    return {
        "input": sent,
        "options": {"metrics": sorted({*metrics, OVER_BASE_RATES, STRICT_FORM}), "intervals": "none"},
    }


# Exact values, written from the definitions and from nothing of the service.


class Exact:
    """One-vs-rest rates of a matrix with rows actual as fractions; None is 0/0."""

    def __init__(self, source: dict[str, Any]) -> None:
        rows: list[list[int]] = source["matrix"]
        matrix = (
            rows if source["orientation"] == "rows_actual" else [list(column) for column in zip(*rows, strict=True)]
        )
        self.size = len(matrix)
        self.n = sum(map(sum, matrix))
        self.tp = [matrix[k][k] for k in range(self.size)]
        self.actual = [sum(row) for row in matrix]
        self.predicted = [sum(column) for column in zip(*matrix, strict=True)]

    @staticmethod
    def over(top: int, bottom: int) -> Fraction | None:
        return Fraction(top, bottom) if bottom else None

    def tpr(self) -> list[Fraction | None]:
        return [self.over(t, p) for t, p in zip(self.tp, self.actual, strict=True)]

    def ppv(self) -> list[Fraction | None]:
        return [self.over(t, p) for t, p in zip(self.tp, self.predicted, strict=True)]

    def npv(self) -> list[Fraction | None]:
        triples = zip(self.tp, self.actual, self.predicted, strict=True)
        return [self.over(self.n - p - q + t, self.n - q) for t, p, q in triples]

    def upm(self) -> list[Fraction | None]:
        found = []
        for t, p, q in zip(self.tp, self.actual, self.predicted, strict=True):
            tn, errors = self.n - p - q + t, p + q - 2 * t
            found.append(self.over(4 * t * tn, 4 * t * tn + (t + tn) * errors))
        return found

    def pooled_specificity(self) -> Fraction:
        """True negatives of every class against the rest, pooled."""
        tn = sum(self.n - p - q + t for t, p, q in zip(self.tp, self.actual, self.predicted, strict=True))
        return Fraction(tn, self.n * (self.size - 1))

    def mcc(self) -> float:
        expected = sum(p * q for p, q in zip(self.actual, self.predicted, strict=True))
        spread = [self.n**2 - sum(m * m for m in margin) for margin in (self.actual, self.predicted)]
        return float((self.n * sum(self.tp) - expected) / math.sqrt(spread[0] * spread[1]))


def harmonic(parts: list[Fraction | None]) -> Fraction | None:
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    return Fraction(0) if 0 in whole else len(whole) / sum((1 / part for part in whole), Fraction(0))


def spread(parts: list[Fraction | None]) -> float:
    """Eq. 9 of the GPS paper."""
    center = harmonic(parts)
    assert center
    squares = sum(((1 / part - 1 / center) ** 2 for part in parts if part is not None), Fraction(0))
    return float(center**2) / (len(parts) - 1) * math.sqrt(squares)


def first_missing(_: Exact) -> None:
    return None


# The right value where a paper prints another one, by what its verdict says.
RIGHT: dict[str, Callable[[Exact], float | Fraction | None]] = {
    "000.s6.mcc": Exact.mcc,
    **{f"002.t9.{table}.micro_f1_neg_true": Exact.pooled_specificity for table in "abdefghi"},
    "002.t13.d.ppv.3": first_missing,
    "002.t13.e.npv.4": lambda _: Fraction(81, 119),
    **{f"002.t13.{table}.gps_npv": lambda exact: harmonic(exact.npv()) for table in "bcd"},
    **{f"002.t13.{table}.gps_recall": lambda exact: harmonic(exact.tpr()) for table in "bd"},
    "002.s44.a.gps_upm_sd": lambda exact: spread(exact.upm()),
    "002.s44v.a.gps_upm_sd": lambda exact: spread(exact.upm()),
    "002.s44v.c.gps_precision_sd": lambda exact: spread(exact.ppv()),
    "002.s44v.e.gps_recall_sd": lambda exact: spread(exact.tpr()),
}
# What the verdicts and the errata name as right, to be sure that the formulas above mean the same.
NAMED = {
    "000.s6.mcc": "0.93945",
    **{
        f"002.t9.{table}.micro_f1_neg_true": f"{value:.2f}"
        for table, value in zip("abdefghi", (0.91, 0.80, 1.00, 0.80, 0.76, 0.67, 0.50, 0.50), strict=True)
    },
    "002.t13.e.npv.4": "0.6807",
    "002.t13.b.gps_npv": "0.86",
    "002.t13.c.gps_npv": "0.691",
    "002.t13.d.gps_npv": "0.85",
    "002.t13.b.gps_recall": "0",
    "002.t13.d.gps_recall": "0",
    "002.s44.a.gps_upm_sd": "0.117",
    "002.s44v.a.gps_upm_sd": "0.058",
    "002.s44v.c.gps_precision_sd": "0.028",
    "002.s44v.e.gps_recall_sd": "0.034",
}
# Printed from another definition, which the service can be asked for too.
ZERO_OVER_ZERO_AS_ZERO = "002.t9.i.gps_upm"
FROM_BASE_RATES = {"002.s44.a.gps_upm_sd", "002.s44v.a.gps_upm_sd"}


def rounds_to(value: float, printed: str) -> bool:
    """Does the value give the printed digits? A value halfway between two may go either way."""
    unit = Decimal(1).scaleb(-decimals(printed))
    return abs(value - float(printed)) <= float(unit) / 2 + 1e-9


def truncates_to(value: float, printed: str) -> bool:
    unit = Decimal(1).scaleb(-decimals(printed))
    return Decimal(repr(value)).quantize(unit, rounding=ROUND_DOWN) == Decimal(printed)


def decimals(printed: str) -> int:
    return len(printed.partition(".")[2])


def is_truncated(entry: Entry) -> bool:
    return "truncated instead of rounded" in entry.get("verdict", "")


@each("turned", [False, True], ids=["printed", "turned"])
@each("entry", MATRIX_ENTRIES, ids=[entry["id"] for entry in MATRIX_ENTRIES])
def test_a_printed_value(entry: Entry, answers: dict[tuple[str, bool], Answers], *, turned: bool) -> None:
    answer = answers[json.dumps(entry["input"]), turned]
    asked, printed = expression(entry), entry["printed"]
    value = answer.values[asked]
    if entry["id"] in RIGHT:
        check_erratum(entry, value)
        if entry["id"] in FROM_BASE_RATES:
            assert truncates_to(float(answer.values[OVER_BASE_RATES] or 0), printed)
    elif is_truncated(entry):
        assert value is not None
        assert truncates_to(value, printed)
        assert not rounds_to(value, printed)
    elif printed == "NAN":
        assert value is None
        assert answer.codes[asked] == "never_predicted"
    else:
        assert value is not None
        assert rounds_to(value, printed)
    if entry["id"] == ZERO_OVER_ZERO_AS_ZERO:
        # The form in counts takes 0/0 as 0; in the form of rates there is no value, and the service says why.
        assert value == 0
        assert answer.values[STRICT_FORM] is None
        assert answer.codes[STRICT_FORM] == "never_predicted"


def check_erratum(entry: Entry, value: Value) -> None:
    right = RIGHT[entry["id"]](Exact(entry["input"]))
    if right is None:
        assert value is None
        return
    assert value == pytest.approx(float(right), rel=1e-12, abs=1e-15)
    assert rounds_to(float(right), NAMED[entry["id"]])
    assert entry["printed"] == "NAN" or not rounds_to(float(right), entry["printed"])


def test_every_verdict_about_a_matrix_is_accounted_for() -> None:
    verdicts = {entry["id"] for entry in MATRIX_ENTRIES if "verdict" in entry}
    truncated = {entry["id"] for entry in MATRIX_ENTRIES if is_truncated(entry)}
    assert verdicts == truncated | set(RIGHT) | {ZERO_OVER_ZERO_AS_ZERO}
    assert sum("verdict" in entry for entry in ENTRIES) == 52
    assert len(ENTRIES) == 438


# Proposition 1 has a route of its own.


def bound(client: httpx.Client, source: dict[str, Any]) -> dict[str, Any]:
    names = {"K": "classes", "weak": "weak", "r_max": "max_recall", "tau": "weak_recall", "target": "target"}
    body = {names[name]: float(value) if isinstance(value, str) else value for name, value in source.items()}
    reply = client.post("/v1/bounds/h-mean", json=body)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def check_critical_recall(client: httpx.Client, entry: Entry) -> None:
    answer = bound(client, entry["input"])
    assert answer["critical_recall"] == pytest.approx(4 / 39, rel=1e-14)
    assert rounds_to(answer["critical_recall"], entry["printed"])
    # Rounded down: 0.103, as printed, would claim too much.
    assert answer["critical_recall_rounded"] == 0.1025


def check_claim_about_the_target(client: httpx.Client, entry: Entry) -> None:
    """The erratum: at the printed critical recall the target can be reached, since it was rounded up."""
    answer = bound(client, entry["input"])
    assert answer["upper"] == pytest.approx(float(35 / (1 / Fraction("0.103") + 34)), rel=1e-14)
    assert truncates_to(answer["upper"], "0.8007")
    assert answer["target_reachable"] is True
    below = bound(client, {**entry["input"], "tau": str(answer["critical_recall_rounded"])})
    assert below["upper"] < 0.8
    assert below["target_reachable"] is False


def check_upper_bound(client: httpx.Client, entry: Entry) -> None:
    assert rounds_to(bound(client, entry["input"])["upper"], entry["printed"])


BOUNDS: dict[str, Callable[[httpx.Client, Entry], None]] = {
    "prop1_critical_tau": check_critical_recall,
    "prop1_bound_below_target": check_claim_about_the_target,
    "prop1_upper_bound": check_upper_bound,
}
BOUND_ENTRIES = [entry for entry in ENTRIES if entry["metric"] in BOUNDS]


@pytest.mark.parametrize("entry", BOUND_ENTRIES, ids=[entry["id"] for entry in BOUND_ENTRIES])
def test_proposition_1(entry: Entry, client: httpx.Client) -> None:
    BOUNDS[entry["metric"]](client, entry)


# What is arithmetic on printed numbers needs no service, but the same means.


def numbers(entry: Entry) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([float(Fraction(value)) for value in entry["input"]["values"]])


def a_and_b(entry: Entry) -> tuple[float, float]:
    return float(entry["input"]["a"]), float(entry["input"]["b"])


ARITHMETIC: dict[str, Callable[[Entry], float]] = {
    "gps": lambda entry: float(harmonic_mean(numbers(entry))),
    "gps_sd": lambda entry: float(dispersion(numbers(entry))),
    "mean_arith": lambda entry: float(mean(numbers(entry))),
    "mean_geom": lambda entry: float(geometric_mean(numbers(entry))),
    "mean_of_values": lambda entry: float(mean(numbers(entry))),
    "sum_of_values": lambda entry: float(numbers(entry).sum()),
    "difference": lambda entry: a_and_b(entry)[0] - a_and_b(entry)[1],
    "ratio": lambda entry: a_and_b(entry)[0] / a_and_b(entry)[1],
    "percent": lambda entry: 100 * a_and_b(entry)[0] / a_and_b(entry)[1],
    "relative_difference_percent": lambda entry: 100 * (a_and_b(entry)[0] / a_and_b(entry)[1] - 1),
}
ARITHMETIC_ENTRIES = [entry for entry in ENTRIES if entry["metric"] in ARITHMETIC]


@each("entry", ARITHMETIC_ENTRIES, ids=[entry["id"] for entry in ARITHMETIC_ENTRIES])
def test_arithmetic_on_printed_numbers(entry: Entry) -> None:
    value, printed = ARITHMETIC[entry["metric"]](entry), entry["printed"]
    if "verdict" in entry:
        # Both were cut off instead of rounded: 11.58 and 1.0657 %.
        assert truncates_to(value, printed)
        assert not rounds_to(value, printed)
    else:
        assert rounds_to(value, printed)


ENTROPY_ENTRIES = [entry for entry in ENTRIES if entry["metric"] == "normalised_entropy"]


@pytest.mark.parametrize("entry", ENTROPY_ENTRIES, ids=[entry["id"] for entry in ENTROPY_ENTRIES])
def test_entropy_of_class_sizes(entry: Entry, client: httpx.Client) -> None:
    """The entropy of class sizes is that of the margins of any matrix with these rows."""
    matrix = np.diag([int(value) for value in entry["input"]["values"]]).tolist()
    reply = client.post("/v1/metrics/compute", json={"input": {"kind": "confusion_matrix", "matrix": matrix}})
    groups = reply.json()["metrics"]
    assert rounds_to(groups["prevalence_sensitive"]["normalized_reference_entropy"], entry["printed"])


def covered() -> Iterator[str]:
    for entries in (MATRIX_ENTRIES, BOUND_ENTRIES, ARITHMETIC_ENTRIES, ENTROPY_ENTRIES):
        yield from (entry["id"] for entry in entries)


def test_nothing_is_left_out_but_what_needs_probabilities() -> None:
    ids = list(covered())
    assert len(ids) == len(set(ids))
    left = [entry for entry in ENTRIES if entry["id"] not in set(ids)]
    assert {entry["metric"] for entry in left} == OF_PROBABILITIES
    assert len(left) == 9
