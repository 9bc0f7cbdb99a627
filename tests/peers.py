"""What other libraries have: which key or route answers it here, and how far it is from what they compute.

`python -m tests.peers` writes docs/reference/peers.md, tests/domain/test_peers.py compares it. Rows:
tests/data/peers.csv.
"""

import csv
import json
import math
import re
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.expressions.expressions import parse
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.sets import Sets
from app.kernel.matrix.table import Table, confusion_counts
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject, compute
from app.kernel.samples.label_units import LabelScores, LabelSets
from app.kernel.samples.scores import Scores
from app.services.estimands import make_estimand
from app.services.estimates.run_data import RunData
from tests.papers import has_test, power_above
from tests.witnesses import imb, pycm, sk

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "peers.md"
PEERS = {
    "sklearn": "scikit-learn, `sklearn.metrics`",
    "imblearn": "imbalanced-learn, `imblearn.metrics`",
    "pycm class": "PyCM, statistics of a class",
    "pycm overall": "PyCM, overall statistics",
    "pycm distance": "PyCM, similarity coefficients of a class (`distance`)",
    "pycm method": "PyCM, methods of `ConfusionMatrix`",
    "torchmetrics": "torchmetrics, `torchmetrics.classification`, `torchmetrics.nominal`",
    "torchmetrics clustering": "torchmetrics, `torchmetrics.clustering`",
    "torchmetrics segmentation": "torchmetrics, `torchmetrics.segmentation` (`kind: sets`)",
    "torchmetrics retrieval": "torchmetrics, `torchmetrics.retrieval` (`kind: ranking`)",
    "ranx": "ranx, `ranx.metrics` (`kind: ranking`)",
    "ir_measures": "ir_measures (`kind: ranking`)",
    "genieclust": "genieclust, `genieclust.compare_partitions` (`kind: clustering`)",
}
RECORDED: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "elsewhere.json").read_text(encoding="utf-8"))
HEAD = """# Other libraries, name by name

What scikit-learn, PyCM, imbalanced-learn, torchmetrics, ranx, ir_measures and genieclust have for judging models: what
answers it here, who says that the two agree, and the largest difference. Written by `python -m tests.peers` from
`tests/data/peers.csv`, and compared by a test, which fails when a release of one of them brings a name.

- *measured*: this library itself, on random matrices, probabilities, clusterings, rankings and regions; relative
  difference, as the next power of ten. Measured equal is one of at most 1e-14;
- *labels*: the words for ranges of values are the same;
- *as*: the same number under another name, in the row of that name;
- a file and a test: what that test compares with and the difference that it lets pass;
- out: not there, with the reason.

The last seven sections are of libraries that are not installed for the tests: names, the order of the arguments (in
brackets) and values were recorded by `tests/elsewhere.py`. Where rankings tie their values are the mean over all orders
of the ties; a query without a value here has 0, 1 or none there. torchmetrics computes with seven digits.
"""
_CALL = re.compile(r"(\w+)(?:\((.*)\))?")
_QUOTED = re.compile(r"`([^`]+)`")
_SEVERAL = " of several labels"
# Largest relative difference that counts as agreement; where the peer subtracts or iterates, what that costs.
AGREEMENT = 1e-11
# That of a peer that computes with seven digits, logarithms among them.
SINGLE = 2e-6


@dataclass(frozen=True)
class Row:
    """One name of a library, or several that have one answer."""

    peer: str
    names: str
    answer: str
    check: str
    within: str

    @property
    def functions(self) -> list[str]:
        """The names without arguments."""
        if self.peer.startswith("pycm"):
            return _separated(self.names)
        return [one.partition("(")[0].removesuffix(_SEVERAL) for one in _separated(self.names)]

    @property
    def agreement(self) -> float:
        """Largest relative difference that counts as agreement."""
        return SINGLE if self.peer.startswith("torchmetrics") else AGREEMENT

    @property
    def arguments(self) -> str:
        """The arguments that a recorded function takes, in their order."""
        names = RECORDED["said"].get(self.peer, {"names": {}})["names"]
        asked = {names.get(one, "") for one in self.functions}
        return f" ({asked.pop()})" if len(asked) == 1 and asked != {""} else ""

    @property
    def expressions(self) -> list[str]:
        """What the answer asks for."""
        return [one for one in _QUOTED.findall(self.answer) if "/v1/" not in one and not one.startswith("kind: ")]


def _separated(text: str) -> list[str]:
    """Parts between commas that are not inside of brackets."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


def read_rows() -> list[Row]:
    """All names, in the order of the libraries."""
    with (ROOT / "tests" / "data" / "peers.csv").open(encoding="utf-8", newline="") as file:
        return [Row(**entry) for entry in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)]


def names_of(peer: str) -> set[str]:
    """What the installed library has."""
    match peer:
        case "sklearn":
            return set(sk.__all__)
        case "imblearn":
            return set(imb.__all__)
        case "pycm class":
            return set(dense(3)[1].class_stat)
        case "pycm overall":
            return set(dense(3)[1].overall_stat)
        case "pycm distance":
            return {one.name for one in pycm.DistanceType}
        case "pycm method":
            return {name for name in dir(pycm.ConfusionMatrix) if not name.startswith("_")}
    return set(RECORDED["said"][peer]["names"])


# --- what is compared ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One test run: labels, and probabilities where there are some."""

    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None = None

    @property
    def size(self) -> int:
        """Classes."""
        return int(self.truth.max()) + 1

    def value(self, text: str) -> list[float]:
        """What the service computes."""
        labels = [str(code) for code in range(self.size)]
        table = Table(confusion_counts(self.truth, self.predicted, self.size))
        subject: Table | Subject = table
        if self.probabilities is not None:
            subject = Subject.of_classes(table, Scores(self.truth, self.probabilities))
        inputs = {Inputs.MATRIX, Inputs.PROBABILITIES}
        expression = parse(text, labels, 1 if self.size == 2 else None, inputs=inputs)
        return [float(one) for one in np.atleast_1d(compute(expression, subject))]


@cache
def of_labels(size: int, count: int = 6) -> list[Problem]:
    """Matrices without empty cells, written out."""
    random = np.random.default_rng(20 + size)
    found = []
    for _ in range(count):
        counts = random.integers(1, 60, (size, size))
        actual, predicted = np.nonzero(counts)
        found.append(Problem(np.repeat(actual, counts.ravel()), np.repeat(predicted, counts.ravel())))
    return found


@cache
def of_probabilities(size: int, count: int = 4) -> list[Problem]:
    """Samples of a model that knows something, without ties."""
    random = np.random.default_rng(40 + size)
    found = []
    for _ in range(count):
        truth = np.concatenate([np.arange(size), random.integers(0, size, 200)])
        rows = random.dirichlet(np.ones(size), truth.size) + 0.5 * np.eye(size)[truth]
        rows /= rows.sum(axis=1, keepdims=True)
        found.append(Problem(truth, rows.argmax(axis=1), rows))
    return found


@dataclass(frozen=True)
class LabelProblem:
    """Samples with several labels, those that were predicted, and scores of all of them."""

    truth: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    probabilities: NDArray[np.float64]

    def value(self, text: str) -> list[float]:
        """What the service computes."""
        metric = catalogue().by_name[text]
        if metric.card.inputs is Inputs.LABEL_SCORES:
            return [float(metric.compute(LabelScores(self.truth, self.probabilities)))]
        return [float(metric.compute(LabelSets(self.truth, self.predicted)))]


@cache
def of_several_labels(count: int = 4) -> list[LabelProblem]:
    """Every sample has a label, and one is predicted: without any scikit-learn has to be told what counts."""
    random = np.random.default_rng(60)
    found = []
    for _ in range(count):
        truth = random.random((80, 5)) < [0.5, 0.3, 0.2, 0.4, 0.1]
        scores = random.random(truth.shape) + 0.4 * truth
        truth[~truth.any(axis=1), 0] = True
        predicted = scores > 0.7
        predicted[~predicted.any(axis=1), 1] = True
        found.append(LabelProblem(truth, predicted, scores))
    return found


@cache
def dense(size: int, seed: int = 0) -> tuple[Problem, Any]:
    """A matrix, and the same for PyCM."""
    problem = of_labels(size)[seed]
    counts = confusion_counts(problem.truth, problem.predicted, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem, pycm.ConfusionMatrix(matrix=counts.tolist())


def matrices_of_pycm() -> list[tuple[Problem, Any]]:
    """Of two to five classes."""
    return [dense(size, seed) for size in (2, 3, 4, 5) for seed in (0, 1)]


# --- what they say ---------------------------------------------------------------------------------------------------


def _report(found: dict[str, Any], keys: Sequence[str], size: int) -> list[float]:
    """Values of a report by what they are, class after class, and then of its averages."""
    return [found[str(code)][key] for key in keys for code in range(size)]


def _of_report(found: dict[str, Any], problem: Problem) -> list[float]:
    averages = [found[of][key] for of in ("macro avg", "weighted avg") for key in ("precision", "recall", "f1-score")]
    keys = ("precision", "recall", "f1-score", "support")
    return [*_report(found, keys, problem.size), *averages, found["accuracy"]]


# Parts of what a function gives, in the order of the answer.
PARTS: dict[str, Callable[[Any, Any], Iterable[Any]]] = {
    "classification_report": _of_report,
    "classification_report_imbalanced": lambda found, problem: _report(
        found, ("pre", "rec", "spe", "f1", "geo", "sup"), problem.size
    ),
    "multilabel_confusion_matrix": lambda found, _: found.transpose(1, 2, 0).ravel(),
    "precision_recall_fscore_support": lambda found, _: np.ravel(found),
    "sensitivity_specificity_support": lambda found, _: np.ravel(found),
}


def _whole(found: Any, _: Any) -> list[Any]:
    return [found]


def _index_balanced_accuracy(y_true: Any, y_pred: Any, *, alpha: float) -> Any:
    """Its index multiplies a metric squared; of the geometric mean that is TPR TNR."""
    make: Any = imb.make_index_balanced_accuracy
    return make(alpha=alpha, squared=True)(imb.geometric_mean_score)(y_true, y_pred, average=None)


# Functions that take a function.
_MADE: dict[str, Callable[..., Any]] = {"make_index_balanced_accuracy": _index_balanced_accuracy}


def _asked(module: Any, name: str) -> tuple[str, Callable[..., Any]]:
    """The function of a name, with its arguments."""
    match = _CALL.fullmatch(name)
    assert match is not None, name
    pairs = [one.partition("=") for one in _separated(match[2] or "") if one]
    options = {key.strip(): _literal(value.strip()) for key, _, value in pairs}
    function = _MADE.get(match[1]) or getattr(module, match[1])
    return match[1], lambda *given: function(*given, **options)


def _literal(text: str) -> Any:
    try:
        return literal_eval(text)
    except ValueError:
        return text


def said(module: Any, name: str, problem: Problem | LabelProblem, given: str) -> list[float]:
    """What a function of scikit-learn or imbalanced-learn says of a problem."""
    function, ask = _asked(module, name.removesuffix(_SEVERAL))
    second: Any = problem.predicted
    if given in ("probabilities", "label scores"):
        second = problem.probabilities
    elif given == "score":
        assert problem.probabilities is not None
        second = problem.probabilities[:, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ask(problem.truth, second)
    return [float(one) for one in np.ravel(list(PARTS.get(function, _whole)(found, problem)))]


def _disagreement(size: int, power: int) -> dict[int, dict[int, int]]:
    return {i: {j: abs(i - j) ** power for j in range(size)} for i in range(size)}


# What is asked of PyCM by a method.
METHODS: dict[str, Callable[[Any], Any]] = {
    "F_beta": lambda cm: cm.F_beta(2.0),
    "IBA_alpha": lambda cm: cm.IBA_alpha(0.3),
    # Its alpha weighs the misses, that of Tversky (1977) the false alarms.
    "TI": lambda cm: cm.TI(alpha=0.7, beta=0.2),
    # The exchange rate of the threshold 0.2.
    "NB": lambda cm: cm.NB(0.25),
    "sensitivity_index": lambda cm: cm.sensitivity_index(),
    "weighted_kappa": lambda cm: cm.weighted_kappa(_disagreement(len(cm.classes), 2)),
    "weighted_alpha": lambda cm: cm.weighted_alpha(_disagreement(len(cm.classes), 2)),
    "average": lambda cm: cm.average("F1"),
    "weighted_average": lambda cm: cm.weighted_average("F1"),
}


def said_by_pycm(peer: str, name: str, cm: Any) -> list[Any]:
    """Numbers or words, one per class or one."""
    match peer:
        case "pycm class":
            found = cm.class_stat[name]
        case "pycm overall":
            found = cm.overall_stat[name]
        case "pycm distance":
            found = cm.distance(metric=pycm.DistanceType[name])
        case _:
            found = METHODS[name](cm)
    return list(found.values()) if isinstance(found, dict) else list(found) if isinstance(found, tuple) else [found]


# Two limits, by arithmetic on what there is.
def _limits(value: str, error: str) -> Callable[[Problem], list[float]]:
    def ends(problem: Problem) -> list[float]:
        (middle,), (wide,) = problem.value(value), problem.value(error)
        return [middle - 1.96 * wide, middle + 1.96 * wide]

    return ends


# Where an answer is arithmetic on expressions.
DERIVED: dict[str, Callable[[Problem], list[float]]] = {
    "95% CI": _limits("accuracy", "accuracy_standard_error"),
    "Kappa 95% CI": _limits("cohen_kappa", "kappa_standard_error"),
    "DP": lambda problem: [one / math.log(10.0) for one in problem.value("discriminant_power@*")],
    "POP": lambda problem: [
        a + b for a, b in zip(problem.value("support@*"), problem.value("n_negative@*"), strict=True)
    ],
}


def mine(row: Row, problem: Problem | LabelProblem) -> list[float]:
    """What the service says, part after part."""
    if row.names in DERIVED and isinstance(problem, Problem):
        return DERIVED[row.names](problem)
    return [value for text in row.expressions for value in problem.value(text)]


def _apart(here: Sequence[float], there: Sequence[float]) -> float:
    assert len(here) == len(there), (here, there)
    pairs = zip(here, there, strict=True)
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)


PROBLEMS: dict[str, Callable[[], Sequence[Problem | LabelProblem]]] = {
    "labels": lambda: [one for size in (2, 3, 5) for one in of_labels(size, 3)],
    "two": lambda: of_labels(2, 6),
    "probabilities": lambda: of_probabilities(3),
    "two probabilities": lambda: of_probabilities(2),
    "score": lambda: of_probabilities(2),
    "sets": of_several_labels,
    "label scores": of_several_labels,
}


@cache
def difference(row: Row) -> float:
    """Largest relative difference between what is here and what a library says."""
    given = row.check.partition(":")[2]
    if row.peer.startswith("pycm"):
        return max(
            _apart(mine(row, problem), said_by_pycm(row.peer, row.names, cm)) for problem, cm in matrices_of_pycm()
        )
    if row.peer in RECORDED["said"]:
        return _from_recorded(row, given)
    module = sk if row.peer == "sklearn" else imb
    kind = "probabilities" if given == "two probabilities" else given
    return max(_apart(mine(row, one), said(module, row.names, one, kind)) for one in PROBLEMS[given]())


def _from_recorded(row: Row, given: str) -> float:
    """The same of a library that is not installed; what has no value here is 0, 1 or nothing there."""
    apart = 0.0
    problems = RECORDED["problems"][given]
    for one, there in zip(problems, RECORDED["said"][row.peer]["values"][row.names], strict=True):
        here = [value for text in row.expressions for value in _of_units(text, given, one)]
        known = [pair for pair in zip(here, there, strict=True) if not math.isnan(pair[0])]
        if len(known) < len(there) and not set(there) <= {0.0, 1.0} and not math.isnan(there[0]):
            raise ValueError(f"{row.names} is not undefined there: {there}")
        if known and not math.isnan(known[0][1]):
            apart = max(apart, _apart(*zip(*known, strict=True)))
    return apart


def _of_units(text: str, given: str, one: dict[str, Any]) -> list[float]:
    """What the service says of one recorded problem."""
    source, task, labels = _read(given, one)
    values = RunData(source).values(make_estimand(text, labels, None, INPUTS_OF[task], task))
    return [float(one) for one in values]


def _read(given: str, one: dict[str, Any]) -> tuple[MatrixInput, Task, tuple[str, ...]]:
    if given == "rankings":
        ranked = Ranking(query_ids=[0] * len(one["scores"]), relevance=one["relevance"], scores=one["scores"])
        return ranked.read("/input"), Task.RANKING, ()
    if given == "clusterings":
        points = np.asarray(one["points"])
        grouped = Clustering(y_true=one["truth"], y_pred=one["found"], features=points).read("/input")
        return grouped, Task.CLUSTERING, grouped.labels
    there, said = (np.asarray(one[name]).reshape(len(one[name]), -1) for name in ("there", "said"))
    codes = range(3) if given == "regions" else [1]
    inside = [(t == code, s == code) for t, s in zip(there, said, strict=True) for code in codes]
    sizes = np.array([(t.sum(), s.sum(), (t & s).sum()) for t, s in inside], dtype=np.float64)
    items = Sets(
        n_true=sizes[:, 0],
        n_predicted=sizes[:, 1],
        n_common=sizes[:, 2],
        item_classes=[str(code) for _ in there for code in codes],
    ).read("/input")
    return items, Task.SETS, items.labels


def same_labels(row: Row) -> bool:
    """Are the words for ranges of values those of PyCM, wherever there is a value?"""
    _, text, name, *derived = row.check.split(":")
    key = text.partition("@")[0]
    scale = next(one for one in catalogue().by_name[key].card.scales if one.name == name)
    pairs = [
        (scale.label(value), str(word).lower())
        for problem, cm in matrices_of_pycm()
        for value, word in zip(
            DERIVED[derived[0]](problem) if derived else problem.value(text),
            said_by_pycm(row.peer, row.names, cm),
            strict=True,
        )
    ]
    # PyCM has no word for a lambda of 0.
    return all(here == there for here, there in pairs if there != "none")


# --- the page --------------------------------------------------------------------------------------------------------


def witness(row: Row) -> tuple[str, str]:
    """Who says that it is the same, and the largest difference."""
    kind, _, rest = row.check.partition(":")
    match kind:
        case "measured":
            return "measured", power_above(difference(row))
        case "labels":
            return "labels", "equal" if same_labels(row) else "not equal"
        case "test":
            if not has_test(rest):
                raise KeyError(rest)
            return f"`{rest.removeprefix('tests/')}`", row.within
        case "as":
            return f"as {rest}", row.within
    return "", rest


def page() -> str:
    """The whole document."""
    parts, rows = [HEAD], read_rows()
    for peer, title in PEERS.items():
        equal, others, out = [], [], []
        for row in (row for row in rows if row.peer == peer):
            who, apart = witness(row)
            names = ", ".join(f"`{one}`" for one in _separated(row.names)) + row.arguments
            if row.answer == "out":
                out.append(f"- {names}: {apart}")
            elif (who, apart) == ("measured", "1e-14"):
                equal.append(f"- {names}: {row.answer}")
            else:
                others.append(f"| {names} | {row.answer} | {who}: {apart} |")
        parts += [f"\n## {title}", *(["\nMeasured equal:\n", *equal] if equal else ())]
        if others:
            parts += ["\n| name | answered by | witness: largest difference |\n| --- | --- | --- |", *others]
        parts += ["\nOut:\n", *out] if out else ()
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
