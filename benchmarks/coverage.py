"""How often the 95 % intervals of reports hold the truth, by simulation: `python -m benchmarks.coverage`.

Every design draws inputs from a population whose values are known, and each input is evaluated as a request is: what is
counted are the intervals that users get. Prints one Markdown table. `--replicates 2000` gives a standard error of half
a point, `--only "scores, class of 10%, 2000"` runs the designs whose name and size have that in them. `--equal` draws
runs that are equal in truth instead, and counts how often a comparison, a gate or a leaderboard says that they are not.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.api.bodies.parsing import parse_body
from app.api.presentation import EVALUATION, View
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.evaluation import DatasetRef, EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.rules import definition_of
from app.kernel.compare.gates import Verdict
from app.services.compare.comparisons import AskedComparison, NewComparison, compare, understood
from app.services.estimands import Better, Preference
from app.services.evaluate.evaluations import Evaluation
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone
from app.services.gate import check_gate, rule_estimands
from app.services.rank import LeaderboardQuery, rank_candidates
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples
from app.services.stored import unkept_record

Floats = NDArray[np.float64]
Input = dict[str, Any]
Draw = Callable[[np.random.Generator], Input]
OVERALL = ("balanced_accuracy", "h_mean", "macro_f1", "mcc")
# What has no interval unless it is asked for is resampled.
ALL = {"intervals": "all"}
RULE = {"better_than": "baseline", "bound": "lower", "level": 0.95}
# Groups of one class, and the share of them that is of the rarer one.
OWNED = ((6, 0.5), (10, 0.3), (20, 0.3), (50, 0.1), (50, 0.3))
# Chances that a group has anything of a label.
HAD = np.array([0.8, 0.5, 0.35, 0.25, 0.2])
# Rows of a sample, and samples of a table, that stand for the whole population.
POPULATION, INFINITE = 200_000, 1e9


@dataclass(frozen=True)
class Design:
    """What is drawn, and how often.

    Attributes:
        name: What is drawn.
        size: How much of it.
        truths: The values of the population, by metric.
        draw: Makes an input.
        at: The member of the report with the intervals.
        options: Of the request.
        slow: Of so many replicates one is drawn.
    """

    name: str
    size: str
    truths: Mapping[str, float]
    draw: Draw
    at: str = "intervals"
    options: Mapping[str, Any] = field(default_factory=dict)
    slow: int = 1


def report(source: Input, **options: Any) -> dict[str, Any]:
    """The report on an input, as JSON has it."""
    written = orjson.dumps({"input": source, "options": options}, option=orjson.OPT_SERIALIZE_NUMPY)
    new = parse_body(written, EvaluationRequest).to_domain()
    found = View(EVALUATION).write(Evaluation(report=report_alone(ask(new.source, new.options))))
    made: dict[str, Any] = orjson.loads(found)
    return made


def values(source: Input, keys: tuple[str, ...]) -> dict[str, float]:
    """Values of the metrics of an input that stands for the population."""
    found: dict[str, float] = report(source, metrics=list(keys), intervals="none")["requested"]
    return found


def held(design: Design, replicates: int) -> dict[str, Floats]:
    """By size and metric: how many intervals hold the truth, lie below it, lie above it, and are missing."""
    random = np.random.default_rng(len(design.name))
    counts = {key: np.zeros(4) for key in design.truths}
    for _ in range(max(replicates // design.slow, 20)):
        made = report(design.draw(random), **{"metrics": list(design.truths), **design.options})
        for key, truth in design.truths.items():
            interval = made[design.at].get(key)
            if interval is None or interval["low"] is None:
                counts[key][3] += 1
            else:
                counts[key][1 if interval["high"] < truth else 2 if interval["low"] > truth else 0] += 1
    return {f"{design.size} {key}": number for key, number in counts.items()}


def summary(found: Mapping[str, Mapping[str, Floats]]) -> Iterator[str]:
    """A row for each design, and by name the cells whose limits hold the truth in less than 93 %.

    Shares are of the inputs that have limits; cells in which most inputs have none are left out.
    """
    yield "| drawn | replicates | cells | least | median | most | not .94 to .96 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    low = []
    for name, cells in found.items():
        rounds = sum(next(iter(cells.values())))
        known = {cell: np.round(n[:3] / n[:3].sum(), 3) for cell, n in cells.items() if n[3] <= rounds / 2}
        held = [share[0] for share in known.values()] or [np.nan]
        off = sum(not 0.94 <= share <= 0.96 for share in held)
        span = f"{min(held):.3f} | {np.median(held):.3f} | {max(held):.3f}"
        yield f"| {name} | {rounds:.0f} | {len(known)} | {span} | {off} |"
        missed = [f"{cell} {a:.3f} ({b:.3f}, {c:.3f})" for cell, (a, b, c) in known.items() if a < 0.93]
        low += [f"- {name}: {'; '.join(missed)}"] if missed else []
    yield "\nBelow .93, in brackets the limits that lie wholly below and wholly above the truth:\n"
    yield from low


# Matrices.


def matrix(counts: NDArray[Any]) -> Input:
    return {"kind": "confusion_matrix", "matrix": counts.astype(np.int64)}


def true_rows(recalls: Floats) -> Floats:
    """Rows P(predicted | actual) with these recalls (K) and errors spread evenly."""
    classes = len(recalls)
    rows = np.repeat(((1.0 - recalls) / (classes - 1))[:, None], classes, axis=1)
    np.fill_diagonal(rows, recalls)
    return rows


def drawn_matrix(rows: Floats, sizes: NDArray[np.int64], random: np.random.Generator, *, fixed: bool) -> Input:
    """A matrix with so many samples of each class, or of as many in all."""
    if fixed:
        return matrix(random.multinomial(sizes, rows))
    cells = (rows * sizes[:, None] / sizes.sum()).ravel()
    return matrix(random.multinomial(sizes.sum(), cells).reshape(rows.shape))


RECALLS: dict[str, Callable[[int], Floats]] = {
    "recalls .80 to .99": lambda n: np.linspace(0.80, 0.99, n),
    "recalls all .60": lambda n: np.full(n, 0.60),
    "recalls all .97": lambda n: np.full(n, 0.97),
    "recalls one .30, rest .95": lambda n: np.where(np.arange(n) == 0, 0.30, 0.95),
    "recalls .20 to .99": lambda n: np.linspace(0.20, 0.99, n),
}
# Samples of the classes, the first of which is the frequent one.
UNEVEN = ((500, 500), (950, 50), (980, 20), (500, 100, 25), (400, 400, 10), (20, 4), (50, 2, 2))


def of_matrices() -> Iterator[Design]:
    for name, recalls in RECALLS.items():
        for classes, size in ((2, 25), (3, 25), (3, 100), (10, 25), (10, 100), (35, 25)):
            rows, sizes = true_rows(recalls(classes)), np.full(classes, size)
            truths = values(matrix(np.round(rows * INFINITE)), OVERALL)
            for fixed in (True, False)[: 2 if name == "recalls .80 to .99" else 1]:
                draw = partial(drawn_matrix, rows, sizes, fixed=fixed)
                counts = "fixed" if fixed else "random"
                yield Design(f"matrix, {name}, class counts {counts}", f"{classes} of {size}", truths, draw)
    for uneven in UNEVEN:
        rows, sizes = true_rows(RECALLS["recalls .80 to .99"](len(uneven))), np.array(uneven)
        draw = partial(drawn_matrix, rows, sizes, fixed=True)
        of_each = " + ".join(map(str, uneven))
        own = values(matrix(np.round(rows * sizes[:, None] * 1e6)), (*OVERALL, f"f1@{len(uneven) - 1}"))
        yield Design("matrix, uneven classes", of_each, own, draw)
        keys = ("macro_f1", "mcc", "cohen_kappa")
        equal = values(matrix(np.round(rows * INFINITE)), keys)
        at = "intervals_at_balanced_prevalence"
        yield Design("matrix, uneven classes, at equal shares", of_each, equal, draw, at=at)


# Probabilities.

CLOSED = ("log_loss", "brier_score", "au_imcp")
RESAMPLED = ("average_precision", "ks_statistic", "median_phi", "h_measure", "expected_calibration_error")


def drawn_probabilities(
    shares: Floats, size: int, random: np.random.Generator, *, apart: float, confidence: float
) -> Input:
    """Scores of the actual class are shifted, and stated with some confidence; 1 states the true probabilities."""
    y = random.choice(shares.size, size, p=shares)
    logits = random.normal(size=(size, shares.size)) * apart
    logits[np.arange(size), y] += apart**2
    logits = (logits + np.log(shares)) * confidence
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    names = [f"c{code}" for code in range(shares.size)]
    return {"kind": "probabilities", "labels": names, "y_true": [names[code] for code in y], "probabilities": p}


def of_probabilities() -> Iterator[Design]:
    worlds: tuple[tuple[tuple[float, ...], int, float, float], ...] = (
        ((0.5, 0.5), 50, 1.2, 1.0),
        ((0.5, 0.5), 200, 1.2, 1.0),
        ((0.95, 0.05), 200, 1.2, 1.0),
        ((0.95, 0.05), 1000, 1.2, 1.0),
        ((0.5, 0.5), 200, 2.5, 1.0),
        ((0.5, 0.5), 200, 1.2, 2.0),
        ((1 / 3, 1 / 3, 1 / 3), 300, 1.2, 1.0),
        ((0.1,) * 10, 1000, 1.2, 1.0),
    )
    for shares, size, apart, confidence in worlds:
        world = partial(drawn_probabilities, np.array(shares), apart=apart, confidence=confidence)
        last = f"@c{len(shares) - 1}"
        keys = (*CLOSED, f"roc_auc{last}")
        drawn = tuple(key if "calibration" in key else f"{key}{last}" for key in RESAMPLED)
        truths = values(world(POPULATION // len(shares), np.random.default_rng(1)), (*keys, *drawn))
        name = f"probabilities, rarest class {min(shares):.0%}, apart {apart}, confidence {confidence}"
        draw = partial(world, size)
        text = f"{len(shares)} classes, {size}"
        yield Design(name, text, {key: truths[key] for key in keys}, draw)
        if len(shares) < 10:
            of_drawn = {key: truths[key] for key in drawn}
            yield Design(f"{name}, resampled", text, of_drawn, draw, options=ALL, slow=10)


# A rate of two classes where the other rate is .9.


def drawn_scores(share: float, apart: float, size: int, random: np.random.Generator) -> Input:
    """Normal scores, those of the members further up; one sample of each class at least."""
    members = min(max(random.binomial(size, share), 1), size - 1)
    y = np.repeat((1, 0), (members, size - members))
    return {
        "kind": "scores",
        "labels": ["other", "member"],
        "y_true": np.where(y, "member", "other").tolist(),
        "scores": random.normal(size=size) + apart * y,
    }


def of_scores() -> Iterator[Design]:
    normal, apart = NormalDist(), 2.0
    # By symmetry both rates are the same.
    truth = normal.cdf(apart - normal.inv_cdf(0.9))
    rates = {"specificity_at(recall=0.9)@member": truth, "recall_at(specificity=0.9)@member": truth}
    # The average precision is the mean precision over all recalls.
    recalls = (np.arange(10_000) + 0.5) / 10_000
    alarms = np.array([normal.cdf(normal.inv_cdf(recall) - apart) for recall in recalls])
    for share in (0.5, 0.1, 0.02):
        precision = share * recalls / (share * recalls + (1.0 - share) * alarms)
        truths = rates | {"average_precision@member": float(np.mean(precision))}
        for size in (20, 50, 200, 2000):
            draw = partial(drawn_scores, share, apart, size)
            yield Design(f"normal scores, class of {share:.0%}", str(size), truths, draw)


# Samples in groups, and samples with weights.


def predictions(truth: NDArray[np.int64], predicted: NDArray[np.int64], **more: Any) -> Input:
    return {"kind": "predictions", "y_true": truth, "y_pred": predicted, **more}


def drawn_groups(sizes: str, n_groups: int, random: np.random.Generator) -> Input:
    """Every group is right with a chance of its own, Beta(2, 1)."""
    match sizes:
        case "equal":
            each = np.full(n_groups, 12)
        case "1 to 23":
            each = random.integers(1, 24, n_groups)
        case _:
            each = np.ceil(12 * random.pareto(1.5, n_groups) + 1).astype(np.int64)
    groups = np.repeat(np.arange(n_groups), each)
    truth = random.integers(0, 3, groups.size)
    right = random.random(groups.size) < random.beta(2.0, 1.0, n_groups)[groups]
    wrong = (truth + random.integers(1, 3, groups.size)) % 3
    return predictions(truth, np.where(right, truth, wrong), group_ids=groups)


def equal_mixes(n_groups: int, runs: int, random: np.random.Generator) -> Sequence[Input]:
    """1 to 23 samples of a group, which has shares of three classes of its own: many have none of the rare one."""
    groups = np.repeat(np.arange(n_groups), random.integers(1, 24, n_groups))
    shares = random.dirichlet([1.8, 0.9, 0.3], n_groups)
    truth = (random.random((groups.size, 1)) > shares.cumsum(axis=1)[groups, :2]).sum(axis=1)
    truth[:3] = range(3)
    made = []
    for _ in range(runs):
        right = random.random(groups.size) < random.beta(4.0, 1.0, n_groups)[groups]
        wrong = (truth + random.integers(1, 3, groups.size)) % 3
        names = {"group_ids": groups, "sample_ids": np.arange(groups.size)}
        made.append(predictions(truth, np.where(right, truth, wrong), **names))
    return made


def first_of(draw: Callable[[np.random.Generator], Sequence[Input]], random: np.random.Generator) -> Input:
    """Return one run on such samples."""
    return draw(random)[0]


def equal_owned(n_groups: int, share: float, runs: int, random: np.random.Generator) -> Sequence[Input]:
    """12 samples of a group on average, geometric, all of one class that goes together; two groups at least of each."""
    groups = np.repeat(np.arange(n_groups), random.geometric(1 / 12, n_groups))
    count = min(max(random.binomial(n_groups, share), 2), n_groups - 2)
    member = random.permutation(np.arange(n_groups) < count)[groups]
    names = ["other", "member"]
    made: Input = {"kind": "scores", "labels": names, "y_true": np.take(names, member.astype(int)).tolist()}
    made |= {"group_ids": groups, "sample_ids": np.arange(groups.size)}
    apart = [1.5 * member + 0.7 * random.normal(size=n_groups)[groups] for _ in range(runs)]
    return [{**made, "scores": one + random.normal(size=groups.size)} for one in apart]


_OF_ONE = "predictions in groups of one class"


def drawn_owned(
    n_groups: int, random: np.random.Generator, kind: str = "predictions", *, weighted: bool = False
) -> Input:
    """12 samples of a group on average, geometric, of one of three classes; perhaps each group has a weight."""
    groups = np.repeat(np.arange(n_groups), random.geometric(1 / 12, n_groups))
    truth = random.choice(3, n_groups, p=(0.6, 0.3, 0.1))[groups]
    right = random.random(groups.size) < random.beta(4.0, 1.0, n_groups)[groups]
    made = predictions(truth, np.where(right, truth, (truth + random.integers(1, 3, groups.size)) % 3), kind=kind)
    weights = {"sample_weight": random.lognormal(0.0, 1.0, n_groups)[groups]} if weighted else {}
    return made | {"group_ids": groups} | weights | ({} if kind == "clustering" else {"labels": [0, 1, 2]})


def drawn_weights(cells: Floats, random: np.random.Generator, *, informative: bool) -> Input:
    """1,000 samples; wrong predictions are drawn twice as often and weigh half as much where weights are informative.

    Weights are gamma variates of shape 2.
    """
    means = np.where(np.eye(len(cells), dtype=bool), 2.0, 1.0) if informative else np.ones(cells.shape)
    chances = (cells / means).ravel()
    drawn = random.choice(cells.size, 1000, p=chances / chances.sum())
    truth, predicted = np.divmod(drawn, len(cells))
    return predictions(truth, predicted, sample_weight=means.ravel()[drawn] * random.gamma(2.0, 0.5, 1000))


def of_designs() -> Iterator[Design]:
    truths = {"accuracy": 2 / 3, "balanced_accuracy": 2 / 3, "h_mean": 2 / 3, "macro_f1": 2 / 3, "mcc": 0.5}
    for sizes in ("equal", "1 to 23", "heavy-tailed"):
        for n_groups in (5, 10, 20, 60):
            draw = partial(drawn_groups, sizes, n_groups)
            yield Design(f"groups, sizes {sizes}", f"{n_groups} groups", truths, draw)
    keys = ("balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc")
    truths = values(equal_mixes(POPULATION // 12, 1, np.random.default_rng(1))[0], keys)
    for n_groups in (6, 10, 20, 60):
        draw = partial(first_of, partial(equal_mixes, n_groups, 1))
        yield Design("groups of classes of their own", f"{n_groups} groups", truths, draw)
    rates = ("precision@0", "f1@0", "precision@2", "f1@2")
    truths = values(drawn_owned(POPULATION // 12, np.random.default_rng(1)), rates)
    measures = ("bcubed_f1", "v_measure", "purity", "adjusted_rand")
    of_clusters = values(drawn_owned(POPULATION // 12, np.random.default_rng(1), "clustering"), measures)
    for n_groups in (10, 20, 50):
        yield Design(_OF_ONE, f"{n_groups} groups", truths, partial(drawn_owned, n_groups))
        draw = partial(drawn_owned, n_groups, weighted=True)
        yield Design(f"{_OF_ONE}, weighted", f"{n_groups} groups", truths, draw)
        draw = partial(drawn_owned, n_groups, kind="clustering")
        yield Design(_OF_ONE.replace("predictions", "clusterings"), f"{n_groups} groups", of_clusters, draw)
    areas = ("roc_auc@member", "average_precision@member")
    for n_groups, share in OWNED:
        truths = values(equal_owned(POPULATION // 12, share, 1, np.random.default_rng(1))[0], areas)
        draw = partial(first_of, partial(equal_owned, n_groups, share, 1))
        yield Design("scores in groups of one class", f"{n_groups} groups, {share:.0%} members", truths, draw)
    for classes in (2, 3, 10):
        for share in (0.02, 0.1, 0.5):
            actual = np.full(classes, (1.0 - share) / (classes - 1))
            actual[0] = share
            cells = actual[:, None] * true_rows(np.linspace(0.8, 0.95, classes))
            own = values(matrix(np.round(cells * INFINITE)), ("accuracy", *OVERALL))
            for informative in (False, True):
                draw = partial(drawn_weights, cells, informative=informative)
                told = "informative" if informative else "unrelated"
                yield Design(f"weights {told}, first class {share:.0%}", f"{classes} classes, 1000", own, draw)


# Slices.

OVER_SLICES = ("min", "range", "ratio")
SLICE_RECALLS: dict[str, Callable[[int], Floats]] = {
    "recalls all .90": lambda n: np.full(n, 0.90),
    "recalls one .70, rest .90": lambda n: np.where(np.arange(n) == 0, 0.70, 0.90),
    "recalls .80 to .99": lambda n: np.linspace(0.80, 0.99, n),
}


def drawn_slices(recalls: Floats, size: int, random: np.random.Generator, luck: Floats | None = None) -> Input:
    """Members of class 1 at as many sites as there are recalls, so many at each, found where luck is below."""
    site = np.repeat(np.arange(len(recalls)), size)
    found = ((random.random(site.size) if luck is None else luck) < recalls[site]).astype(np.int64)
    # Texts: many numbers would be divided into quarters.
    names = np.char.add("site ", site.astype(str)).tolist()
    return predictions(np.ones(site.size, np.int64), found, labels=[0, 1], positive=1, attributes={"site": names})


def of_slices() -> Iterator[Design]:
    for name, recalls in SLICE_RECALLS.items():
        for count in (2, 5, 20, 50):
            true = recalls(count)
            truths = dict(zip(OVER_SLICES, (true.min(), np.ptp(true), true.min() / true.max()), strict=True))
            own = {f"{function}(recall@1, by=site)": float(truth) for function, truth in truths.items()}
            for size in (30, 300, 3000):
                yield Design(f"slices, {name}", f"{count} of {size}", own, partial(drawn_slices, true, size))


# Labels, queries, clusterings.


def drawn_labels(n_labels: int, size: int, random: np.random.Generator) -> Input:
    """From frequent labels to rare ones; with a hidden trait there are more of them, and they are found more often."""
    shares, recalls = np.geomspace(0.4, 0.05, n_labels), np.linspace(0.9, 0.6, n_labels)
    trait = (random.random(size) < 0.3).astype(int)
    there = random.random((size, n_labels)) < np.stack([0.7 * shares, np.minimum(1.7 * shares, 0.9)])[trait]
    hits, false = np.stack([recalls - 0.1, recalls + 0.08]), np.stack([0.2 * shares, 0.4 * shares])
    found = random.random(there.shape) < np.where(there, hits[trait], false[trait])
    return {"kind": "multilabel", "y_true": there.astype(int), "y_pred": found.astype(int)}


def drawn_labels_in_groups(n_groups: int, random: np.random.Generator, had: Floats | float = 1.0) -> Input:
    """1 to 23 samples of a group, which has a chance of its own to have each of five labels and to find them."""
    groups = np.repeat(np.arange(n_groups), random.integers(1, 24, n_groups))
    shares, found = random.beta(2.0, 4.0, (n_groups, 5)), random.beta(6.0, 2.0, (n_groups, 5))
    there = random.random((groups.size, 5)) < (shares * (random.random((n_groups, 5)) < had))[groups]
    there[:5] |= np.eye(5, dtype=bool)
    said = random.random(there.shape) < np.where(there, found[groups], 0.15)
    return {"kind": "multilabel", "y_true": there.astype(int), "y_pred": said.astype(int), "group_ids": groups}


def drawn_queries(n_queries: int, random: np.random.Generator) -> Input:
    """20 items each; some queries are much harder than others."""
    grades = random.integers(0, 4, (n_queries, 20)) * (random.random((n_queries, 20)) < 0.3)
    grades[:, 0] = 1
    scores = grades + random.gamma(1.0, 1.5, (n_queries, 1)) * random.normal(size=grades.shape)
    ids = np.repeat(np.arange(n_queries), 20)
    return {"kind": "ranking", "query_ids": ids, "relevance": grades.ravel().astype(float), "scores": scores.ravel()}


def drawn_clusters(cells: Floats, size: int, random: np.random.Generator) -> Input:
    return clustering(random.multinomial(size, cells.ravel()).reshape(cells.shape))


def clustering(counts: NDArray[Any]) -> Input:
    return {"kind": "clustering", "contingency": counts.astype(np.int64)}


def of_units() -> Iterator[Design]:
    for n_labels in (5, 20):
        truths = values(drawn_labels(n_labels, POPULATION // 2, np.random.default_rng(1)), ("h_mean", "macro_f1"))
        for size in (200, 2000):
            yield Design("labels", f"{n_labels} of {size}", truths, partial(drawn_labels, n_labels, size))
    of_labels = ("h_mean", "balanced_accuracy", "macro_f1", "micro_f1", "recall@0", "precision@0", "f1@0", "samples_f1")
    truths = values(drawn_labels_in_groups(POPULATION // 12, np.random.default_rng(1)), of_labels)
    for n_groups in (20, 50, 100):
        yield Design("labels in groups", f"{n_groups} groups", truths, partial(drawn_labels_in_groups, n_groups))
    truths = values(drawn_labels_in_groups(POPULATION // 12, np.random.default_rng(1), HAD), of_labels[:4])
    for n_groups in (6, 10, 20, 50):
        draw = partial(drawn_labels_in_groups, n_groups, had=HAD)
        yield Design("labels that few groups have", f"{n_groups} groups", truths, draw)
    asked = ("ndcg_at_k(k=10)", "bpref", "expected_reciprocal_rank(k=20)", "rank_biased_precision(persistence=0.8)")
    queries = values(drawn_queries(POPULATION // 10, np.random.default_rng(1)), asked)
    for size in (15, 50, 200):
        yield Design("queries", f"{size}", queries, partial(drawn_queries, size))
    keys = (
        *("adjusted_rand", "pair_fowlkes_mallows", "purity", "v_measure", "pair_f1", "bcubed_f1", "cluster_accuracy"),
        *("variation_of_information", "pair_sets_index", "normalized_clustering_accuracy"),
    )
    for classes, right in ((3, 0.6), (3, 0.9), (6, 0.8)):
        shares = np.arange(1.0, classes + 1.0)
        cells = true_rows(np.full(classes, right)) * (shares / shares.sum())[:, None]
        truths = values(clustering(np.round(cells * INFINITE)), keys)
        for size in (50, 200, 1000):
            draw = partial(drawn_clusters, cells, size)
            yield Design(f"clusterings, {right:.0%} right", f"{classes} classes, {size}", truths, draw, options=ALL)


# Runs that are equal in truth, on the same test set.


@dataclass(frozen=True)
class EqualRuns:
    """What is drawn, and how much of it: two runs for comparisons and gates, more for leaderboards."""

    name: str
    size: str
    metrics: tuple[str, ...]
    draw: Callable[[np.random.Generator], Sequence[Input]]


def claimed(design: EqualRuns, replicates: int) -> Iterator[str]:
    """A line for each metric: shares of the replicates in which something is claimed."""
    random = np.random.default_rng(len(design.name))
    counts = {key: np.zeros(4) for key in design.metrics}
    for _ in range(replicates):
        sources = [
            parse_body(orjson.dumps({"input": one}, option=orjson.OPT_SERIALIZE_NUMPY), EvaluationRequest)
            .to_domain()
            .source
            for one in design.draw(random)
        ]
        records = [replace(unkept_record(one), id=new_id(), dataset=DatasetRef("test")) for one in sources]
        samples = {
            record.id: one.samples for record, one in zip(records, sources, strict=True) if one.samples is not None
        }
        kept = KeptSamples(samples)
        for key in design.metrics:
            counts[key] += (of_two if len(records) == 2 else of_many)(records, kept, key)
    for key, number in counts.items():
        shares = " | ".join("" if np.isnan(share) else f"{share:.3f}" for share in number / replicates)
        yield f"| {design.name} | {design.size} | {key} | {shares} | {replicates} |"


def of_two(records: Sequence[EvaluationRecord], kept: KeptSamples, key: str) -> tuple[float, ...]:
    """Is p below .05, do the limits exclude 0, does a gate say that one is better, are there no limits?"""
    runs = Runs.align(records)
    new = NewComparison(evaluations=tuple(record.id for record in records), metrics=(key,))
    asked = AskedComparison(new, runs, understood(new, runs), tuple(records))
    (found,) = compare(asked, kept, identifier=records[0].id).metrics[key].differences
    definition, paired = definition_of({"rules": [RULE | {"metric": key}]}), runs.pair(kept)
    verdict = check_gate(definition, rule_estimands(definition, paired), paired).verdict
    if np.isnan(found.low):
        return 0.0, 0.0, float(verdict is Verdict.PASS), 1.0
    p = 1.0 if np.isnan(found.p_value) else found.p_value
    return p < 0.05, found.low > 0 or found.high < 0, verdict is Verdict.PASS, 0.0


def of_many(records: Sequence[EvaluationRecord], kept: KeptSamples, key: str) -> tuple[float, ...]:
    """Is any of the runs said to be worse than the first of a leaderboard? In the place of limits that exclude 0."""
    query = LeaderboardQuery(dataset=DatasetRef("test"), metric=key)
    board = rank_candidates(query, Preference(Better.HIGHER), records, kept)
    apart = [line.separable_from_best for line in board.items]
    return np.nan, float(any(apart)), np.nan, float(apart[-1] is None)


def equal_predictions(
    share: float, size: int, runs: int, random: np.random.Generator, *, known: bool, groups: int = 0
) -> Sequence[Input]:
    """Every run finds 80 % of the class and 90 % of the others; with ``groups`` each has a chance of its own."""
    truth = (random.random(size) < share).astype(int)
    truth[:2] = 0, 1
    right = np.where(truth == 1, 0.8, 0.9)
    names: Input = {"sample_ids": np.arange(size)} if known else {}
    if groups:
        names["group_ids"] = np.arange(size) % groups
        right = random.beta(8.0, 2.0, (runs, groups))[:, names["group_ids"]]
    wrong = random.random((runs, size)) >= right
    return [predictions(truth, np.where(one, 1 - truth, truth), **names) for one in wrong]


def equal_scores(share: float, size: int, random: np.random.Generator) -> Sequence[Input]:
    made, common = drawn_scores(share, 0.0, size, random), random.normal(size=size)
    member = np.array(made["y_true"]) == "member"
    noise = [common + random.normal(size=size) + 2.0 * np.sqrt(2.0) * member for _ in range(2)]
    return [{**made, "scores": one.tolist(), "sample_ids": np.arange(size)} for one in noise]


def equal_rankings(n_queries: int, random: np.random.Generator) -> Sequence[Input]:
    made = drawn_queries(n_queries, random)
    grades = made["relevance"]
    spread = np.repeat(random.gamma(1.0, 1.5, n_queries), 20)
    return [{**made, "scores": grades + spread * random.normal(size=grades.size)} for _ in range(2)]


def equal_slices(
    recalls: Floats, others: Floats, size: int, random: np.random.Generator, *, known: bool
) -> Sequence[Input]:
    """Two runs with these recalls of sites; with ids they are on the same samples, and have the same luck in 80 %."""
    luck, own = random.random((2, recalls.size * size))
    if not known:
        return [drawn_slices(one, size, random) for one in (recalls, others)]
    own = np.where(random.random(luck.size) < 0.8, luck, own)
    made = (drawn_slices(recalls, size, random, luck), drawn_slices(others, size, random, own))
    return [{**one, "sample_ids": np.arange(luck.size)} for one in made]


def equal_groups() -> Iterator[EqualRuns]:
    for groups in (5, 20, 100):
        draw = partial(equal_predictions, 0.5, 600, 2, known=True, groups=groups)
        yield EqualRuns("predictions in groups", f"{groups} groups of 600", ("h_mean", "accuracy"), draw)
    for groups in (6, 10, 20, 60):
        draw = partial(equal_mixes, groups, 2)
        asked = ("balanced_accuracy", "h_mean", "macro_f1")
        yield EqualRuns("predictions in groups of classes of their own", f"{groups} groups", asked, draw)
    for groups, share in OWNED:
        draw, size = partial(equal_owned, groups, share, 2), f"{groups} groups, {share:.0%} members"
        yield EqualRuns("scores in groups of one class", size, ("roc_auc@member", "average_precision@member"), draw)


def equal_runs() -> Iterator[EqualRuns]:
    for size in (6, 20, 50, 200):
        yield EqualRuns("rankings", f"{size} queries", ("ndcg_at_k(k=5)",), partial(equal_rankings, size))
    at_rates = ("specificity_at(recall=0.9)@member", "average_precision@member")
    for share in (0.5, 0.1, 0.02):
        for size in (50, 200, 2000):
            yield EqualRuns(f"scores, class of {share:.0%}", str(size), at_rates, partial(equal_scores, share, size))
    shares = ("accuracy", "balanced_accuracy", "f1@1")
    for share in (0.5, 0.1, 0.02):
        for size in (20, 50, 200, 2000):
            for known in (True, False):
                told = "with ids" if known else "without ids"
                draw = partial(equal_predictions, share, size, 2, known=known)
                yield EqualRuns(f"predictions {told}, class of {share:.0%}", str(size), shares, draw)
    over = tuple(f"{function}(recall@1, by=site)" for function in OVER_SLICES)
    for (name, recalls), known, turned in product(SLICE_RECALLS.items(), (True, False), (False, True)):
        told = f"slices {'with' if known else 'without'} ids, {name}{', the other way round' if turned else ''}"
        for count, size in product((2, 10), (30, 300)):
            own = recalls(count)
            draw = partial(equal_slices, own, own[::-1] if turned else own, size, known=known)
            yield EqualRuns(told, f"{count} of {size}", over, draw)
    yield from equal_groups()
    for size in (50, 200, 2000):
        for known in (True, False):
            told = "with ids" if known else "without ids"
            draw = partial(equal_predictions, 0.5, size, 12, known=known)
            yield EqualRuns(f"leaderboard of 12 runs {told}", str(size), ("accuracy", "h_mean"), draw)


DESIGNS = (of_matrices, of_probabilities, of_scores, of_designs, of_slices, of_units)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", default="", help="designs whose name and size have this in them")
    parser.add_argument("--equal", action="store_true", help="of runs that are equal in truth")
    chosen = parser.parse_args()
    if chosen.equal:
        print("| runs | size | metric | p below .05 | limits exclude 0 | gate passes | no limits | replicates |")
        print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
        for equals in equal_runs():
            if chosen.only in f"{equals.name}, {equals.size}":
                for line in claimed(equals, chosen.replicates):
                    print(line, flush=True)
        return
    found: dict[str, dict[str, Floats]] = {}
    for designs in DESIGNS:
        for design in designs():
            if chosen.only in f"{design.name}, {design.size}":
                found.setdefault(design.name, {}).update(held(design, chosen.replicates))
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
