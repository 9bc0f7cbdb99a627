"""Probabilities and scores of streamed samples, in the form that metrics take."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import permutations
from typing import Any

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families import score_ranking
from app.kernel.numerics.arrays import Array, Mask, kept, lazy, silently
from app.kernel.samples.influence import Influence, WeightedSamples
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Outcomes, Scores, Side, Values, key_of_rows
from app.kernel.streamed.along import (
    Along,
    Cuts,
    Reduced,
    between,
    cuts_of,
    pieces,
    placements,
    precision_placements,
)
from app.kernel.streamed.bins import LIMITS, TopSums, bins_of
from app.kernel.streamed.influences import Leaf, Read, RowSums
from app.kernel.streamed.logistic import Fit, fitted
from app.kernel.streamed.rankings import KnownRanking, StreamedRanking
from app.kernel.streamed.rows import NotStreamed, Rows, Table, side_by_side
from app.kernel.streamed.spool import Spool
from app.kernel.streamed.together import AllClasses, joined

# Of more classes the probabilities of all classes are not put into one order.
MOST_CLASSES = 32
# Of more samples the engine holds one order at a time.
_BESIDE = 1 << 24
# Weights that are not in memory: whoever asks whether there are some is told that there are.
_AWAY = np.zeros(0)


class StreamedScores(Scores):
    """Probabilities or scores of samples that an engine holds: metrics that need no sample twice take it as they take
    ``Scores``, and the others raise ``NotStreamed``.

    Args:
        rows: One for each sample of weight above 0: the class ``y``, and ``p0``, ``p1``, ... of all classes; mirrored
            scores have one ``s``, higher for class 1. A weight ``w`` and a code ``g`` of a group, where there are
            some.
        n_classes: K.
        probabilities: Are they, or else any real scores?
        weighted: Is there a ``w``?
        n_groups: How many groups there are; 0 where samples are independent.
        mirrored: Does the score of one of two classes say that of the other, probabilities adding up to 1 and scores to
            0, in every row?
        n_samples: How many samples there are with those that weigh nothing; None: as many as rows.
        outputs: What the names of the columns of all classes begin with.
    """

    def __init__(
        self,
        rows: Rows,
        n_classes: int,
        *,
        probabilities: bool,
        weighted: bool = False,
        n_groups: int = 0,
        mirrored: bool = False,
        n_samples: int | None = None,
        outputs: str = "p",
    ) -> None:
        self.n_classes, self.n_groups, self.are_probabilities = n_classes, n_groups, probabilities
        self.grouped, self.threads = n_groups > 0, rows.threads
        self.weights = _AWAY if weighted else None
        self._weighted, self._weight, self._outputs = weighted, "w" if weighted else "1", outputs
        # One score stands for both classes.
        self._rows = rows.having(s="p1") if mirrored and probabilities else rows
        self.mirrored = mirrored
        # Can scores of all classes be put in one order?
        self.in_one_order = probabilities and n_classes <= MOST_CLASSES
        # Samples are in one class each.
        self.n_strata = n_classes
        self.sides = self._counted()
        self.whole = Side.summed(self.sides[0])
        self.n_samples = self.whole.used if n_samples is None else n_samples
        self._written: dict[int, Spool] = {}
        self._fits: dict[tuple[int, float, bool], Fit] = {}
        self._pairs: dict[tuple[int, int], Along] = {}
        actual, rest, used = zip(*((own.weight, others.weight, own.used) for own, others in self.sides), strict=True)
        known = {"actual": actual, "rest": rest, "used": used}
        self.__dict__ |= {name: np.asarray(one) for name, one in known.items()}

    # Numbers of samples.

    def _counted(self) -> Sequence[tuple[Side, Side]]:
        """The members of each class, and all others."""
        found = self._rows.having(v=self._weight).sums("y", n="1", w="v", x="v * v")
        sides = [Side(0.0, 0.0, 0)] * self.n_classes
        for code, size, own, squares in zip(found["y"], found["n"], found["w"], found["x"], strict=True):
            sides[int(code)] = Side(float(own), float(squares), int(size))
        return [(own, Side.summed([*sides[:code], *sides[code + 1 :]])) for code, own in enumerate(sides)]

    def both_sides(self, code: int) -> tuple[Side, Side]:
        """The members of a class, and all others."""
        return self.sides[code]

    @property
    def worth(self) -> tuple[int, float] | None:
        """Number of weighted samples that count, and their effective number; None without weights."""
        return (self.whole.used, self.whole.effective) if self._weighted else None

    @property
    def parts(self) -> Iterator[Scores]:
        """Samples with a weight above 0, some at a time."""
        return map(self.part, self.in_parts(self.read_columns))

    # Orders.

    @kept
    def ranking(self, code: int | None) -> StreamedRanking:
        """The samples by falling score of a class; they are put in order once. Without a class all scores in one order,
        of which those of actual classes are members.
        """
        if code is None:
            return StreamedRanking(self.joint, None)
        curve = Along(*self.both_sides(code), self.n_classes, LIMITS if self.are_probabilities else LIMITS[:0])
        for cuts in cuts_of(self._in_order(code)):
            curve.add(cuts)
        return StreamedRanking(curve, bins_of(curve.reduction.cells) if self.are_probabilities else None)

    def _in_order(self, code: int) -> Iterator[Table]:
        """Samples by falling score ``s`` of a class, its members ``m``, and weights ``w`` where there are some."""
        if self.mirrored and not code:
            return map(self._turned, self._order(1).batches(back=True))
        if self.mirrored or self.in_one_order:
            return self._order(code).batches()
        return self._of_class(code).ordered("s DESC", columns=self._columns)

    def _order(self, code: int) -> Spool:
        """The order by a class in a file: it is read again for the order of all classes, or from both ends where one of
        two classes mirrors the other.
        """
        if code not in self._written:
            columns = [*self._columns, *(["g"] if self.mirrored and self.grouped else [])]
            self._written[code] = self._of_class(code).sorted("s DESC", columns=columns)
        return self._written[code]

    def _of_class(self, code: int) -> Rows:
        """The rows with the score ``s`` of a class and whether they are members ``m``."""
        return self._rows.having(s=self._score(code), m=self._member(code))

    @property
    def _columns(self) -> Sequence[str]:
        return ["s", "m", *(["w"] if self._weighted else [])]

    def _turned(self, batch: Table) -> Table:
        """Scores and members of class 0, of those of class 1."""
        return {**batch, "s": self._of_other(batch["s"]), "m": ~batch["m"]}

    def _of_other(self, scores: Array) -> Array:
        """Scores of class 0, of those of class 1."""
        return 1.0 - scores if self.are_probabilities else -scores

    def _member(self, code: int) -> str:
        """SQL of the members of a class."""
        return f"y = {code}"

    def _score(self, code: int) -> str:
        """SQL of the score of a class."""
        if self.mirrored:
            return "s" if code else "1.0 - s" if self.are_probabilities else "-s"
        return f"{self._outputs}{code}"

    @cached_property
    def rankings(self) -> list[Ranking]:
        """Rankings by the probability of each class."""
        if self.mirrored:
            # Two threads that ask for an order that is not there would each make one.
            self._order(1)
        threads = self.threads if self.mirrored or self.n_samples <= _BESIDE else 1
        return [*side_by_side(self.ranking, range(self.n_classes), threads)]

    @cached_property
    def _top(self) -> TopSums:
        """The samples by their highest probability; members are those that are right."""
        if not self.are_probabilities:
            raise NotStreamed("scores that are no probabilities have no bins")
        found = TopSums(self.whole.weight)
        for cuts in self._cuts_of_top():
            found.add(cuts)
        return found

    @cached_property
    def top_label(self) -> Ranking:
        """The bins of the highest probability."""
        return KnownRanking({}, bins_of(self._top.reduction.cells), self._top.parts)

    def cells(self, code: int | None) -> Reduced:
        """Samples between cuts of the order of a class, or of their highest probabilities, where members are right."""
        return self._top.reduction.cells if code is None else self.ranking(code).curve.reduction.cells

    def _cuts_of_top(self) -> Iterator[Cuts]:
        if self.mirrored:
            orders = [_predicted(self._in_order(code), code) for code in (0, 1)]
            return joined(orders, weighted=self._weighted, threads=1)
        names = ", ".join(self.names)
        # The first of equals is predicted.
        made = self._rows.having(s=f"greatest({names})").having(m=f"array_position([{names}], s) = y + 1")
        return cuts_of(made.ordered("s DESC", columns=self._columns))

    @lazy
    def pair_losses(self) -> Array:
        """Pairs of members of two classes in the wrong order, as ``Scores.pair_losses``, of two classes only."""
        if self.n_classes == 2:
            return np.diag([float(ranking.losses) for ranking in self.rankings])[:, ::-1]
        if self.n_classes > MOST_CLASSES:
            raise NotStreamed(f"pairs of more than {MOST_CLASSES} classes are not put in order")
        found = np.zeros((self.n_classes, self.n_classes))
        for one, other in permutations(range(self.n_classes), 2):
            found[one, other] = self.pair_curve(one, other).lost
        return found

    def curves_as_json(self) -> dict[str, Any]:
        """The points of the curves of all classes, for ``KeptScores``."""
        top_label = bins_of(self._top.reduction.cells).tolist() if self.are_probabilities else None
        return {"classes": [self.ranking(code).as_json() for code in range(self.n_classes)], "top_label": top_label}

    @cached_property
    def together(self) -> AllClasses:
        """One threshold for all classes; their orders are gone along once more, beside each other."""
        if not self.in_one_order:
            raise NotStreamed(f"the probabilities of more than {MOST_CLASSES} classes are not put in one order")
        found = AllClasses(*self._of_all, self.threads)
        if not self.mirrored:
            self._written.clear()
        np.fill_diagonal(found.precision, [float(ranking.precision_sum) for ranking in self.rankings])
        return found

    @property
    def joint(self) -> Along:
        """All scores in one order; members are those of actual classes."""
        return self.together.curve

    @property
    def _of_all(self) -> tuple[Along, Sequence[Iterable[Table]]]:
        """The curve of all scores in one order, and the orders of single classes, which are there."""
        members, others = zip(*map(self.both_sides, range(self.n_classes)), strict=True)
        curve = Along(Side.summed(members), Side.summed(others), self.n_classes)
        return curve, [self._in_order(code) for code, _ in enumerate(self.rankings)]

    @property
    def looked_together(self) -> bool:
        """Were the scores of all classes put in one order?"""
        return "together" in self.__dict__

    @property
    def precision_together(self) -> Array:
        """Precision of classes along the members of others, as ``Scores.precision_together``."""
        return self.together.precision

    @property
    def area_of_entries(self) -> Array:
        """Area under the ROC curve of all scores in one order."""
        return self.ranking(None).auc

    @property
    def ends_of_p_true(self) -> Array:
        """Lowest and highest probability of the actual classes (2)."""
        return np.array([self.outcomes.lowest[:, 1].min(), self.outcomes.highest[:, 1].max()])

    # Recalibration.

    def fit(self, code: int, clip: float, *, sloped: bool) -> Fit:
        """Logistic recalibration of a class; its samples are read again, some times."""
        asked = code, clip, sloped
        if asked not in self._fits:
            curve = self.ranking(code).curve
            rows = self._of_class(code).having(v=self._weight)
            ends = np.stack([self.outcomes.lowest[code], self.outcomes.highest[code]], axis=1)
            self._fits[asked] = fitted(rows, curve, ends, clip, sloped=sloped)
        return self._fits[asked]

    @property
    def unfitted(self) -> Mask:
        """Mask (K) of the classes whose recalibration line was asked for and could not be fitted."""
        found = np.zeros(self.n_classes, dtype=np.bool_)
        for (code, *_), one in self._fits.items():
            found[code] |= not one.ended
        return found

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """Return the coefficients of the recalibration line, as ``Scores.recalibrated``."""
        found = self.fit(code, clip, sloped=sloped)
        return np.array([found.a, found.b])

    # What samples say.

    @property
    def has_area_sums(self) -> bool:
        """Are influences on areas summed? Of two classes of independent samples their one order says the variance."""
        return self.grouped or not self.is_mirrored or self.looked_together

    @property
    def row_sums(self) -> RowSums:
        """Sums of what samples say."""
        return self._read[0]

    @property
    def outcomes(self) -> Outcomes:
        """Probabilities beside what happened."""
        found = self._read[1]
        if found is None:
            raise NotStreamed("scores that are no probabilities are not stated beside outcomes")
        return found

    @cached_property
    def _read(self) -> tuple[RowSums, Outcomes | None]:
        """All that samples say one by one, for which they are read once more."""
        asked: list[tuple[Metric[Any], int | None]] = [
            (metric, None) for metric in _of_rows() if self.are_probabilities
        ]
        if self.has_area_sums:
            # All orders are asked for at once, so that they are made beside each other.
            of_classes = range(len(self.rankings)) if self.grouped else range(0)
            of_each = (score_ranking.roc_auc, score_ranking.average_precision)
            asked += [(metric, code) for metric in of_each for code in of_classes]
            asked += [(metric, None) for metric in self._averages]
        outcomes: Outcomes | None = None

        def look(_: Table, scores: Sequence[Scores], __: Array) -> None:
            nonlocal outcomes
            outcomes = scores[0].outcomes if outcomes is None else outcomes + scores[0].outcomes

        leaves = [leaf for metric, code in asked if (leaf := Leaf.made(metric, code)) is not None]
        sums = RowSums.of([self], leaves, look=look if self.are_probabilities else None)
        return sums, outcomes

    def reading(self, leaf: Leaf) -> Read | None:
        """Sums of what samples say for one metric; where it is not among those of all they are read again for it."""
        return self.row_sums.read([leaf]) or RowSums.of([self], [leaf]).read([leaf])

    @property
    def _averages(self) -> Sequence[Metric[Any]]:
        """Averages of areas whose orders were made."""
        pairs = [score_ranking.roc_auc_ovo_macro, score_ranking.roc_auc_ovo_weighted]
        return [
            score_ranking.roc_auc_ovr_macro,
            score_ranking.roc_auc_ovr_weighted,
            *([score_ranking.roc_auc_ovr_micro] if self.looked_together else []),
            *(pairs if self._pairs or self.is_mirrored else []),
        ]

    def strata(self, part: Table) -> Codes:
        """Class of each of some samples."""
        return part["y"]

    @kept
    def class_sums(self, values: Values, *parameters: tuple[str, Any]) -> Array:
        """Weighted sums (K) of what samples say by themselves, as ``Scores.class_sums``."""
        if not self.are_probabilities:
            return super().class_sums(values, *parameters)
        return self.row_sums.sums(key_of_rows(values, dict(parameters)))

    def made(self, leaf: Leaf) -> Influence:
        """All that is said of an area but for the influence of samples; orders that it takes are there then."""
        any_sample = self.part({name: np.zeros(1) for name in self.read_columns})
        return leaf.form.make(StreamedSamples(self, any_sample), leaf.of, leaf.parameters)

    def value(self, leaf: Leaf) -> float:
        """A metric that is made of areas."""
        if leaf.form.area is not None and self.made(leaf).sizes is not None:
            # One class alone needs no order of the others.
            return 1.0 - leaf.form.area.slope * (1.0 - float(self.ranking(_code_of(leaf)).auc))
        with silently():
            found = leaf.metric.compute(self, **leaf.parameters)
        return float(found if not found.ndim else found[_code_of(leaf)])

    def part(self, part: Table) -> Scores:
        """Some samples in memory."""
        columns = [part[name] for name in self.names]
        outputs = np.stack([self._of_other(*columns), *columns] if self.mirrored else columns)
        made = Scores if self.are_probabilities else Scores.of_class_scores
        return made(part["y"], outputs.T, part.get("w"))

    def values_of(self, leaves: Sequence[Leaf], some: Scores) -> Iterator[Array]:
        """Values (b) of some samples in memory; of an area their influence in each unit of weight."""
        samples = StreamedSamples(self, some)
        for leaf in leaves:
            if leaf.form.area is None:
                yield leaf.in_rows(some)
            else:
                yield leaf.form.make(samples, leaf.of, leaf.parameters).of_samples / leaf.form.area.slope

    def pair_curve(self, one: int, other: int) -> Along:
        """Members of a class among those of another one, by its falling score."""
        if (one, other) not in self._pairs:
            some = self._of_class(one).where(f"y IN ({one}, {other})")
            found = Along(self.sides[one][0], self.sides[other][0], self.n_classes)
            for cuts in cuts_of(some.ordered("s DESC", columns=self._columns)):
                found.add(cuts)
            self._pairs[one, other] = found
        return self._pairs[one, other]

    @property
    def _truth(self) -> Sequence[str]:
        """Columns that say which classes samples are in."""
        return ("y",)

    def in_parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Columns of all samples, some samples at a time."""
        if not self.mirrored:
            return pieces(self._rows.batches(*columns))
        # Places of scores are found sooner where these are in order.
        return pieces({**batch, "y": batch["m"].astype(np.int32)} for batch in self._order(1).batches())

    @property
    def read_columns(self) -> Sequence[str]:
        """All columns of the rows."""
        return [*self._truth, *self.names, *(["w"] if self._weighted else []), *(["g"] if self.grouped else [])]

    @property
    def names(self) -> Sequence[str]:
        """Columns of scores."""
        return ["s"] if self.mirrored else [self._score(code) for code in range(self.n_classes)]

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples, which were streamed")


class StreamedSamples(WeightedSamples):
    """Some of the samples, as influences on areas take all of them; what these are is in each unit of weight."""

    scores: StreamedScores

    def __init__(self, scores: StreamedScores, some: Scores) -> None:
        super().__init__(scores)
        self._some, self._outputs = some, some.columns

    @kept
    def _inside(self, code: int) -> Mask:
        return self._some.members(code)

    @kept
    def area(self, code: int) -> Array:
        """Influence (b) on the area of a class."""
        if self.scores.mirrored and not code:
            # Of two classes that say the same of each other one order is that of both.
            return self.area(1)
        curve, own = self.scores.ranking(code).curve, self._outputs[code]
        return placements(curve, own, self._inside(code)) if curve.has_both else np.full(own.size, np.nan)

    @kept
    def precision(self, code: int) -> Array:
        """Influence (b) on the average precision of a class."""
        curve, own = self.scores.ranking(code).curve, self._outputs[code]
        if not curve.members.weight:
            return np.full(own.size, np.nan)
        return precision_placements(curve, own, self._inside(code))

    @cached_property
    def variances_of_precision(self) -> Array:
        """Variances (K) of the average precision of the classes, of all samples."""
        codes = range(self.scores.n_classes)
        return np.array([self.scores.ranking(code).curve.average_precision_variance for code in codes])

    def shares(self, values: Array) -> Array:
        """Influence (b) of how frequent the classes are on the mean of values (K) by it."""
        away = values - float(self.scores.frequencies @ values)
        return self._some.of_members(away) * (self.scores.whole.scale / float(self.scores.actual.sum()))

    def entries(self, *, of_precision: bool) -> Array:
        """Influence (b) on the area, or the average precision, of all scores in one order."""
        found = np.zeros(self._outputs.shape[1])
        if not self.scores.have_entries:
            return found * np.nan
        joint, whole = self.scores.joint, self.scores.whole
        if self.scores.is_mirrored and not of_precision and any(joint.variances):
            # Of two classes one says what the other does, but for ties that the rounding of 1 - p makes or breaks.
            known, (lost, *_) = joint.places
            own = between(np.where(self._inside(1), self._outputs[1], self._outputs[0]), known, lost)
            return found + 2.0 * (1.0 - own - joint.area) * whole.scale_of_mean
        scales = whole.scale / joint.members.weight, whole.scale / joint.others.weight
        for code, own in enumerate(self._outputs):
            if of_precision:
                found += precision_placements(joint, own, self._inside(code))
            else:
                found += placements(joint, own, self._inside(code), scales)
        return found * (whole.scale / joint.whole.scale) if of_precision else found

    def pairs(self, weights: Array) -> tuple[Array, Array]:
        """Areas (K, K) of ordered pairs of classes, and the influence (b) on their sum in weights (K, K)."""
        areas, found, y = np.zeros(weights.shape), np.zeros(self._outputs.shape[1]), self._some.y
        if not self.scores.actual.all():
            return areas, found * np.nan
        for one, other in permutations(range(len(areas)), 2):
            curve, members = self.scores.pair_curve(one, other), y == one
            areas[one, other] = curve.area
            at = np.flatnonzero(members | (y == other))
            found[at] += weights[one, other] * placements(curve, self._outputs[one].take(at), members.take(at))
        return areas, found


@cache
def _of_rows() -> Sequence[Metric[Scores]]:
    """Metrics of every report that are made of what each sample says by itself."""
    known = catalogue().of_probabilities.reported.metrics
    return [one for one in known if (form := one.card.inference.influence) is not None and form.of_rows is not None]


def _code_of(leaf: Leaf) -> int:
    return 1 if leaf.of is None else leaf.of


def _predicted(batches: Iterable[Table], code: int) -> Iterator[Table]:
    """Yield the samples predicted as one of two classes, by its falling probability."""
    for batch in batches:
        rising = batch["s"][::-1]
        stop = rising.size - int(np.searchsorted(rising, 0.5, side="right" if code else "left"))
        yield {name: column[:stop] for name, column in batch.items()}
        if stop < rising.size:
            return
