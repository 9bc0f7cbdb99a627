"""Influences of samples on metrics of streamed probabilities, as coefficients of sums that one reading makes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import Influence, InfluenceForm, Made, rounding_of
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores, key_of_rows
from app.kernel.streamed.moments import ClassMoments, Moments
from app.kernel.streamed.rows import NotStreamed, Table, side_by_side
from app.kernel.uncertainty.influence import ROUNDING_OF_SUMS, Influences, Linearisation

if TYPE_CHECKING:
    from app.kernel.streamed.scores import StreamedScores


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A metric that is made of one value of each sample, of a class if it is one of classes, with all its
    parameters.
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
        if form.of_rows is None and form.area is None:
            return None
        return cls(metric, of, {**card.defaults, **(parameters or {})}, form)

    @property
    def key(self) -> Hashable:
        """Metrics of one key are made of the same values."""
        if self.form.of_rows is not None:
            return key_of_rows(self.form.of_rows.values, self.parameters)
        area = self.form.area
        return area and (area.of, area.of_precision), self.of

    def in_rows(self, scores: Scores) -> Array:
        """The values (n), each the same wherever its row stands; NaN of scores that are no probabilities."""
        of_rows = self.form.of_rows
        if not scores.are_probabilities or of_rows is None:
            return np.full(scores.n_samples, np.nan)
        with silently():
            return of_rows.values(scores, self.parameters)


# Called with what was read, the same in memory by run, and the values (R, V, b) of all leaves of R runs.
Look = Callable[[Table, Sequence[Scores], Array], None]


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    """Sums over samples of the values that metrics of R runs are made of; the values of one run stand after those of
    another.
    """

    runs: Sequence["StreamedScores"]
    leaves: Mapping[Hashable, Leaf]
    moments: Moments

    @classmethod
    def of(
        cls,
        runs: Sequence["StreamedScores"],
        leaves: Iterable[Leaf],
        together: Sequence[Sequence[Leaf]] = (),
        look: Look | None = None,
    ) -> "RowSums":
        """Read the samples of runs once, for what they are asked.

        ``together`` are metrics whose covariances are asked for too. ``look`` is called with one part after the other.
        """
        (whole, *_), known = runs, {leaf.key: leaf for leaf in leaves}
        places = {key: place for place, key in enumerate(known)}
        columns = [
            np.array(sorted(run * len(known) + places[leaf.key] for leaf in some for run in range(len(runs))), np.intp)
            for some in together
        ]
        classless = [leaf.form.area is not None for leaf in known.values()] * len(runs)
        moments = Moments(whole.n_strata, len(classless), columns, whole.n_groups, classless)
        # Orders are there before parts are looked at beside each other.
        for run in runs:
            for leaf in known.values():
                if leaf.form.area is not None:
                    run.value(leaf)

        def made(some: Table) -> tuple[Table, Codes, Sequence[Scores], Array]:
            unsorted = whole.strata(some)
            # One stratum after the other.
            order = np.argsort(unsorted.astype(np.int16), kind="stable")
            part = {name: column.take(order) for name, column in some.items()}
            scores, leaves = [run.part(part) for run in runs], [*known.values()]
            values = [row for run, own in zip(runs, scores, strict=True) for row in run.values_of(leaves, own)]
            return part, unsorted.take(order), scores, np.stack(values)

        names = dict.fromkeys(name for run in runs for name in run.read_columns)
        parts = whole.in_parts([*names]) if known else ()
        for part, strata, scores, values in side_by_side(made, parts, whole.threads):
            if look is not None:
                look(part, scores, values.reshape(len(runs), len(known), -1))
            weights = part.get("w", np.ones(strata.size))
            starts = np.flatnonzero(np.diff(strata, prepend=-1)).tolist()
            for start, end in pairwise([*starts, strata.size]):
                groups = part["g"][start:end].astype(np.intp) if whole.grouped else None
                moments.add(int(strata[start]), values[:, start:end], weights[start:end], groups)
        return cls(runs, known, moments)

    def read(self, leaves: Sequence[Leaf]) -> "Read | None":
        """Sums for some metrics, with products; None where these were not summed."""
        keys = {leaf.key for leaf in leaves}
        own = [place for place, key in enumerate(self.leaves) if key in keys]
        places = [run * len(self.leaves) + place for run in range(len(self.runs)) for place in own]
        moments = self.moments.read(places) if len(own) == len(keys) else None
        return None if moments is None else Read(self, places, moments)

    def sums(self, key: Hashable) -> Array:
        """Weighted sums (K) of what samples say, of the first run; raises NotStreamed where these were not made."""
        if key not in self.leaves:
            raise NotStreamed("sums of all samples were made of other values")
        return self.moments.sums([*self.leaves].index(key), self.runs[0].actual)


class Read(NamedTuple):
    """Sums of some values of all runs, and their places among all."""

    sums: RowSums
    places: Sequence[int]
    moments: ClassMoments

    def covariance(self, parts: Sequence[Linearisation]) -> Array:
        """Covariance (R, R) of a value of each run."""
        return self.moments.covariance(np.stack([part.influence for part in parts]))

    def alone(self, part: Linearisation, n_samples: int) -> Linearisation:
        """One value as if one sample had all the influence, or with that of groups."""
        moments, sums = self.moments, self.sums.moments
        spread = self.covariance([part])[0]
        spread = np.where(spread <= rounding_of(part.value, moments.whole), 0.0, spread)
        influence, about, skewness = np.sqrt(spread), None, None
        coefficients = part.influence.reshape(len(moments.sides), -1)
        if not sums.n_groups:
            cubes = sums.cubes(self.places[0], coefficients)
            skewness = cubes / float(spread[0]) ** 1.5 if spread[0] > 0.0 else 0.0
        else:
            concerned = (coefficients != 0.0).any(axis=1)
            influence = sums.in_groups(self.places, part.influence[None])[0]
            # Of groups that are all alike the sums are 0 but for rounding, as `by_groups` has it.
            lost = ROUNDING_OF_SUMS * np.sqrt(sums.counts.sum() * spread)
            influence, about = np.where(np.abs(influence) <= lost, 0.0, influence), sums.held(part.classes, concerned)
            influence, about = (np.where(spread == 0.0, 0.0, one) for one in (influence, about))
        return replace(part, influence=influence, about=about, n_samples=n_samples, skewness=skewness)


class RunInfluences(Influences):
    """Metrics of one run as coefficients of what sums are known of."""

    scores: "StreamedScores"

    def __init__(self, read: Read, run: int) -> None:
        super().__init__(read.sums.runs[run])
        self._read = read
        keys, size = [*read.sums.leaves], len(read.sums.leaves)
        self._places = {keys[one % size]: at for at, one in enumerate(read.places) if one // size == run}

    @property
    def n_units(self) -> int:
        """Number of coefficients."""
        return len(self._read.moments.sides) * (len(self._read.places) + 1)

    def of(
        self, metric: Any, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric whose values were summed."""
        leaf, moments = Leaf.made(metric, class_index, parameters), self._read.moments
        if leaf is None or leaf.key not in self._places:
            return None
        at = self._places[leaf.key]
        if leaf.form.area is not None:
            known, slope = self.scores.made(leaf), leaf.form.area.slope
            slopes = np.full(len(moments.sides), slope)
            made = Made(self.scores.value(leaf), slopes, slope * np.nan_to_num(moments.means[:, at]), known.freedom)
        elif leaf.form.of_rows is not None:
            known = Influence(np.zeros(0), leaf.form.method, leaf.form.of_rows.strata)
            made = leaf.form.of_rows.linear(moments.of(at), leaf.of)
        coefficients = np.zeros((len(moments.sides), len(self._read.places) + 1))
        coefficients[:, at], coefficients[:, -1] = made.slopes, made.levels
        if not np.isfinite(made.value):
            coefficients[:] = np.nan
        card, worth = leaf.metric.card, self.scores.worth
        found = made.value, coefficients.ravel(), card.inference.scale, known.strata, known.method, card.range
        classes: tuple[NDArray[Any], ...] = ()
        if leaf.form.is_of_classes(known) and len(moments.sides) > 1:
            codes = np.arange(len(moments.sides))
            classes = (codes if leaf.of is None else codes == leaf.of,)
        return Linearisation(*found, made.freedom, known.sizes, worth, classes=classes)
