"""What metrics would be at other class shares, if how each class is predicted stayed as it is (label shift)."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.domain.errors import Fault, InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.samples import Samples
from app.kernel.matrix.prevalence import box_vertices, crossings, sweep_shares
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import Json, listed, plain
from app.services.project.projected_matrix import MatrixRun
from app.services.project.projected_samples import MOST_ENTRIES, SampleRun
from app.services.project.scenarios import Limits, Projectable, Scenario, Sweep, Terms
from app.services.runs.aligned import Runs
from app.services.seeds import chosen_seed

# Shares per named class at which a range is looked at; its corners besides.
_BOX_POINTS = 21
MOST_BOXED = 3
_SUM_TOLERANCE = 1e-6
# Shares that sum to 1 within rounding are taken as they are.
_ROUNDING = 1e-12
# Shares between which two runs are looked at for changing places; fewer where all samples are passed over at each.
_CROSSING_POINTS, _FEWEST_CROSSING_POINTS = 2001, 51


class Projection:
    """One run in one scenario: matrix metrics from its matrix, metrics of probabilities from its samples.

    Where probabilities are re-calibrated decisions change with them, and everything comes from the samples.

    Args:
        record: The run.
        samples: Of it, when a estimand is ``scored`` or probabilities are to be re-calibrated.
        estimands: What is asked for.
        scenario: At which shares.
    """

    def __init__(
        self, record: EvaluationRecord, samples: Samples | None, estimands: Sequence[Estimand], scenario: Scenario
    ) -> None:
        self._record, self._samples, self._scenario = record, samples, scenario
        self._terms = Terms(scenario.level, chosen_seed(scenario.seed, record.counts), scenario.draws)
        self._targets = estimands
        scored = [estimand for estimand in estimands if scenario.recalibrate or estimand.scored]
        self._groups = [group for group in ([t for t in estimands if t not in scored], scored) if group]

    def answer(self) -> Json:
        """Values and intervals of every estimand.

        Raises:
            InvalidInput: the shares make no sense for this run.
            OutOfReach: too many samples for so many points.
        """
        if self._scenario.sweep is not None:
            return self._swept(self._scenario.sweep)
        if self._scenario.ranges is not None:
            return self._boxed(self._scenario.ranges)
        return self._at_once(self._scenario.prevalence or {})

    def crossings(self, other: EvaluationRecord, samples: Samples | None) -> dict[str, list[float]]:
        """Shares of the swept class at which another run changes places with this one, by the name of each value.

        Raises:
            IncomparableLabels: the other run has other classes.
            InvalidInput: a class has samples in one run only.
            OutOfReach: too many samples.
        """
        sweep = self._scenario.sweep
        assert sweep is not None  # noqa: S101 - asked for with a sweep only
        against = Projection(*_aligned(self._record, other, samples), self._targets, self._scenario)
        shares, others = (one._record.counts.sum(axis=1).astype(np.float64) for one in (self, against))
        if ((shares > 0) != (others > 0)).any():
            raise _refused("/against", "no_samples", "expected a run that has samples of the same classes")
        index = self._class_index(sweep.label, "/sweep/class")
        found: dict[str, list[float]] = {}
        for group, mine, theirs in zip(self._groups, self._runs(1), against._runs(1), strict=True):
            points = self._crossing_points(group, against)
            for estimand, place, name in _named(group):

                def gap(
                    grid: Array,
                    estimand: Estimand = estimand,
                    place: int = place,
                    runs: tuple[Projectable, Projectable] = (mine, theirs),
                ) -> Array:
                    swept = sweep_shares(shares, index, grid)
                    first, second = (_score(estimand, run.values([estimand], swept)[0][:, place]) for run in runs)
                    difference: Array = first - second
                    return difference

                still = estimand.insensitive and not self._scenario.recalibrate
                found[name] = [] if still else crossings(gap, low=sweep.start, high=sweep.end, points=points)
        return {name: found[name] for _, _, name in _named(self._targets)}

    def _crossing_points(self, group: Sequence[Estimand], other: "Projection") -> int:
        if not (self._scenario.recalibrate or group[0].scored):
            return _CROSSING_POINTS
        size = max(one._record.n_classes * len(one._samples.truth) for one in (self, other) if one._samples is not None)
        affordable = MOST_ENTRIES // (2 * size * sum(len(estimand.names) for estimand in group))
        return max(_FEWEST_CROSSING_POINTS, min(_CROSSING_POINTS, affordable))

    def _runs(self, points: int) -> list[Projectable]:
        """For each group of estimands what it is computed from."""
        return [self._run(group, points) for group in self._groups]

    def _run(self, group: Sequence[Estimand], points: int) -> Projectable:
        if self._samples is None or not (self._scenario.recalibrate or group[0].scored):
            return MatrixRun(self._record, self._terms, points=points)
        old = None
        if self._scenario.recalibrate:
            old = named_shares(self._record, self._scenario.old_prevalence or {}, "/old_prevalence")
            if (old == 0).any():
                label = self._record.labels[int(np.argmin(old))]
                raise _refused(
                    "/old_prevalence", "no_samples", f"expected the share of {label!r} that probabilities are fitted to"
                )
        return SampleRun(self._record, self._samples, group, self._terms, points=points, recalibrated_from=old)

    def _at_once(self, prevalence: Mapping[str, float]) -> Json:
        shares = named_shares(self._record, prevalence, "/prevalence")
        worth, runs = self._scenario.samples, self._runs(1)
        metrics = {
            name: {**entry, **{end: None if entry[end] is None else entry[end][0] for end in ("value", "low", "high")}}
            for name, entry in self._entries(runs, shares[None], worth).items()
        }
        answer: Json = {"evaluation": str(self._record.id), "prevalence": self._by_label(shares)}
        if worth is not None:
            answer["prevalence_samples"] = worth
        return {**answer, **self._rest(metrics, runs, "given" if worth is None else "uncertain")}

    def _swept(self, sweep: Sweep) -> Json:
        index = self._class_index(sweep.label, "/sweep/class")
        grid = np.linspace(sweep.start, sweep.end, sweep.steps)
        actual = self._record.counts.sum(axis=1).astype(np.float64)
        if np.delete(actual, index).sum() == 0 or (actual[index] == 0 and sweep.end > 0):
            raise _refused("/sweep/class", "no_samples", "expected samples of this class and of another")
        runs = self._runs(len(grid))
        return {
            "evaluation": str(self._record.id),
            "sweep": {"class": sweep.label, "from": sweep.start, "to": sweep.end, "steps": sweep.steps},
            "grid": grid.tolist(),
            **self._rest(self._entries(runs, sweep_shares(actual, index, grid)), runs, "given"),
        }

    def _boxed(self, ranges: Mapping[str, tuple[float, float]]) -> Json:
        """The worst and the best over all shares within the ranges."""
        points = self._box_points(ranges)
        named = (dict(zip(ranges, point, strict=True)) for point in points.tolist())
        shares = np.array([named_shares(self._record, one, "/prevalence_range") for one in named])
        runs = self._runs(2 * sum(len(estimand.names) for estimand in self._targets))
        found: Json = {}
        for group, run in zip(self._groups, runs, strict=True):
            observed = run.observed(group)
            for estimand, values, own in zip(group, run.values(group, shares), observed, strict=True):
                found |= self._extremes(run, estimand, values, own, shares)
        note = (
            f"Searched on {_BOX_POINTS} shares per named class and in all corners of what the ranges allow; the ends "
            "of the intervals are those at the worst and at the best shares."
        )
        rest = self._rest({name: found[name] for _, _, name in _named(self._targets)}, runs, "range")
        return {
            "evaluation": str(self._record.id),
            "prevalence_range": {label: list(ends) for label, ends in ranges.items()},
            **rest,
            "notes": [note, *rest["notes"]],
        }

    def _box_points(self, ranges: Mapping[str, tuple[float, float]]) -> Array:
        """Shares (G, m) of the m named classes: a grid of what the ranges allow, and its corners.

        Raises:
            InvalidInput: no shares within the ranges sum to 1.
        """
        sizes = zip(self._record.labels, self._record.counts.sum(axis=1).tolist(), strict=True)
        # What the named classes leave goes to all others together, if there are others.
        others = any(size > 0 for label, size in sizes if label not in ranges)
        low, high = np.array([*ranges.values(), *([(0.0, 1.0)] if others else [])]).T
        if low.sum() > 1.0 + _ROUNDING:
            raise _refused(
                "/prevalence_range", "shares_above_one", "expected ranges with lower ends that sum to at most 1"
            )
        if high.sum() < 1.0 - _ROUNDING:
            raise _refused(
                "/prevalence_range",
                "shares_do_not_sum_to_one",
                "expected ranges with upper ends that sum to at least 1, as they name all classes with samples",
            )
        axes = [np.linspace(*ends, _BOX_POINTS) for ends in zip(low[:-1], high[:-1], strict=True)]
        grid = np.array([*itertools.product(*axes)])
        last = 1.0 - grid.sum(axis=1)
        inside = (last >= low[-1] - _ROUNDING) & (last <= high[-1] + _ROUNDING)
        points = np.concatenate([box_vertices(low, high), np.column_stack([grid, last])[inside]])
        return points[:, : len(ranges)]

    def _extremes(self, run: Projectable, estimand: Estimand, values: Array, observed: Array, shares: Array) -> Json:
        """Lowest and highest of the values (G, V) of one estimand, each with its shares and its limit."""
        at = [
            [None if np.isnan(column).all() else int(pick(column)) for pick in (np.nanargmin, np.nanargmax)]
            for column in values.T
        ]
        chosen = sorted({index for both in at for index in both if index is not None})
        limits = run.limits([estimand], shares[chosen]) if chosen else None
        found: Json = {}
        for place, (name, both) in enumerate(zip(estimand.names, at, strict=True)):
            entry: Json = {"observed": plain(observed[place])}
            for word, end, index in zip(("lowest", "highest"), ("low", "high"), both, strict=True):
                if index is None:
                    entry[word] = None
                    continue
                ends = None if limits is None else getattr(limits[0], end)[chosen.index(index), place]
                entry[word] = {
                    "value": plain(values[index, place]),
                    end: None if ends is None else plain(ends),
                    "prevalence": self._by_label(shares[index]),
                }
            found[name] = entry
        return found

    def _entries(self, runs: Sequence[Projectable], shares: Array, worth: float | None = None) -> Json:
        """Values and limits (G) of every estimand at shares (G, K)."""
        found: Json = {}
        for group, run in zip(self._groups, runs, strict=True):
            observed, values = run.observed(group), run.values(group, shares)
            limits: Sequence[Limits | None] = run.limits(group, shares, worth) or [None] * len(group)
            for estimand, own, at, ends in zip(group, observed, values, limits, strict=True):
                for place, name in enumerate(estimand.names):
                    found[name] = {
                        "value": listed(at[:, place]),
                        "low": None if ends is None else listed(ends.low[:, place]),
                        "high": None if ends is None else listed(ends.high[:, place]),
                        "observed": plain(own[place]),
                    }
        return {name: found[name] for _, _, name in _named(self._targets)}

    def _rest(self, metrics: Json, runs: Sequence[Projectable], prevalence: str) -> Json:
        notes = ["It is assumed that how each class is predicted does not depend on how frequent it is."]
        still = [estimand.text for estimand in self._targets if estimand.insensitive]
        if still and not self._scenario.recalibrate:
            notes.append(f"Prevalence does not move {', '.join(still)}.")
        for run in runs:
            notes.extend(note for note in run.notes if note not in notes)
        design = dict(runs[0].design)
        if len(runs) > 1:
            # The first is of matrix metrics, the second of metrics of probabilities.
            design["samples"] = {key: runs[1].design[key] for key in ("method", "draws")}
        return {"metrics": metrics, "design": {**design, "prevalence": prevalence}, "notes": notes}

    def _class_index(self, label: str, pointer: str) -> int:
        return _class_index(self._record, label, pointer)

    def _by_label(self, shares: Array) -> dict[str, float]:
        return dict(zip(self._record.labels, shares.tolist(), strict=True))


def _named(estimands: Sequence[Estimand]) -> list[tuple[Estimand, int, str]]:
    """Every value of every estimand: where it stands, and its name."""
    return [(estimand, place, name) for estimand in estimands for place, name in enumerate(estimand.names)]


def _score(estimand: Estimand, values: Array) -> Array:
    return values if estimand.preference is None else estimand.preference.score(values)


def _aligned(
    record: EvaluationRecord, other: EvaluationRecord, samples: Samples | None
) -> tuple[EvaluationRecord, Samples | None]:
    """Another run with its classes in the order of the first."""
    runs = Runs.align([record, other], "/against")
    place = runs.places[1]
    positive = None if other.positive is None else int(place[other.positive])
    moved = replace(other, labels=record.labels, counts=runs.counts[1], positive=positive)
    if samples is None:
        return moved, None
    outputs = samples.outputs
    if outputs is not None and outputs.ndim == 2:
        outputs = outputs[:, np.argsort(place)]
    return moved, replace(
        samples, truth=place[samples.truth], predicted=place[samples.predicted], outputs=outputs, fold_sizes=None
    )


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
    total = float(shares.sum())
    scaled: Array = shares if abs(total - 1.0) < _ROUNDING else shares / total
    return scaled


def _class_index(record: EvaluationRecord, label: str, pointer: str) -> int:
    if label not in record.labels:
        raise _refused(pointer, "unknown_label", f"expected a class of the evaluation, got {label[:60]!r}")
    return record.labels.index(label)


def _refused(pointer: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput([Fault(pointer, code, detail)])
