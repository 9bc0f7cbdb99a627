"""Influences of samples on metrics of streamed probabilities, as coefficients of sums that one reading makes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.influence import InfluenceForm, LinearMethod, Over, Skill, Strata, welch
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.streamed.moments import ClassMoments, Moments
from app.kernel.streamed.rows import Table, side_by_side
from app.kernel.uncertainty.influence import Linearisation


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A metric that is made of one value of each sample.

    Attributes:
        of: The class, for a metric of one class.
        parameters: All of them.
    """

    metric: Metric[Scores]
    of: int | None
    parameters: Mapping[str, Any]
    form: InfluenceForm

    @classmethod
    def made(cls, metric: Any, of: int | None, parameters: Mapping[str, Any] | None = None) -> "Leaf | None":
        """None where it is not."""
        card = metric.card
        form = card.inference.influence
        if card.inputs is not Inputs.PROBABILITIES or form is None:
            return None
        if form.row_mean is None and form.skill is None and form.area is None:
            return None
        return cls(metric, of, {**card.defaults, **(parameters or {})}, form)

    @property
    def key(self) -> Hashable:
        """Metrics of one key are made of the same values."""
        of_rows = self.form.row_mean or self.form.skill
        if of_rows is not None:
            return of_rows.values, *sorted(self.parameters.items())
        area = self.form.area
        return area and (area.of, area.of_precision), self.of

    def in_rows(self, scores: Scores) -> Array:
        """The values (n), each the same wherever its row stands; NaN of scores that are no probabilities."""
        of_rows = self.form.row_mean or self.form.skill
        if not scores.are_probabilities or of_rows is None:
            return np.full(scores.n_samples, np.nan)
        with silently():
            return of_rows.values(scores, self.parameters)


# Called with what was read, as scores of each run, and the values (R, V, b) of all leaves.
Look = Callable[[Table, Sequence[Scores], Array], None]
# Influences (b) of the samples of one part on the areas of classes, and on their average precision, made once.
Placed = dict[tuple[bool, int], Array]


class Sampled(Protocol):
    """The scores of one run, as far as sums need them. See `StreamedScores`."""

    n_classes: int

    @property
    def worth(self) -> tuple[int, float] | None:
        """Number and effective number of weighted samples; None without weights."""

    @property
    def n_samples(self) -> int:
        """Number of samples, those that weigh nothing too."""

    def value(self, leaf: Leaf) -> float:
        """A metric that is made of areas."""

    def area_sizes(self, leaf: Leaf) -> tuple[float, float] | None:
        """Effective members and others of one area; None of an average of several."""

    def freedom_of(self, leaf: Leaf) -> float:
        """Degrees of freedom of average precisions, by the smaller of both sides of each class."""

    def values_of(self, leaf: Leaf, part: Table, scores: Scores, placed: Placed) -> Array:
        """Values (b) of some samples; of an area their influence in each unit of weight."""

    def part(self, part: Table) -> Scores:
        """Some samples in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    """Sums over samples of the values that metrics of R runs are made of.

    Attributes:
        runs: The runs.
        leaves: By key; the values of one run stand after those of another.
        moments: Of all values of all runs.
    """

    runs: Sequence[Sampled]
    leaves: Mapping[Hashable, Leaf]
    moments: Moments

    @classmethod
    def of(
        cls,
        parts: Iterable[tuple[Table, Codes]],
        runs: Sequence[Sampled],
        leaves: Iterable[Leaf],
        *,
        n_strata: int,
        n_groups: int = 0,
        together: Sequence[Sequence[Leaf]] = (),
        look: Look | None = None,
        threads: int = 1,
    ) -> "RowSums":
        """Read samples once.

        Args:
            parts: Some samples at a time, with their strata (b).
            runs: R runs on these samples.
            leaves: What they are asked for.
            n_strata: In how many strata samples are, which are their classes.
            n_groups: In how many groups they are.
            together: Metrics whose covariances are asked for too.
            look: Called with what was read and the values (R, V, b), one part after the other.
            threads: That make values of parts beside each other.
        """
        known = {leaf.key: leaf for leaf in leaves}
        places = {key: place for place, key in enumerate(known)}
        columns = [
            np.array(sorted(run * len(known) + places[leaf.key] for leaf in some for run in range(len(runs))), np.intp)
            for some in together
        ]
        classless = [leaf.form.area is not None for leaf in known.values()] * len(runs)
        moments = Moments(n_strata, len(classless), columns, n_groups, classless)
        # Orders are there before parts are looked at beside each other.
        for run in runs:
            for leaf in known.values():
                if leaf.form.area is not None:
                    run.value(leaf)

        def made(read: tuple[Table, Codes]) -> tuple[Table, Codes, list[Scores], Array]:
            some, unsorted = read
            # One stratum after the other.
            order = np.argsort(unsorted.astype(np.int16), kind="stable")
            part, strata = {name: column.take(order) for name, column in some.items()}, unsorted.take(order)
            scores = [run.part(part) for run in runs]
            values = []
            for run, own in zip(runs, scores, strict=True):
                placed: Placed = {}
                values += [run.values_of(leaf, part, own, placed) for leaf in known.values()]
            return part, strata, scores, np.stack(values)

        for part, strata, scores, values in side_by_side(made, parts if known else (), threads):
            if look is not None:
                look(part, scores, values.reshape(len(runs), len(known), -1))
            weights = part.get("w", np.ones(strata.size))
            starts = np.flatnonzero(np.diff(strata, prepend=-1)).tolist()
            for start, end in pairwise([*starts, strata.size]):
                groups = part["g"][start:end].astype(np.intp) if n_groups else None
                moments.add(int(strata[start]), values[:, start:end], weights[start:end], groups)
        return cls(runs, known, moments)

    def places(self, leaves: Iterable[Leaf]) -> list[int] | None:
        """Places of the values of all runs that some metrics are made of; None where one was not summed."""
        keys = {leaf.key for leaf in leaves}
        if not keys <= self.leaves.keys():
            return None
        own = [place for place, key in enumerate(self.leaves) if key in keys]
        return [run * len(self.leaves) + place for run in range(len(self.runs)) for place in own]

    def read(self, leaves: Sequence[Leaf]) -> "Read | None":
        """Sums for some metrics, with products; None where these were not summed."""
        places = self.places(leaves)
        moments = None if places is None else self.moments.read(places)
        return None if places is None or moments is None else Read(self, places, moments)

    def sums(self, leaf: Leaf) -> Array:
        """Weighted sums (K) of what samples say, of the first run."""
        return self.moments.sums([*self.leaves].index(leaf.key))


class Read(NamedTuple):
    """Sums of some values of all runs.

    Attributes:
        places: Of the values among all.
        moments: Of these.
    """

    sums: RowSums
    places: Sequence[int]
    moments: ClassMoments

    def of_run(self, run: int) -> "RunInfluences":
        """Metrics of one run as coefficients."""
        return RunInfluences(self, run)

    def covariance(self, parts: Sequence[Linearisation]) -> Array:
        """Covariance (R, R) of a value of each run."""
        return self.moments.covariance(np.stack([part.influence for part in parts]))

    def alone(self, part: Linearisation, n_samples: int) -> Linearisation:
        """One value as if one sample had all the influence, or with that of groups."""
        moments, sums = self.moments, self.sums.moments
        # Of a skill score the loss is what is left of 1.
        size = ROUNDING * max(abs(part.value), abs(1.0 - part.value))
        noise = size * size * moments.squares.sum() / moments.masses.sum() ** 2
        spread = self.covariance([part])[0]
        spread = np.where(spread <= noise, 0.0, spread)
        influence, about = np.sqrt(spread), None
        if sums.n_groups:
            concerned = (part.influence.reshape(moments.masses.size, -1) != 0.0).any(axis=1)
            influence = sums.in_groups(self.places, part.influence[None])[0]
            about = sums.sizes.reshape(sums.n_groups, -1) @ concerned
            influence, about = (np.where(spread == 0.0, 0.0, one) for one in (influence, about))
        return replace(part, influence=influence, about=about, n_samples=n_samples)


class _Made(NamedTuple):
    """One value of a run, and what samples add to its influence in each unit of weight.

    Attributes:
        slopes: (K) by the deviations within the classes.
        levels: (K) the same for all of a class.
    """

    value: float
    slopes: Array
    levels: Array
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


class RunInfluences:
    """Metrics of one run as coefficients of what sums are known of."""

    def __init__(self, read: Read, run: int) -> None:
        self._read, self._run = read, read.sums.runs[run]
        keys, size = [*read.sums.leaves], len(read.sums.leaves)
        self._places = {keys[one % size]: at for at, one in enumerate(read.places) if one // size == run}
        self.n_classes = self._run.n_classes

    @property
    def n_units(self) -> int:
        """Number of coefficients."""
        return self._read.moments.masses.size * (len(self._read.places) + 1)

    def of(
        self, metric: Any, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric whose values were summed."""
        leaf, moments = Leaf.made(metric, class_index, parameters), self._read.moments
        if leaf is None or leaf.key not in self._places:
            return None
        at = self._places[leaf.key]
        made = self._of_area(leaf, at) if leaf.form.area is not None else _made(leaf, moments, at)
        coefficients = np.zeros((moments.masses.size, len(self._read.places) + 1))
        coefficients[:, at], coefficients[:, -1] = made.slopes, made.levels
        if not np.isfinite(made.value):
            coefficients[:] = np.nan
        card, one_area = leaf.metric.card, made.sizes is not None
        return Linearisation(
            made.value,
            coefficients.ravel(),
            card.inference.scale,
            Strata.BY_CLASS if one_area or _by_class(leaf) else Strata.WHOLE,
            LinearMethod.DELONG_LOGIT if one_area else leaf.form.method,
            card.range,
            made.freedom,
            made.sizes,
            self._run.worth,
        )

    def _of_area(self, leaf: Leaf, at: int) -> _Made:
        means, size = np.nan_to_num(self._read.moments.means[:, at]), self._read.moments.masses.size
        slope = 1.0 if leaf.form.area is None else leaf.form.area.slope
        made = _Made(self._run.value(leaf), np.full(size, slope), slope * means, sizes=self._run.area_sizes(leaf))
        of_precision = leaf.form.area is not None and leaf.form.area.of_precision
        return made._replace(freedom=self._run.freedom_of(leaf)) if of_precision else made


def _by_class(leaf: Leaf) -> bool:
    return leaf.form.row_mean is not None and leaf.form.row_mean.over is not Over.SAMPLES


def _made(leaf: Leaf, moments: ClassMoments, at: int) -> _Made:
    if leaf.form.skill is not None:
        return _of_skill(leaf.form.skill, moments, at)
    over = Over.SAMPLES if leaf.form.row_mean is None else leaf.form.row_mean.over
    made = _MEANS[over](leaf, moments, at)
    return made._replace(freedom=np.inf) if leaf.form.is_share else made


def _of_skill(skill: Skill, moments: ClassMoments, at: int) -> _Made:
    each, mean = _scale(moments), float(moments.overall[at])
    shares = moments.masses / moments.masses.sum()
    with silently():
        reference, moves = skill.reference(shares)
    if not reference > 0.0:
        return _Made(np.nan, np.zeros(shares.size), np.zeros(shares.size))
    moves = np.where(shares > 0.0, moves, 0.0)
    moved = mean / reference**2 * (moves - float(shares @ moves))
    slopes, levels = np.full(shares.size, -each / reference), -moments.away[:, at] / reference + moved
    return _Made(1.0 - mean / reference, slopes, each * levels, _freedom(moments))


def _of_samples(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    each = _scale(moments)
    slopes = np.full(moments.counts.size, each)
    return _Made(float(moments.overall[at]), slopes, each * moments.away[:, at], _freedom(moments))


def _of_class_means(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    n_classes = moments.counts.size
    squares, means = moments.products[:, at, at], moments.means[:, at]
    # Of a class without variance all of it is rounding.
    varies = squares > moments.squares * (ROUNDING * means) ** 2
    slopes = np.array([_scale(moments, inside) / n_classes for inside in np.eye(n_classes, dtype=np.bool_)])
    slopes = np.where(varies, slopes, 0.0)
    parts = np.where(varies, slopes**2 * squares, 0.0)
    freedom = welch(parts, _effective(moments.masses, moments.squares))
    return _Made(float(means.mean()), slopes, np.zeros(n_classes), freedom)


def _of_members(leaf: Leaf, moments: ClassMoments, at: int) -> _Made:
    code, n_classes = leaf.of or 0, moments.counts.size
    inside, slopes = np.arange(n_classes) == code, np.zeros(n_classes)
    slopes[code] = _scale(moments, inside)
    return _Made(float(moments.means[code, at]), slopes, np.zeros(n_classes), _freedom(moments, inside))


_MEANS: Mapping[Over, Callable[[Leaf, ClassMoments, int], _Made]] = {
    Over.SAMPLES: _of_samples,
    Over.CLASS_MEANS: _of_class_means,
    Over.MEMBERS: _of_members,
}
_ALL = slice(None)


def _scale(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """Return the factor from deviations times weights to influences on the mean over all classes, or over some."""
    size, mass = float(moments.counts[inside].sum()), float(moments.masses[inside].sum())
    return float(np.sqrt(size / max(size - 1.0, 1.0))) / mass if mass else 0.0


def _freedom(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """Degrees of freedom of the variance of that mean."""
    worth = _effective(moments.masses[inside].sum(), moments.squares[inside].sum())
    return max(float(worth) - 1.0, 1.0)


def _effective(masses: Array, squares: Array) -> Array:
    """Kish's effective numbers of samples (...) from sums of weights and of their squares; 0 where there are none."""
    found: Array = np.divide(masses * masses, squares, out=np.zeros_like(masses), where=squares > 0)
    return found
