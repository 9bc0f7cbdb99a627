"""The figures of the papers, drawn by the service, and the numbers that stand beside them.

    python -m examples.figures.draw [--url http://127.0.0.1:8000]

Without an address the service runs inside this process (`prevail.local()`). Writes the pictures of this folder and the
table of numbers in its README. Needs scikit-learn and vl-convert-python, which `make test` installs.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import prevail

from examples.figures import inputs

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- numbers: written by draw.py -->", "<!-- end of numbers -->"
# What each of hundreds of bars says to a reader of the screen: the picture as a whole says it in words.
_OF_MARKS = re.compile(r' aria-label="[^"]*" role="graphics-symbol" aria-roledescription="[^"]*"')
# Places in a picture, of which more than three decimals of a pixel are not seen.
_PLACES = re.compile(r'\b(d|transform)="[^"]*"')
_DECIMALS = re.compile(r"(\.\d{3})\d+(?![\de])")
Specification = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in print, or by a printed formula, beside that of the service.

    Attributes:
        figure: Such as `000-2`, which the names of the pictures begin with.
        what: In words.
        digits: Decimals in print.
    """

    figure: str
    what: str
    printed: float
    ours: float
    digits: int

    @property
    def agrees(self) -> bool:
        """Are they the same to the printed digits?"""
        return abs(self.printed - self.ours) <= 0.5 * 10.0**-self.digits + 1e-12

    def __str__(self) -> str:
        """Its row of the table."""
        values = f"{self.printed:.{self.digits}f} | {self.ours:.{self.digits + 2}f}"
        return f"| {self.figure} | {self.what} | {values} | {'yes' if self.agrees else 'no'} |"


class Drawer:
    """Everything that is drawn, and every number, of one service."""

    def __init__(self, service: prevail.Client) -> None:
        self.service = service
        self.specifications: dict[str, Specification] = {}
        self.numbers: list[Number] = []

    def keep(self, name: str, source: Mapping[str, Any], **members: Any) -> Any:
        """An evaluation that is kept under a name."""
        return self.service.evaluate(input=source, model=name, dataset="papers", **members)

    def draw(self, picture: str, run: Any, plot: str, **options: Any) -> Specification:
        """A figure of a run."""
        found = self.service.plot(run, plot, **options).to_dict()
        self.specifications[picture] = found
        return found

    def number(self, figure: str, what: str, printed: float, ours: float, digits: int = 3) -> None:
        """A number beside the one in print."""
        self.numbers.append(Number(figure, what, printed, float(ours), digits))


def isocurves(at: Drawer) -> None:
    """Aguilar-Ruiz (2025), figure 1."""
    level, fpr = 0.7, 0.2
    runs = [at.keep(f"level {one}", inputs.binary(one, one)) for one in (level, 0.5, 0.9)]
    at.draw("000-1", runs[0], "isocurves", **{"with": ",".join(run.id for run in runs[1:])})
    found = at.service.isocurves(level, level, steps=11)
    place = found["fpr"].index(fpr)
    printed = {
        "balanced_accuracy": ("A: T = F + 2c - 1", fpr + 2 * level - 1),
        "g_mean": ("G: T = c² / (1 - F)", level**2 / (1 - fpr)),
        "h_mean": ("H: T = c (1 - F) / (2 - c - 2F)", level * (1 - fpr) / (2 - level - 2 * fpr)),
    }
    for key, (formula, value) in printed.items():
        at.number("000-1", f"{formula}, at c = {level}, F = {fpr}", value, found[key]["tpr"][place])


def weak_class(at: Drawer) -> None:
    """The same, figure 2, and the example of section 6."""
    runs = {
        said: at.keep(said, {"kind": "confusion_matrix", "labels": [*"ABCD"], "matrix": inputs.mix(shares)})
        for said, shares in inputs.MIXES.items()
    }
    first, *others = runs.values()
    drawn = at.draw("000-2", first, "recall_sweep", of="D", **{"with": ",".join(run.id for run in others)})
    means, accuracies = drawn["hconcat"]
    for told, value in {"A": 0.79, "G": 0.6325, "H": 0.4324}.items():
        at.number("000-2", f"{told} at a recall of 0.16", value, _at(means, told, 0.16), 4 if told != "A" else 2)
    for said, shares in inputs.MIXES.items():
        intercept, slope = (1 - shares[-1] / 100), shares[-1] / 100
        low, high = (_at(accuracies, f"{said} ", x) for x in (0.0, 1.0))
        at.number("000-2", f"accuracy at a recall of 0, mix {said}", intercept, low, 2)
        at.number("000-2", f"slope of the accuracy, mix {said}", slope, high - low, 2)


def _at(panel: Specification, line: str, x: float) -> float:
    """A value of a line of a panel, by how its name begins."""
    rows = next(one["data"]["values"] for one in panel["layer"] if one.get("name", "").startswith("curves"))
    return next(float(row["y"]) for row in rows if f"{row['line']} ".startswith(line) and abs(row["x"] - x) < 1e-9)


def surfaces(at: Drawer) -> None:
    """Wu & Cannistraci (2025), figure 1: the surfaces, and their sections at TNR of 1, 0.5 and 0."""
    x, y = 1.0, 0.5
    formulas = {
        "A": ("BA = AUROC of one cut", (x + y) / 2),
        "G": ("GM", sqrt(x * y)),
        "H": ("AC-score", 2 * x * y / (x + y)),
    }
    for part, tnr in (("b", 1.0), ("c", 0.5), ("d", 0.0)):
        run = at.keep(f"TNR {tnr:g}", inputs.binary(0.8, tnr))
        if part == "b":
            at.draw("001-1a", run, "surfaces")
        panel = at.draw(f"001-1{part}", run, "recall_sweep")["hconcat"][0]
        if tnr == y:
            for told, (name, value) in formulas.items():
                at.number("001-1", f"{name} at TPR 1, TNR 0.5", value, _at(panel, told, x))


def projections(at: Drawer) -> None:
    """The same, figure 2, on digits: LDA, and the nearest centroid with the cut of section 3.3."""
    lda, centroid, train = inputs.digits()
    learnt = at.keep("NMC in training", train)
    score = "mean(f1@positive, f1@negative, h_mean)"
    cut = at.service.threshold(learnt, score)["threshold"]
    runs = [at.keep("LDA", lda), at.keep("NMC", {**centroid, "threshold": cut})]
    for picture, run in zip(("001-2a", "001-2b"), runs, strict=True):
        at.draw(picture, run, "scores")
    metrics = ["h_mean", "g_mean", "balanced_accuracy", "mcc", "accuracy", "f1@positive", "recall@positive"]
    compared = at.service.compare(runs[1], runs[0], metrics=metrics)
    at.specifications["001-2c"] = at.service.comparison_plot(compared.id).to_dict()


def spread(at: Drawer) -> None:
    """Martín De Diego et al. (2022), figure 1."""
    run = at.keep(
        "largest spread", inputs.binary(1 / 3, 1.0, positive=3000), metrics=["gps_sd(ppv, tpr)", "gps(ppv, tpr)"]
    )
    at.draw("002-1a", run, "gps_spread_surface")
    drawn = at.draw("002-1b", run, "gps_spread")
    largest = max(
        (row for one in drawn["layer"] if one.get("name") == "curves" for row in one["data"]["values"]),
        key=lambda row: float(row["y"]),
    )
    at.number("002-1", "largest sd of two metrics, 1 / (2 √2)", 1 / (2 * sqrt(2)), largest["y"], 4)
    at.number("002-1", "1/p where it is largest", 3, largest["x"], 0)
    at.number("002-1", "the same as a metric, gps_sd(ppv, tpr)", 1 / (2 * sqrt(2)), run["gps_sd(ppv, tpr)"].value, 4)
    at.number("002-1", "GPS there", 0.5, run["gps(ppv, tpr)"].value, 1)


def normalized(at: Drawer) -> None:
    """Aguilar-Ruiz & Michalak (2024), figure 1: cells from TPR, FPR and the share of the positives."""
    tpr, fpr, pi, n = 0.8, 0.1, 0.3, 1000
    run = at.keep("rates", inputs.binary(tpr, 1 - fpr, positive=n * pi, negative=n * (1 - pi)))
    drawn = at.draw("003-1", run, "confusion")
    cells = {(row["actual"], row["predicted"]): row["count"] for row in drawn["data"]["values"]}
    for what, printed, place in (
        ("n π TPR", n * pi * tpr, ("1", "1")),
        ("n π (1 - TPR)", n * pi * (1 - tpr), ("1", "0")),
        ("n (1 - π) FPR", n * (1 - pi) * fpr, ("0", "1")),
        ("n (1 - π) (1 - FPR)", n * (1 - pi) * (1 - fpr), ("0", "0")),
    ):
        at.number("003-1", f"{what}, at TPR {tpr}, FPR {fpr}, π {pi}, n {n}", printed, cells[place], 0)


def imbalance(at: Drawer) -> None:
    """The same, figures 2 and 3: three datasets of growing imbalance by naive Bayes."""
    runs = [at.keep(f"naive Bayes, {name}", inputs.naive_bayes(name)) for name in "ABC"]
    at.draw("003-2", runs[0], "prevalence", of="C", **{"with": ",".join(run.id for run in runs[1:])})
    for name, run in zip("abc", runs, strict=True):
        at.draw(f"003-3{name}", run, "imcp")
    for name, run, power in zip("ABC", runs, (0, 2, 4), strict=True):
        found, sizes = run.to_dict()["input"]["prevalence"], [base**power for base in (1, 2, 3)]
        for label, size in zip(found, sizes, strict=True):
            at.number("003-2", f"share of class {label} of {name}, %", 100 * size / sum(sizes), 100 * found[label], 2)
    matrix = [[size if row == column else 0 for column in range(3)] for row, size in enumerate(inputs.SIZES_OF_D)]
    entropy = "normalized_reference_entropy"
    d = at.keep("sizes of D", {"kind": "confusion_matrix", "matrix": matrix}, metrics=[entropy])
    shares = d.to_dict()["input"]["prevalence"]
    for label, printed in zip(shares, (0.13, 8.06, 91.81), strict=True):
        at.number("003-2", f"share of class {label} of D, %", printed, 100 * shares[label], 2)
    at.number("003-2", "entropy of the class sizes of D", 0.264, d[entropy].value)


def closeness(at: Drawer) -> None:
    """The same, figures 4 to 7: the steps of the curve, its bars, its regions, and the classes one by one."""
    sample = at.keep("one sample", inputs.one_sample(), metrics=["mean_phi@A"])
    at.number("003-4", "H(t, p) of (1, 0, 0) and (0.35, 0.33, 0.32)", 0.639, 1 - sample["mean_phi@A"].value)
    drawn = at.draw("003-5", at.keep("nineteen samples", inputs.nineteen()), "imcp")
    bars = next(one["data"]["values"] for one in drawn["layer"] if one.get("name") == "bars")
    for label, count in (("A", 2), ("B", 5), ("C", 12)):
        width = next(row["width"] for row in bars if row["class"] == label)
        at.number("003-5", f"width of a sample of class {label}, 1 / (3 · {count})", 1 / (3 * count), width, 4)
    seven = at.keep("seven classes", inputs.seven_classes())
    at.draw("003-6a", seven, "imcp")
    at.draw("003-7", seven, "phi")
    boxes = seven.to_dict()["probabilities"]["per_class"]
    by_median = sorted(boxes, key=lambda label: float(boxes[label]["phi_quartiles"][1]))
    for part, label in (("worst", by_median[0]), ("best", by_median[-1])):
        at.draw(f"003-6b-{part}", seven, "imcp", of=label)
    many = at.keep("35 classes", inputs.one_of_each(35))
    levels = at.service.curve(many, "imcp")["levels"]
    at.number("003-6", "1 - η, above which nothing else can win", 0.459, levels["certainly_right_above"])
    at.number("003-6", "1 - θ of 35 classes", 0.088, levels["certainly_wrong_below"])


PAPERS: Sequence[Callable[[Drawer], None]] = (
    *(isocurves, weak_class),
    *(surfaces, projections),
    spread,
    *(normalized, imbalance, closeness),
)


def everything(service: prevail.Client) -> Drawer:
    """All figures and numbers."""
    drawer = Drawer(service)
    for paper in PAPERS:
        paper(drawer)
    return drawer


def table(numbers: Sequence[Number]) -> str:
    """The numbers as they stand in the README."""
    head = ["| figure | what | in print | ours | agree |", "| --- | --- | ---: | ---: | --- |"]
    return "\n".join([*head, *map(str, numbers)])


def _readme(service: prevail.Client) -> Iterator[tuple[str, Specification]]:
    """The picture that the README of the project opens with, in both themes."""
    source = {"kind": "confusion_matrix", "labels": [*"ABCD"], "matrix": inputs.EXAMPLE}
    run = service.evaluate(input=source, model="tumor-rf:7", dataset="hartwig", split="test")
    for theme in ("light", "dark"):
        yield f"readme-{theme}", service.plot(run, "confusion", theme=theme).to_dict()


def _smaller(svg: str) -> str:
    """A picture without what nobody sees."""
    return _PLACES.sub(lambda found: _DECIMALS.sub(r"\1", found[0]), _OF_MARKS.sub("", svg))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw everything, and write the table."""
    import vl_convert

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="of a running service; without it one runs in this process")
    url = parser.parse_args(arguments).url
    start: Callable[[], prevail.Client] = prevail.local if url is None else partial(prevail.Client, url)
    with ExitStack() as stack:
        service = stack.enter_context(start())
        drawer = everything(service)
        pictures = {**drawer.specifications, **dict(_readme(service))}
    for name, specification in pictures.items():
        (HERE / f"{name}.svg").write_text(_smaller(vl_convert.vegalite_to_svg(dict(specification))))
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n\n{table(drawer.numbers)}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
