"""How sure paired comparisons of matrices are with few samples that speak for either run.

Run ``python -m benchmarks.paired``. Two classes, 20, 40 or 200 samples of the rare one, of which 3, 6 or 30 are
expected to be right in one run only. Prints Markdown tables: equal runs, runs that differ class by class but not on the
whole, runs of which one is better, and many classes. ``--replicates 2000`` has a standard error of half a point at 5 %.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.effects import Effects, PairedScore, paired_effects
from app.kernel.compare.paired.joint import JointCounts, combine, draw_matrices
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.draws import evaluate_draws, generator
from app.kernel.uncertainty.intervals import two_sided_z
from benchmarks.coverage import print_table

LEVEL = 0.95
DRAWS = 1000
METRICS = {
    "balanced accuracy": "balanced_accuracy",
    "G": "g_mean",
    "H": "h_mean",
    "MCC": "mcc",
    "kappa": "cohen_kappa",
    "macro F1": "macro_f1",
}
FUNCTIONALS = [catalogue().of_matrices.by_name[key].compute for key in METRICS.values()]
PREVALENCES = (0.02, 0.05, 0.3)
# Samples of the rare class that are expected to be right in one run only, and samples of that class.
DISCORDANT = ((3, 20), (6, 40), (30, 200))
# Samples of the frequent class that are right in one run only.
OTHERS = (0.0, 0.03)
METHODS = ("posterior", "delta", "swaps alone", "score alone", "score and swaps")


@dataclass(frozen=True)
class Design:
    """Two classes: sizes, shares of samples that only one run has right, and how much more often that is the first."""

    sizes: tuple[int, int]
    turned: tuple[float, float]
    gaps: tuple[float, float] = (0.0, 0.0)
    recalls: tuple[float, float] = (0.8, 0.92)

    def chances(self) -> Array:
        """Of each class (2, 4): both right, only the first, only the second, neither."""
        rows = []
        for turned, gap, recall in zip(self.turned, self.gaps, self.recalls, strict=True):
            first, second = (turned + gap) / 2.0, (turned - gap) / 2.0
            rows.append([recall - first, first, second, 1.0 - recall - second])
        return np.array(rows)

    def expected(self) -> JointCounts:
        """What there is on average."""
        return joint_of(self.chances() * np.array(self.sizes)[:, None])

    def runs(self, replicates: int, seed: int) -> Iterator[JointCounts]:
        random = generator(seed)
        for _ in range(replicates):
            yield joint_of(np.array([random.multinomial(*row) for row in zip(self.sizes, self.chances(), strict=True)]))


def joint_of(counts: NDArray[np.generic]) -> JointCounts:
    """Two runs from counts (2, 4) as ``Design.chances``, the rare class first."""
    rows = [
        (actual, actual if first else 1 - actual, actual if second else 1 - actual, count)
        for actual, row in zip((1, 0), counts.tolist(), strict=True)
        for (first, second), count in zip(itertools.product((1, 0), repeat=2), row, strict=True)
        if count
    ]
    truth, first, second, weights = zip(*rows, strict=True)
    return JointCounts(2, np.array(truth), np.array([first, second]), np.array(weights, dtype=np.float64))


def differences(joint: JointCounts) -> Array:
    """Of all metrics (V)."""
    with silently():
        table = Table(joint.matrices())
        return np.array([np.subtract(*functional(table)) for functional in FUNCTIONALS])


def delta_limits(effects: Effects) -> tuple[Array, Array]:
    """Wald limits with the variance of the effects as they are."""
    better, worse, w, n = effects.better, effects.worse, effects.weights, effects.sizes
    variance = (w * w * (better + worse - (better - worse) ** 2 / n)).sum(axis=1)
    reach = two_sided_z(LEVEL) * np.sqrt(variance)
    return effects.difference - reach, effects.difference + reach


def limits_by_method(joint: JointCounts, seed: int) -> dict[str, tuple[Array, Array]]:
    """Limits of the metrics by every way tried; of tests alone only the side of 0 that they say."""
    effects = paired_effects(joint, FUNCTIONALS)
    score = PairedScore(effects)
    drawn = evaluate_draws(draw_matrices(joint, draws=DRAWS, random=generator(seed)), FUNCTIONALS)
    tails = np.quantile([pair[:, 0] - pair[:, 1] for pair in drawn], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    ahead = np.sign(effects.linear)
    by_score = normal_cdf(-score.score)
    return {
        "posterior": (tails[0], tails[1]),
        "delta": delta_limits(effects),
        "swaps alone": _sides(effects.tail, ahead),
        "score alone": _sides(by_score, ahead),
        "score and swaps": score.limits(LEVEL),
    }


def _sides(tail: Array, ahead: Array) -> tuple[Array, Array]:
    """Limits that only say on which side of 0 a test puts the difference."""
    sure = tail < (1 - LEVEL) / 2
    return np.where(sure & (ahead > 0), 1.0, -1.0), np.where(sure & (ahead < 0), -1.0, 1.0)


def two_classes(prevalence: float, discordant: tuple[int, int], others: float, share: float = 0.5) -> Design:
    """The rare class turns as expected, for the first run with this share; the frequent one evenly."""
    turned, size = discordant
    rest = round(size * (1 - prevalence) / prevalence)
    return Design((size, rest), (turned / size, others), ((2 * share - 1) * turned / size, 0.0))


def errors_of_equal_runs(replicates: int) -> tuple[list[list[object]], list[list[object]]]:
    """Of the method that is used by metric, and of all that were tried for balanced accuracy and MCC."""
    by_metric, by_method = [], []
    for prevalence, discordant, others in itertools.product(PREVALENCES, DISCORDANT, OTHERS):
        design = two_classes(prevalence, discordant, others)
        beyond = {method: np.zeros((2, len(METRICS))) for method in METHODS}
        for replicate, joint in enumerate(design.runs(replicates, discordant[0])):
            for method, (low, high) in limits_by_method(joint, replicate).items():
                beyond[method] += np.stack([low > 0, high < 0]) / replicates
        used = beyond["score and swaps"]
        where = [f"{prevalence:.0%}", discordant[0], f"{others:.0%}"]
        by_metric.append([*where, *used.sum(axis=0).tolist(), float(used.mean())])
        chosen = [list(METRICS).index(name) for name in ("balanced accuracy", "MCC")]
        by_method.append([*where, *(float(beyond[method].sum(axis=0)[one]) for one in chosen for method in METHODS)])
    return by_metric, by_method


def errors_of_exchanged_gains(replicates: int) -> list[list[object]]:
    """Runs with one balanced accuracy: the first loses in the rare class what it gains in the frequent one."""
    rows = []
    for prevalence, (turned, size), gap in itertools.product((0.02, 0.3), ((1, 20), *DISCORDANT), (0.025, 0.05)):
        design = Design(
            (size, round(size * (1 - prevalence) / prevalence)),
            (max(turned / size, gap), 0.06),
            (-gap, gap),
            (0.8, 0.9),
        )
        passed = dict.fromkeys(METHODS, 0.0)
        for replicate, joint in enumerate(design.runs(replicates, turned)):
            for method, (low, _) in limits_by_method(joint, replicate).items():
                passed[method] += float(low[0] > 0) / replicates
        rows.append([f"{prevalence:.0%}", turned, gap, *passed.values()])
    return rows


def coverage_of_better_runs(replicates: int) -> list[list[object]]:
    """How often limits lie above, and below, the difference that there is."""
    rows = []
    for prevalence, discordant, share in itertools.product((0.02, 0.3), DISCORDANT, (0.8, 1.0)):
        design = two_classes(prevalence, discordant, 0.03, share)
        truth = differences(design.expected())
        missed = {method: np.zeros((2, len(METRICS))) for method in ("posterior", "delta", "score and swaps")}
        for replicate, joint in enumerate(design.runs(replicates, discordant[0])):
            found = limits_by_method(joint, replicate)
            for method, total in missed.items():
                low, high = found[method]
                total += np.stack([low > truth + 1e-12, high < truth - 1e-12]) / replicates
        chosen = [list(METRICS).index(name) for name in ("balanced accuracy", "H", "MCC")]
        for method, total in missed.items():
            sides = [f"{total[0, one]:.3f} / {total[1, one]:.3f}" for one in chosen]
            rows.append([f"{prevalence:.0%}", discordant[0], f"{share:.0%}", method, *sides])
    return rows


def errors_with_many_classes(replicates: int) -> list[list[object]]:
    """Equal runs on 3 to 30 classes of equal and of unequal sizes."""
    rows = []
    cases = (
        ("100 each", [100] * 3, 0.25), ("15, 60, 300", [15, 60, 300], 0.15), ("10 to 160", [10, 20, 40, 80, 160], 0.1),
        ("25 each", [25] * 10, 0.25), ("25 each", [25] * 10, 0.03), ("15 each", [15] * 30, 0.1),
    )  # fmt: skip
    for name, sizes, hard in cases:
        random, classes = generator(len(sizes)), len(sizes)
        truth = np.repeat(np.arange(classes), sizes)
        rejected, turned = np.zeros(len(METRICS)), 0.0
        for _ in range(replicates):
            wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
            right = random.random((2, truth.size)) < np.where(random.random(truth.size) < hard, 0.5, 0.99)
            turned += float((right[0] ^ right[1]).sum()) / replicates
            found = PairedScore(paired_effects(combine(truth, np.where(right, truth, wrong), classes), FUNCTIONALS))
            rejected += (found.p < 1 - LEVEL) / replicates
        rows.append([classes, name, f"{turned:.0f}", *rejected.tolist()])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    where = ["prevalence", "discordant positives", "discordant negatives"]
    by_metric, by_method = errors_of_equal_runs(replicates)
    print("Equal runs, two-sided at 5 %, and how often a gate passes that asks for better (nominal 2.5 %).\n")
    print_table([*where, *METRICS, "gate passes"], by_metric)
    print("The same by method, for balanced accuracy and then for MCC.\n")
    print_table([*where, *(f"{name}: {method}" for name in ("A", "MCC") for method in METHODS)], by_method)
    print(
        "Runs of equal balanced accuracy that differ by class: how often the first is called better (nominal 2.5 %).\n"
    )
    head = ["prevalence", "discordant positives", "lost and gained", *METHODS]
    print_table(head, errors_of_exchanged_gains(replicates))
    print("A better first run: limits above and below the difference (nominal 2.5 % each).\n")
    head = ["prevalence", "discordant positives", "of these for the first", "limits", "A", "H", "MCC"]
    print_table(head, coverage_of_better_runs(replicates))
    print("Equal runs on many classes, two-sided at 5 %.\n")
    print_table(["K", "samples", "discordant", *METRICS], errors_with_many_classes(replicates))


if __name__ == "__main__":
    main()
