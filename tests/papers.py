"""Every formula, table and figure of the five papers: where the service has it, and how far it is from a witness.

`python -m tests.papers` writes docs/reference/papers.md, tests/domain/test_papers.py compares it. Rows:
tests/data/papers.csv.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from app.domain.expressions.expressions import parse
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import compute
from tests.api import test_literature as literature

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "papers.md"
PAPERS = {
    "000": "Aguilar-Ruiz (2025), harmonic mean of recalls",
    "001": "Wu & Cannistraci (2025), AC-score",
    "002": "Martín De Diego et al. (2022), GPS",
    "003": "Aguilar-Ruiz & Michalak (2024), IMCP",
    "004": "Beddar-Wiesing et al. (2025), survey",
    "sklearn": "scikit-learn, measures of clusterings",
}
HEAD = """# The papers, place by place

Every formula, table and figure of the five papers, and the measures of clusterings in scikit-learn: what answers it,
who else says so, and the largest difference between the two. Written by `python -m tests.papers` from
`tests/data/papers.csv`, and compared by a test. What the papers have wrong is in [Errata](errata.md); a formula marked
"corrected" is checked in its right form.

- *exact fractions*: the formula in rational numbers on 60 random matrices of 2 to 5 classes, relative difference, as
  the next power of ten. Where nothing stands in brackets, at most 1e-14;
- *printed*: the values in print, difference in units of the last digit (0.5 is what rounding allows); those with a
  note are errata, values cut off instead of rounded, and what is undefined: they are tested one by one;
- a file and a test: what that test compares with and the difference that it lets pass, relative unless said otherwise;
- *out*: not there, with the reason.
"""


@dataclass(frozen=True)
class Row:
    """One place of a paper."""

    paper: str
    place: str
    what: str
    answer: str
    check: str
    within: str


class Counts:
    """A matrix with rows actual, and its one-vs-rest rates as fractions."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows, self.k, self.n = rows, len(rows), sum(map(sum, rows))
        self.t = [rows[i][i] for i in range(self.k)]
        self.p = [sum(row) for row in rows]
        self.q = [sum(column) for column in zip(*rows, strict=True)]
        self.fn = [p - t for p, t in zip(self.p, self.t, strict=True)]
        self.fp = [q - t for q, t in zip(self.q, self.t, strict=True)]
        self.tn = [self.n - t - a - b for t, a, b in zip(self.t, self.fn, self.fp, strict=True)]
        self.tpr = [Fraction(t, t + a) for t, a in zip(self.t, self.fn, strict=True)]
        self.ppv = [Fraction(t, t + b) for t, b in zip(self.t, self.fp, strict=True)]
        self.tnr = [Fraction(u, u + b) for u, b in zip(self.tn, self.fp, strict=True)]
        self.npv = [Fraction(u, u + a) for u, a in zip(self.tn, self.fn, strict=True)]
        self.acc = Fraction(sum(self.t), self.n)


def hm(*parts: Fraction) -> Fraction:
    return len(parts) / sum((1 / part for part in parts), Fraction(0))


def am(*parts: Fraction) -> Fraction:
    return sum(parts, Fraction(0)) / len(parts)


def gm(*parts: Fraction) -> float:
    return math.prod(map(float, parts)) ** (1 / len(parts))


def f(precision: Fraction, recall: Fraction, beta: int = 1) -> Fraction:
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def mcc(c: Counts) -> float:
    top = c.n * sum(c.t) - sum(p * q for p, q in zip(c.p, c.q, strict=True))
    return float(top) / math.sqrt((c.n**2 - sum(p * p for p in c.p)) * (c.n**2 - sum(q * q for q in c.q)))


def corrected(c: Counts, expected: Fraction) -> Fraction:
    return (c.acc - expected) / (1 - expected)


def kappa(c: Counts) -> Fraction:
    return corrected(c, Fraction(sum(p * q for p, q in zip(c.p, c.q, strict=True)), c.n**2))


def upms(c: Counts) -> list[Fraction]:
    return [hm(*rates) for rates in zip(c.ppv, c.tpr, c.tnr, c.npv, strict=True)]


def f1s(c: Counts) -> list[Fraction]:
    return [f(p, r) for p, r in zip(c.ppv, c.tpr, strict=True)]


def negatives(c: Counts) -> list[Fraction]:
    return [f(p, r) for p, r in zip(c.npv, c.tnr, strict=True)]


def spread(parts: Sequence[Fraction]) -> float:
    center = hm(*parts)
    squares = sum(((1 / part - 1 / center) ** 2 for part in parts), Fraction(0))
    return float(center**2) / (len(parts) - 1) * math.sqrt(squares)


def ordered(c: Counts) -> Fraction:
    found = []
    for cut in range(1, c.k):
        low, high = range(cut), range(cut, c.k)
        block = [[sum(c.rows[i][j] for i in rows for j in columns) for columns in (low, high)] for rows in (low, high)]
        found.append(upms(Counts(block))[1])
    return hm(*found)


def lehmer(c: Counts, r: float) -> float:
    rates = [float(rate) for rate in c.tpr]
    return float(math.fsum(x ** (r + 1) for x in rates) / math.fsum(x**r for x in rates))


def gini(c: Counts) -> float:
    rates = [float(rate) for rate in c.tpr]
    return float(math.sqrt(math.fsum(rates) / math.fsum(1 / x for x in rates)))


def odds(rate: Fraction) -> Fraction:
    return rate / (1 - rate)


def weighted(c: Counts, kind: str) -> Fraction | float:
    weights = [3, 2, 1]
    if kind == "a":
        return sum((w * x for w, x in zip(weights, c.tpr, strict=True)), Fraction(0)) / 6
    if kind == "h":
        return 6 / sum((w / x for w, x in zip(weights, c.tpr, strict=True)), Fraction(0))
    return float(math.exp(math.fsum(w * math.log(x) for w, x in zip(weights, c.tpr, strict=True)) / 6))


def scott(c: Counts) -> Fraction:
    return corrected(c, sum((Fraction(p + q, 2 * c.n) ** 2 for p, q in zip(c.p, c.q, strict=True)), Fraction(0)))


# Of two classes, the second one positive: expression by expression, in the order of the row.
TWO: dict[str, Callable[[Counts], dict[str, Fraction | float]]] = {
    "rates": lambda c: {"recall": c.tpr[1], "specificity": c.tnr[1], "fpr": 1 - c.tnr[1], "fnr": 1 - c.tpr[1]},
    "a": lambda c: {"balanced_accuracy": am(*c.tpr)},
    "j": lambda c: {"youden_j": c.tpr[1] + c.tnr[1] - 1},
    "g": lambda c: {"g_mean": gm(*c.tpr)},
    "h": lambda c: {"h_mean": hm(*c.tpr), "ac_score": hm(*c.tpr), "gps(tpr, tnr)": hm(*c.tpr)},
    "accuracy_by_shares": lambda c: {
        "accuracy": Fraction(c.p[1], c.n) * c.tpr[1] + (1 - Fraction(c.p[1], c.n)) * c.tnr[1]
    },
    "ppv_by_bayes": lambda c: {
        "ppv": c.p[1] * c.tpr[1] / (c.p[1] * c.tpr[1] + c.p[0] * (1 - c.tnr[1])),
    },
    "f1": lambda c: {"f1": f(c.ppv[1], c.tpr[1])},
    "mcc": lambda c: {"mcc": mcc(c)},
    "kappa": lambda c: {"cohen_kappa": kappa(c)},
    "weighted_two": lambda c: {
        "weighted_balanced_accuracy(weight=0.3)": 0.3 * float(c.tpr[1]) + 0.7 * float(c.tnr[1]),
        "weighted_g_mean(weight=0.3)": float(c.tpr[1]) ** 0.3 * float(c.tnr[1]) ** 0.7,
    },
    "h_beta": lambda c: {"weighted_h_mean(beta=2)": 5 * c.tpr[1] * c.tnr[1] / (4 * c.tpr[1] + c.tnr[1])},
    "rates_of_both": lambda c: {"precision": c.ppv[1], "npv": c.npv[1], "accuracy": c.acc, "recall": c.tpr[1]},
    "g_f1_mcc": lambda c: {"g_mean": gm(*c.tpr), "f1": f(c.ppv[1], c.tpr[1]), "mcc": mcc(c)},
    "a_of_one_cut": lambda c: {"single_point_auc": am(*c.tpr)},
    "operating_point": lambda c: {"mean(f1@1, f1@0, h_mean)": am(*f1s(c), hm(*c.tpr))},
    "table_2": lambda c: {
        "accuracy": c.acc,
        "error_rate": 1 - c.acc,
        "fowlkes_mallows": gm(c.ppv[1], c.tpr[1]),
        "f1": f1s(c)[1],
        "f1_negative": negatives(c)[1],
        "markedness": c.ppv[1] + c.npv[1] - 1,
        "informedness": c.tpr[1] + c.tnr[1] - 1,
        "upm": upms(c)[1],
    },
    "npv_from_three": lambda c: {"npv": 1 / (1 + odds(c.ppv[1]) / odds(c.tpr[1]) / odds(c.tnr[1]))},
    "mcc_from_rates": lambda c: {
        "mcc": float(1 - Fraction(c.fp[1] * c.fn[1], c.t[1] * c.tn[1]))
        * math.sqrt(c.ppv[1] * c.tpr[1] * c.tnr[1] * c.npv[1])
    },
    "f_as_gps": lambda c: {"gps(ppv, tpr)": f1s(c)[1], "gps(npv, tnr)": negatives(c)[1]},
    "upm_as_gps": lambda c: {"gps(ppv, tpr, tnr, npv)": upms(c)[1], "gps(f1, f1_negative)": upms(c)[1]},
    "accuracy": lambda c: {"accuracy": c.acc, "error_rate": 1 - c.acc},
    "predicted_rates": lambda c: {"precision": c.ppv[1], "npv": c.npv[1], "fdr": 1 - c.ppv[1]},
    "f_beta": lambda c: {"f_beta(beta=2)": f(c.ppv[1], c.tpr[1], 2)},
    "scott_pi": lambda c: {"scott_pi": scott(c)},
    "likelihood_ratios": lambda c: {
        "lr_positive": c.tpr[1] / (1 - c.tnr[1]),
        "lr_negative": (1 - c.tpr[1]) / c.tnr[1],
    },
    "jaccard": lambda c: {"jaccard": Fraction(c.t[1], c.t[1] + c.fp[1] + c.fn[1])},
}
# Of any number of classes.
MANY: dict[str, Callable[[Counts], dict[str, Fraction | float]]] = {
    "power_mean": lambda c: {"power_mean_recall(r=2)": math.sqrt(am(*(x * x for x in c.tpr)))},
    "means_of_k": lambda c: {"balanced_accuracy": am(*c.tpr), "g_mean": gm(*c.tpr), "h_mean": hm(*c.tpr)},
    "gini_lehmer": lambda c: {"gini_mean_recall(p=1,q=-1)": gini(c), "lehmer_mean_recall(r=0.5)": lehmer(c, 0.5)},
    "kappa_of_k": lambda c: {"cohen_kappa": kappa(c)},
    "mcc_of_k": lambda c: {"mcc": mcc(c)},
    "macro": lambda c: {
        "macro_f1": am(*f1s(c)),
        "macro_precision": am(*c.ppv),
        "macro_recall": am(*c.tpr),
        "macro_f1_negative": am(*negatives(c)),
        "average_accuracy": am(*(Fraction(t + u, c.n) for t, u in zip(c.t, c.tn, strict=True))),
    },
    "gps": lambda c: {"gps(recall@*, precision@*)": hm(*c.tpr, *c.ppv)},
    "gps_sd": lambda c: {"gps_sd(recall@*, precision@*)": spread([*c.tpr, *c.ppv])},
    "gps_upm": lambda c: {"gps_upm": hm(*upms(c))},
    "gps_ordered": lambda c: {"gps_upm_ordered": ordered(c)},
    "gps_recall": lambda c: {"gps_recall": hm(*c.tpr)},
    "average_accuracy": lambda c: {"average_accuracy": 1 - 2 * (1 - c.acc) / c.k},
    "micro": lambda c: {"micro_precision": c.acc, "micro_recall": c.acc, "micro_f_beta(beta=2)": c.acc},
    "macro_rates": lambda c: {"macro_precision": am(*c.ppv), "macro_recall": am(*c.tpr)},
    "macro_f_means": lambda c: {"macro_f_beta(beta=2,form=means)": f(am(*c.ppv), am(*c.tpr), 2)},
    "survey_ba": lambda c: {"survey_balanced_accuracy": am(am(*c.tpr), am(*c.tnr))},
    "kappa_n": lambda c: {"kappa_n": corrected(c, Fraction(1, c.k))},
}
THREE: dict[str, Callable[[Counts], dict[str, Fraction | float]]] = {
    "weighted_means": lambda c: {
        'wmean(recall@*, weights="3,2,1")': weighted(c, "a"),
        'wgmean(recall@*, weights="3,2,1")': weighted(c, "g"),
        'wgps(recall@*, weights="3,2,1")': weighted(c, "h"),
    },
}
# Martín De Diego et al. (2022), table 7: mean, SD and CV of GPS, then of MCC.
TABLE_7 = {
    "Pima Indians": ("0.71", "0.06", "0.08", "0.46", "0.07", "0.15"),
    "Sonar": ("0.82", "0.06", "0.07", "0.67", "0.11", "0.16"),
    "Ionosphere": ("0.92", "0.03", "0.03", "0.85", "0.06", "0.07"),
    "Hepatitis": ("0.56", "0.18", "0.32", "0.37", "0.19", "0.51"),
    "Vote": ("0.95", "0.02", "0.02", "0.90", "0.05", "0.06"),
    "Adult": ("0.79", "0.00", "0.00", "0.60", "0.00", "0.00"),
    "Credit": ("0.61", "0.01", "0.02", "0.39", "0.01", "0.03"),
}


def read_rows() -> list[Row]:
    """All places, in the order of the papers."""
    with (ROOT / "tests" / "data" / "papers.csv").open(encoding="utf-8", newline="") as file:
        return [Row(**entry) for entry in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)]


def service_value(text: str, rows: list[list[int]]) -> float:
    """What the service computes of a matrix."""
    labels = [str(code) for code in range(len(rows))]
    return float(compute(parse(text, labels, 1 if len(rows) == 2 else None), Table(rows)))


def matrices(sizes: tuple[int, ...]) -> list[list[list[int]]]:
    """Sixty random matrices without empty cells."""
    random = np.random.default_rng(20)
    return [random.integers(1, 90, (size, size)).tolist() for size in (sizes * 60)[:60]]


def formula_difference(name: str) -> float:
    """Largest relative difference between the service and a formula in fractions."""
    for table, sizes in ((TWO, (2,)), (MANY, (2, 3, 4, 5)), (THREE, (3,))):
        if name in table:
            worst = 0.0
            for rows in matrices(sizes):
                for text, exact in table[name](Counts(rows)).items():
                    right = float(exact)
                    worst = max(worst, abs(service_value(text, rows) - right) / max(abs(right), 1e-3))
            return worst
    raise KeyError(name)


def printed_differences(prefix: str) -> tuple[int, float, int]:
    """Of printed values: how many agree by rounding, the largest difference in units of the last digit, how many have a
    verdict.
    """
    entries = [entry for entry in literature.MATRIX_ENTRIES if entry["id"].startswith(prefix)]
    agreeing = [entry for entry in entries if "verdict" not in entry and entry["printed"] != "NAN"]
    worst = max(abs(_asked(entry) - float(entry["printed"])) * 10 ** entry["decimals"] for entry in agreeing)
    return len(agreeing), worst, len(entries) - len(agreeing)


def _asked(entry: dict[str, Any]) -> float:
    source = entry["input"]
    rows = source["matrix"]
    if source["orientation"] == "rows_predicted":
        rows = [list(column) for column in zip(*rows, strict=True)]
    labels = [str(label) for label in source.get("labels", range(len(rows)))]
    positive = source.get("positive", 1 if len(rows) == 2 else None)
    return float(compute(parse(literature.expression(entry), labels, positive), Table(rows)))


def arithmetic_differences(prefix: str) -> tuple[int, float, int]:
    """The same of what is arithmetic on printed numbers."""
    entries = [entry for entry in literature.ARITHMETIC_ENTRIES if entry["id"].startswith(prefix)]
    agreeing = [entry for entry in entries if "verdict" not in entry]
    worst = max(
        abs(literature.ARITHMETIC[entry["metric"]](entry) - float(entry["printed"])) * 10 ** entry["decimals"]
        for entry in agreeing
    )
    return len(agreeing), worst, len(entries) - len(agreeing)


def table_7_difference() -> float:
    """How far a printed CV is from what its printed mean and SD allow, in units of the last digit."""
    worst, half = Fraction(0), Fraction(1, 200)
    for values in TABLE_7.values():
        for mean, sd, cv in (map(Fraction, values[:3]), map(Fraction, values[3:])):
            low, high = max(sd - half, Fraction(0)) / (mean + half), (sd + half) / (mean - half)
            worst = max(worst, low - cv, cv - high)
    return float(100 * max(worst, Fraction(0)))


def power_above(value: float) -> str:
    """The next power of ten that is not smaller; below 1e-14 it is rounding that differs from machine to machine."""
    return f"1e{max(math.ceil(math.log10(value)) if value else -14, -14)}"


def has_test(name: str) -> bool:
    """Is there such a test?"""
    path, _, function = name.partition("::")
    return re.search(rf"^def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE) is not None


def witness(row: Row) -> tuple[str, str]:
    """Who else says so, and the largest difference."""
    kind, _, name = row.check.partition(":")
    if kind == "formula":
        return "exact fractions", power_above(formula_difference(name))
    if kind in ("printed", "arithmetic"):
        agreeing, worst, others = printed_differences(name) if kind == "printed" else arithmetic_differences(name)
        apart = f"; {others} with a note" if others else ""
        return f"printed, {agreeing} values{apart}", f"{worst:.2f} units"
    if kind == "table7":
        return (
            "printed: every CV is SD / mean as far as their rounding tells; the splits are not published",
            f"{table_7_difference():.2f} units",
        )
    if kind == "test":
        if not has_test(name):
            raise KeyError(name)
        return f"`{name.removeprefix('tests/')}`", row.within
    return "", name


def page() -> str:
    """The whole document."""
    parts, rows = [HEAD], read_rows()
    for paper, title in PAPERS.items():
        parts.append(f"\n## {title}\n")
        for row in (row for row in rows if row.paper == paper):
            who, difference = witness(row)
            answer = "**out**" if row.answer == "out" else row.answer
            plain = (who, difference) == ("exact fractions", "1e-14")
            said = "" if plain else f" ({who}: {difference})" if who else f", {difference}"
            parts.append(f"- *{row.place}* {row.what}: {answer}{said}")
    return "\n".join(parts) + "\n"


def routes() -> set[str]:
    """Methods and paths of the service."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    return {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
