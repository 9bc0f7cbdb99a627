"""What metrics would be at other class shares, if how each class is predicted stayed as it is (label shift)."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.domain.errors import Fault, InvalidInput
from app.domain.evaluation import Content, EvaluationRecord
from app.kernel.numerics import Array, silently
from app.kernel.prevalence import crossings, draw_shares, project, sweep_shares
from app.kernel.table import Table
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.posterior import draw_matrices
from app.services.cautions import caution_findings
from app.services.full_intervals import chosen_seed
from app.services.numbers import Json, listed, plain
from app.services.simulation import DRAWS, affordable_draws, values_at
from app.services.targets import Target

# Points of a box per named class, its corners among them.
_BOX_POINTS = 21
MOST_BOXED = 3
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One class from a rare to a frequent one, the others keeping their proportions."""

    label: str
    start: float
    end: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """At which class shares; exactly one of prevalence, sweep and ranges.

    Attributes:
        prevalence: Shares by label; classes not named share the rest in the proportions that they have.
        samples: How many samples the shares are worth: their uncertainty. None takes them as exact.
        ranges: Lowest and highest share by label.
    """

    prevalence: Mapping[str, float] | None = None
    samples: float | None = None
    sweep: Sweep | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    level: float = 0.95
    seed: int | None = None
    draws: int = DRAWS


@dataclass(frozen=True, slots=True, eq=False)
class _Simulated:
    """Matrices (D, K, K) that the data leave possible, or none where nothing is known of the uncertainty."""

    matrices: Array | None
    level: float
    design: Json = field(default_factory=dict)


def project_run(record: EvaluationRecord, targets: Sequence[Target], scenario: Scenario) -> Json:
    """Values and intervals of every target in a scenario.

    Raises:
        InvalidInput: the shares make no sense for this run.
    """
    counts = record.counts.astype(np.float64)
    seed = chosen_seed(scenario.seed, record.counts)
    if scenario.sweep is not None:
        return _swept(record, counts, targets, scenario, seed)
    if scenario.ranges is not None:
        return _boxed(record, counts, targets, scenario, seed)
    return _projected(record, counts, targets, scenario, seed)


def _projected(
    record: EvaluationRecord, counts: Array, targets: Sequence[Target], scenario: Scenario, seed: int
) -> Json:
    shares = named_shares(record, scenario.prevalence or {}, "/prevalence")
    simulated = _simulate(record, counts, scenario, seed, points=1)
    spread: Array = shares
    if scenario.samples is not None and simulated.matrices is not None:
        random = generator(seed_of(seed, "shares"))
        present = np.flatnonzero(shares)
        spread = np.zeros((len(simulated.matrices), shares.size))
        spread[:, present] = draw_shares(shares[present] * scenario.samples, len(spread), random)
    metrics = _values(counts, targets, shares[None], [spread], simulated)
    single = {
        name: {**entry, **{end: None if entry[end] is None else entry[end][0] for end in ("value", "low", "high")}}
        for name, entry in metrics.items()
    }
    design = {**simulated.design, "prevalence": "given" if scenario.samples is None else "uncertain"}
    answer: Json = {"evaluation": str(record.id), "prevalence": _by_label(record, shares)}
    if scenario.samples is not None:
        answer["prevalence_samples"] = scenario.samples
    return {**answer, "metrics": single, "design": design, "notes": _notes(record, targets)}


def _swept(record: EvaluationRecord, counts: Array, targets: Sequence[Target], scenario: Scenario, seed: int) -> Json:
    sweep = scenario.sweep
    assert sweep is not None  # noqa: S101 - asked for
    index = _class_index(record, sweep.label, "/sweep/class")
    grid = np.linspace(sweep.start, sweep.end, sweep.steps)
    actual = counts.sum(axis=1)
    if np.delete(actual, index).sum() == 0 or (actual[index] == 0 and sweep.end > 0):
        raise _refused("/sweep/class", "no_samples", "expected samples of this class and of another")
    shares = sweep_shares(actual, index, grid)
    simulated = _simulate(record, counts, scenario, seed, points=len(grid))
    return {
        "evaluation": str(record.id),
        "sweep": {"class": sweep.label, "from": sweep.start, "to": sweep.end, "steps": sweep.steps},
        "grid": grid.tolist(),
        "metrics": _values(counts, targets, shares, list(shares), simulated),
        "design": {**simulated.design, "prevalence": "given"},
        "notes": _notes(record, targets),
    }


def _boxed(record: EvaluationRecord, counts: Array, targets: Sequence[Target], scenario: Scenario, seed: int) -> Json:
    """The worst and the best over all shares within the ranges."""
    ranges = scenario.ranges or {}
    axes = [np.linspace(low, high, _BOX_POINTS) for low, high in ranges.values()]
    points = [point for point in itertools.product(*axes) if sum(point) <= 1.0 + 1e-12]
    if not points:
        raise _refused("/prevalence_range", "shares_above_one", "expected ranges with lower ends that sum to at most 1")
    shares = np.array(
        [named_shares(record, dict(zip(ranges, point, strict=True)), "/prevalence_range") for point in points]
    )
    simulated = _simulate(record, counts, scenario, seed, points=2 * len(targets) * 4)
    projected = np.stack([project(counts, one) for one in shares])
    answer: Json = {}
    for target in targets:
        table = Table(np.broadcast_to(counts, projected.shape) if target.insensitive else projected)
        with silently():
            values = target.values(np.asarray(target.functional(table)))
        observed = values_at(counts, [target])[0]
        for place, name in enumerate(target.names):
            entry: Json = {"observed": plain(observed[place])}
            for word, pick, end in (("lowest", np.nanargmin, "low"), ("highest", np.nanargmax, "high")):
                column = values[:, place]
                if np.isnan(column).all():
                    entry[word] = None
                    continue
                at = int(pick(column))
                found = _values(counts, [target], shares[[at]], [shares[at]], simulated)[name]
                entry[word] = {
                    "value": plain(column[at]),
                    end: None if found[end] is None else found[end][0],
                    "prevalence": _by_label(record, shares[at]),
                }
            answer[name] = entry
    return {
        "evaluation": str(record.id),
        "prevalence_range": {label: list(ends) for label, ends in ranges.items()},
        "metrics": answer,
        "design": {**simulated.design, "prevalence": "range"},
        "notes": [
            f"Searched on {_BOX_POINTS} shares per named class, the ends among them; the ends of the intervals are "
            "those at the worst and at the best shares.",
            *_notes(record, targets),
        ],
    }


def _simulate(record: EvaluationRecord, counts: Array, scenario: Scenario, seed: int, *, points: int) -> _Simulated:
    if record.content is not Content.counts:
        return _Simulated(None, scenario.level, {"level": scenario.level, "draws": 0})
    draws = affordable_draws(counts.size * points, scenario.draws)
    design: Json = {
        "level": scenario.level,
        "class_counts": "fixed",
        "prior": "edge",
        "seed": seed,
        "draws": draws,
    }
    if not draws:
        return _Simulated(None, scenario.level, design)
    matrices = np.concatenate(list(draw_matrices(counts, draws=draws, random=generator(seed))))
    return _Simulated(matrices, scenario.level, design)


def _values(
    counts: Array, targets: Sequence[Target], shares: Array, spread: Sequence[Array], simulated: _Simulated
) -> Json:
    """Values and limits (G) of every target at each of the shares (G, K); draws may have shares of their own."""
    observed = values_at(counts, targets)
    found = [values_at(counts, targets, one) for one in shares]
    limits = [] if simulated.matrices is None else _limits(simulated, targets, found, spread)
    answer: Json = {}
    for index, target in enumerate(targets):
        for place, name in enumerate(target.names):
            entry: Json = {"value": listed(np.array([values[index][place] for values in found]))}
            for word, end in (("low", 0), ("high", 1)):
                entry[word] = [plain(ends[index][end][place]) for ends in limits] if limits else None
            answer[name] = {**entry, "observed": plain(observed[index][place])}
    return answer


def _limits(
    simulated: _Simulated, targets: Sequence[Target], found: Sequence[Sequence[Array]], spread: Sequence[Array]
) -> list[list[tuple[Array, Array]]]:
    """Limits (V) of every target at each point."""
    assert simulated.matrices is not None  # noqa: S101 - asked for only then
    limits = []
    plain_table = Table(simulated.matrices)
    for values, shares in zip(found, spread, strict=True):
        table = Table(project(simulated.matrices, shares))
        at_point = []
        with silently():
            for target, estimate in zip(targets, values, strict=True):
                drawn = target.values(np.asarray(target.functional(plain_table if target.insensitive else table)))
                summary = summarise(drawn, estimate, simulated.level)
                at_point.append((summary.low, summary.high))
        limits.append(at_point)
    return limits


def named_shares(record: EvaluationRecord, named: Mapping[str, float], pointer: str) -> Array:
    """Shares (K) of all classes; those not named share the rest in the proportions that they have.

    Raises:
        InvalidInput: an unknown class, shares that do not sum to 1, or one given to a class without samples.
    """
    actual = record.counts.sum(axis=1).astype(np.float64)
    shares = np.full(actual.size, np.nan)
    for label, share in named.items():
        shares[_class_index(record, label, f"{pointer}/{label}")] = share
    missing = np.isnan(shares)
    given = float(shares[~missing].sum())
    rest = 1.0 - given
    if rest < -_SUM_TOLERANCE or (not missing.any() and abs(rest) > _SUM_TOLERANCE):
        raise _refused(pointer, "shares_do_not_sum_to_one", f"expected shares that sum to 1, got {given:.6g}")
    if missing.any():
        kept = np.where(missing, actual, 0.0)
        if rest > _SUM_TOLERANCE and kept.sum() == 0:
            raise _refused(pointer, "no_samples", "expected shares that sum to 1: no class without one has samples")
        scale = max(rest, 0.0) / kept.sum() if kept.sum() else 0.0
        shares = np.where(missing, kept * scale, shares)
    for index in np.flatnonzero((shares > 0) & (actual == 0)):
        label = record.labels[int(index)]
        raise _refused(
            f"{pointer}/{label}", "no_samples", f"expected no share of {label!r}: how it is predicted is unknown"
        )
    scaled: Array = shares / shares.sum()
    return scaled


def _class_index(record: EvaluationRecord, label: str, pointer: str) -> int:
    if label not in record.labels:
        raise _refused(pointer, "unknown_label", f"expected a class of the evaluation, got {label[:60]!r}")
    return record.labels.index(label)


def _refused(pointer: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput([Fault(pointer, code, detail)])


def _by_label(record: EvaluationRecord, shares: Array) -> dict[str, float]:
    return dict(zip(record.labels, shares.tolist(), strict=True))


def _notes(record: EvaluationRecord, targets: Sequence[Target]) -> list[str]:
    notes = ["It is assumed that how each class is predicted does not depend on how frequent it is."]
    still = [target.text for target in targets if target.insensitive]
    if still:
        notes.append(f"Prevalence does not move {', '.join(still)}.")
    if record.content is not Content.counts:
        notes.append(f"No intervals: they need numbers of samples, and the matrix holds {record.content}.")
        return notes
    return notes + [finding.message for finding in caution_findings(record.counts, record.labels)]


def crossing_shares(
    counts: Array, targets: Sequence[Target], shares: Array, index: int, sweep: Sweep
) -> dict[str, list[float]]:
    """Shares of the swept class at which two runs (2, K, K) change places, by the name of each value."""
    found = {}
    for target in targets:
        for place, name in enumerate(target.names):

            def one(table: Table, target: Target = target, place: int = place) -> Array:
                score = target.values(np.asarray(target.functional(table)))[..., place]
                return score if target.preference is None else target.preference.score(score)

            found[name] = (
                []
                if target.insensitive
                else crossings(
                    counts[0], counts[1], one, shares=shares, class_index=index, low=sweep.start, high=sweep.end
                )
            )
    return found
