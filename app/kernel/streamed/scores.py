"""Probabilities and scores of streamed samples, in the form that metrics take."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, lazy
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.losses import CLIP, TOLERANCE, Codes, Losses, sums_by_code
from app.kernel.samples.rankings import (
    Ranking,
    Row,
    equal_error_rate,
    precision_of,
    standardised_partial_area,
)
from app.kernel.samples.scores import Scores
from app.kernel.streamed.along import MAX_FPR, Along, Cuts, Side, along, cuts_of, placements
from app.kernel.streamed.bins import BinSums, BothBins, StreamedBins
from app.kernel.streamed.logistic import Fit, fitted
from app.kernel.streamed.rows import NotStreamed, Rows, Table

# Of more classes the probabilities of all classes are not put into one order.
MOST_CLASSES = 32
# What is summed; shares of samples that are surely right, and ruled out, follow.
LOG_LOSS, SQUARED_ERROR, COSINE, PHI, SURE, RULED_OUT = range(6)
KINDS = 6
# Weights that are not in memory: whoever asks whether there are some is told that there are.
_AWAY = np.zeros(0)
# Samples whose places are looked up at once.
_BLOCK = 1 << 16
_TWO = 2


class StreamedRanking(Ranking):
    """A ranking as metrics read it, at their default parameters. What needs the samples again is ``NotStreamed``.

    Attributes:
        curve: What was found along it.
        bins: Of equal width, of probabilities.
    """

    def __init__(self, curve: Along, bins: StreamedBins | None) -> None:
        self.weights, self.curve, self.bins = None, curve, bins
        members, others, both = curve.members.weight, curve.others.weight, curve.has_both
        known = {
            "positives": members,
            "negatives": others,
            "losses": curve.lost,
            "wins": members * others - curve.lost,
            "auc": curve.area,
            "average_precision": curve.precision / members if members else np.nan,
            "precision_sum": curve.precision_trapezoid,
            "ks": curve.gap if both else np.nan,
            "equal_error_rate": self._equal_error_rate() if both else np.nan,
        }
        # Attributes that are computed at first use are there already.
        self.__dict__.update({name: np.asarray(float(value)) for name, value in known.items()}, hulls=[curve.hull])

    @property
    def area_variance(self) -> float:
        """DeLong's variance of the area; NaN without members or others."""
        return sum(self.curve.variances)

    def curves_as_json(self) -> dict[str, Any]:
        """The points of its curves that are kept."""
        known = {name: float(getattr(self, name)) for name in ("auc", "precision_sum")}
        areas = {name: None if np.isnan(area) else area for name, area in known.items()}
        return {
            **self.curve.points._asdict(),
            **areas,
            "bins": None if self.bins is None else self.bins.as_lists(),
        }

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self.bins is None:
            raise NotStreamed("scores that are no probabilities have no bins")
        return self.bins.between(limits)

    def partial_auc(self, max_fpr: float) -> Array:
        """Standardised area up to the false positive rate that was looked at."""
        curve = self.curve
        if max_fpr != MAX_FPR:
            raise NotStreamed(f"the area was summed up to {MAX_FPR}, not {max_fpr}")
        if not curve.has_both:
            return np.asarray(np.nan)
        edge = None if curve.edge is None else curve.edge[:4]
        sizes = curve.members.weight, curve.others.weight
        return np.asarray(standardised_partial_area(curve.area_inside, edge, *sizes, max_fpr))

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at one of the quantiles that were looked at."""
        if quantile not in self.curve.quantiles:
            raise NotStreamed(f"a quantile of {quantile} was not looked at")
        lower, upper = self.curve.quantiles[quantile]
        return np.asarray(lower), np.asarray(upper)

    def _equal_error_rate(self) -> float:
        """The one cut at which the rates meet is all that is looked at."""
        curve = self.curve
        sizes = {"positives": curve.members.weight, "negatives": curve.others.weight}
        return equal_error_rate(Row(lambda *_: curve.crossing, 1, **sizes))

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples of a ranking, which were streamed")


class GroupInfluence(NamedTuple):
    """What groups add to the sampling error of one value.

    Attributes:
        sums: Sums (G) of the influences of the samples of each group.
        about: Numbers (G) of samples that have any.
    """

    sums: Array
    about: Array


class Together(NamedTuple):
    """One threshold for all classes.

    Attributes:
        curve: All probabilities of all classes in one order; members are those of actual classes.
        precision: Entry [k, l] (K, K) is the precision of class l along the members of class k, by trapezoids.
    """

    curve: Along
    precision: Array


class StreamedScores(Scores):
    """Probabilities or scores of samples that an engine holds: metrics that need no sample twice take it as they take
    ``Scores``, and the others raise ``NotStreamed``.

    Args:
        rows: One for each sample of weight above 0: the class ``y``, and ``p0``, ``p1``, ... of all classes; scores of
            two classes have one ``s``, higher for class 1. A weight ``w`` and a code ``g`` of a group, where there are
            some.
        n_classes: K.
        probabilities: Are they, or else any real scores?
        weighted: Is there a ``w``?
        n_groups: How many groups there are; 0 where samples are independent.
    """

    def __init__(
        self, rows: Rows, n_classes: int, *, probabilities: bool, weighted: bool = False, n_groups: int = 0
    ) -> None:
        self.n_classes, self.n_groups, self.are_probabilities = n_classes, n_groups, probabilities
        self.weights = _AWAY if weighted else None
        self._rows, self._weighted, self._weight = rows, weighted, "w" if weighted else "1"
        self._one_score = n_classes == _TWO and not probabilities
        self.sides = self._counted()
        self.n_samples = self.whole.used
        self._made: dict[int, StreamedRanking] = {}
        self._fits: dict[tuple[int, float, bool], Fit] = {}
        self.__dict__["actual"] = np.array([side.weight for side in self.sides])

    # Numbers of samples.

    def _counted(self) -> Sequence[Side]:
        """The members of each class."""
        return _sides_by_class(self._rows, self.n_classes, self._weight)

    @property
    def grouped(self) -> bool:
        """Do samples have groups?"""
        return self.n_groups > 0

    @cached_property
    def whole(self) -> Side:
        """All samples."""
        return _together(self.sides)

    def both_sides(self, code: int) -> tuple[Side, Side]:
        """The members of a class, and all others."""
        return self.sides[code], _together([side for other, side in enumerate(self.sides) if other != code])

    @property
    def worth(self) -> tuple[int, float] | None:
        """Of weighted samples, how many count and how many of one weight are worth as much."""
        return (self.n_samples, self.effective_samples) if self._weighted else None

    @property
    def effective_samples(self) -> float:
        """Effective number of samples."""
        return self.whole.effective if self._weighted else float(self.n_samples)

    @property
    def effective_members(self) -> Array:
        """Effective numbers (K) of the members of each class."""
        return np.array([side.effective for side in self.sides])

    # Orders.

    def ranking(self, code: int) -> StreamedRanking:
        """The samples by falling score of a class; they are put in order once."""
        if code not in self._made:
            bins = BinSums() if self.are_probabilities else None
            curve = along(
                self._rows,
                self._score(code),
                self._member(code),
                "w" if self._weighted else None,
                sides=self.both_sides(code),
                n_classes=self.n_classes,
                looks=() if bins is None else (bins,),
            )
            self._made[code] = StreamedRanking(curve, None if bins is None else bins.read())
        return self._made[code]

    def _member(self, code: int) -> str:
        """SQL of the members of a class."""
        return f"y = {code}"

    def inside(self, part: Table, code: int) -> Mask:
        """Members of a class (b) among samples that were read."""
        found: Mask = part["y"] == code
        return found

    def _score(self, code: int) -> str:
        """SQL of the score of a class."""
        if self._one_score:
            return "s" if code else "-s"
        return f"p{code}"

    @property
    def rankings(self) -> list[Ranking]:
        """Those of all classes."""
        return [self.ranking(code) for code in range(self.n_classes)]

    @cached_property
    def top_label_bins(self) -> BothBins | None:
        """Bins of the highest probability, members being the samples that are right; None of scores."""
        if not self.are_probabilities:
            return None
        names = [f"p{code}" for code in range(self.n_classes)]
        # The first of equals is predicted.
        first = [
            " AND ".join([f"{own} > {one}" for one in names[:code]] + [f"{own} >= {one}" for one in names[code + 1 :]])
            for code, own in enumerate(names)
        ]
        right = " ".join(f"WHEN {code} THEN {condition}" for code, condition in enumerate(first))
        made = self._rows.having(s=f"greatest({', '.join(names)})", m=f"CASE y {right} END")
        columns = ["s", "m", *(["w"] if self._weighted else [])]
        widths, parts = BinSums(), BinSums(self.whole.weight)
        for cuts in cuts_of(made.ordered("s DESC", columns=columns)):
            widths(cuts)
            parts(cuts)
        return BothBins(widths.read(), parts.read())

    @lazy
    def top_label(self) -> Ranking:
        """The bins of the highest probability."""
        if self.top_label_bins is None:
            raise NotStreamed("scores that are no probabilities have no bins")
        return self.top_label_bins

    @lazy
    def pair_losses(self) -> Array:
        """As of ``Scores``, of two classes."""
        if self.n_classes > _TWO:
            raise NotStreamed("pairs of more than two classes need the samples, which were streamed")
        return np.diag([float(ranking.losses) for ranking in self.rankings])[:, ::-1]

    def curves_as_json(self) -> dict[str, Any]:
        """The points of the curves of all classes, for ``KeptScores``."""
        classes = [self.ranking(code).curves_as_json() for code in range(self.n_classes)]
        top_label = self.top_label_bins
        return {"classes": classes, "top_label": None if top_label is None else top_label.as_lists()}

    @cached_property
    def together(self) -> Together:
        """One threshold for all classes; all their probabilities are put in one order.

        Raises:
            NotStreamed: there are too many classes, or scores.
        """
        if self.n_classes > MOST_CLASSES or not self.are_probabilities:
            raise NotStreamed(f"the probabilities of more than {MOST_CLASSES} classes are not put in one order")
        stacked = self._rows.stacked("k", [{"s": self._score(code)} for code in range(self.n_classes)])
        columns = ["s", "y", "k", *(["w"] if self._weighted else [])]
        made, rest = self.whole, self.n_classes - 1
        others = Side(made.weight * rest, made.squares * rest, made.used * rest)
        passed = _Passed(Along(made, others, self.n_classes), self.n_classes)
        for part in _whole_cuts(stacked.ordered("s DESC", columns=columns), self.n_classes):
            passed.add(part)
        precision = passed.precision
        own = [float(ranking.precision_sum) for ranking in self.rankings]
        precision[np.arange(self.n_classes), np.arange(self.n_classes)] = own
        return Together(passed.curve, precision)

    @property
    def looked_together(self) -> bool:
        """Were the probabilities of all classes put in one order?"""
        return "together" in self.__dict__

    @lazy
    def common_threshold(self) -> tuple[Array, Array]:
        """As of ``Scores``."""
        return np.asarray(self.together.curve.lost + 0.5 * self.whole.weight**2), self.together.precision

    # Recalibration.

    def fit(self, code: int, clip: float, *, sloped: bool) -> Fit:
        """Logistic recalibration of a class; its samples are read again, some times."""
        asked = code, clip, sloped
        if asked not in self._fits:
            curve = self.ranking(code).curve
            rows = self._rows.having(s=self._score(code), m=f"y = {code}", v=self._weight)
            self._fits[asked] = fitted(rows, curve, self.ends[code], clip, sloped=sloped)
        return self._fits[asked]

    @property
    def unfitted(self) -> Mask:
        """As of ``Scores``; of the lines that were asked for."""
        found = np.zeros(self.n_classes, dtype=np.bool_)
        for (code, *_), one in self._fits.items():
            found[code] |= not one.ended
        return found

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """As of ``Scores``."""
        found = self.fit(code, clip, sloped=sloped)
        return np.array([found.a, found.b])

    @lazy
    def ends(self) -> Array:
        """As of ``Scores``."""
        signs = {"a": "", "b": "-"}
        asked = {f"{name}{code}": f"{sign}p{code}" for code in range(self.n_classes) for name, sign in signs.items()}
        found = self._rows.smallest("y", **asked)
        made = np.full((self.n_classes, _TWO, _TWO), [np.inf, -np.inf])
        for place, actual in enumerate(found["y"].tolist()):
            for code in range(self.n_classes):
                own = made[code, int(actual == code)]
                own[:] = min(own[0], found[f"a{code}"][place]), max(own[1], -found[f"b{code}"][place])
        return made

    # Sums of losses.

    @cached_property
    def _with_losses(self) -> Rows:
        """The rows with ``l0``, ``l1``, ..., the loss of each kind, and ``t``, the probability of the actual class."""
        names = [f"p{code}" for code in range(self.n_classes)]
        actual = " ".join(f"WHEN {code} THEN {name}" for code, name in enumerate(names))
        rows = self._rows.having(t=f"CASE y {actual} END")
        length = " + ".join(f"{name} * {name}" for name in names)
        if self.n_classes == _TWO:
            squared = "(p1 - y) * (p1 - y)"
        else:
            away = {f"e{code}": f"{name} - (y = {code})::INT" for code, name in enumerate(names)}
            rows, squared = rows.having(**away), " + ".join(f"{name} * {name}" for name in away)
        return rows.having(
            l0=f"-ln(greatest(t, {CLIP!r}))",
            l1=squared,
            l2=f"t / sqrt({length})",
            l3="1.0 - sqrt(greatest(1.0 - sqrt(t), 0.0))",
            l4=f"(t > {0.5 + TOLERANCE!r})::INT::DOUBLE",
            l5=f"(t < {1.0 / self.n_classes - TOLERANCE!r})::INT::DOUBLE",
        )

    @cached_property
    def loss_sums(self) -> "LossSums":
        """Sums of the losses over the samples of each class.

        Raises:
            NotStreamed: scores have none.
        """
        if not self.are_probabilities:
            raise NotStreamed("scores that are no probabilities have no losses")
        return LossSums(self._with_losses, self.sides, self._weight, self.n_groups)

    @cached_property
    def losses(self) -> Losses:
        """As of ``Scores``."""
        unknown = np.full(self.n_classes, np.nan)
        if not self.are_probabilities:
            return Losses(unknown, unknown, unknown, unknown, unknown, unknown, lowest=np.nan, highest=np.nan)
        sums = self.loss_sums
        undecided = self.actual - sums.first[SURE] - sums.first[RULED_OUT]
        # Of weights that are all counted a rounding is left.
        undecided = np.where(np.abs(undecided) <= ROUNDING * self.actual, 0.0, undecided)
        log_loss, squared_error, cosine, _, sure, ruled_out = sums.first
        lowest, highest = sums.ends_of_true
        return Losses(log_loss, squared_error, cosine, sure, ruled_out, undecided, lowest=lowest, highest=highest)

    @lazy
    def phi_sums(self) -> Array:
        """As of ``Scores``."""
        return self.loss_sums.first[PHI] if self.are_probabilities else np.full(self.n_classes, np.nan)

    # Places.

    @property
    def _truth(self) -> Sequence[str]:
        """Columns that ``inside`` takes."""
        return ("y",)

    @cached_property
    def area_influences(self) -> "AreaInfluences":
        """What all samples add to the sampling errors of areas; they are read once more."""
        return AreaInfluences(self)

    def read(self) -> Iterator[tuple[Table, Array]]:
        """All samples in small parts: their columns, and the scores (K, b) of all classes."""
        names = ["s"] if self._one_score else [f"p{code}" for code in range(self.n_classes)]
        beside = [*(["w"] if self._weighted else []), *(["g"] if self.grouped else [])]
        for batch in self._rows.batches(*self._truth, *names, *beside):
            for start in range(0, len(batch[names[0]]), _BLOCK):
                part = {name: column[start : start + _BLOCK] for name, column in batch.items()}
                columns = [-part["s"], part["s"]] if self._one_score else [part[name] for name in names]
                yield part, np.stack(columns)

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples, which were streamed")


def _sides_by_class(rows: Rows, n_classes: int, weight: str) -> list[Side]:
    found = rows.having(v=weight).sums("y", n="1", w="v", x="v * v")
    sides = [Side(0.0, 0.0, 0)] * n_classes
    for code, size, own, squares in zip(found["y"], found["n"], found["w"], found["x"], strict=True):
        sides[int(code)] = Side(float(own), float(squares), int(size))
    return sides


def _together(sides: Sequence[Side]) -> Side:
    weights, squares, used = zip(*sides, strict=True)
    return Side(fsum(weights), fsum(squares), sum(used))


class _Entries(NamedTuple):
    """Entries of the order of all classes.

    Attributes:
        scores: (n), falling.
        codes: Twice the class (n) of each, plus 1 of a member.
        weights: (n).
        squares: (n), of the weights.
    """

    scores: Array
    codes: Codes
    weights: Array
    squares: Array

    def part(self, rows: slice) -> "_Entries":
        """Some of them."""
        return _Entries(self.scores[rows], self.codes[rows], self.weights[rows], self.squares[rows])

    def summed(self, n_classes: int) -> "_Entries":
        """Entries of one score, one of each class and side."""
        size = 2 * n_classes
        codes = np.flatnonzero(np.bincount(self.codes, minlength=size))
        weights, squares = sums_by_code(self.codes, np.stack([self.weights, self.squares]), size).take(codes, axis=1)
        return _Entries(np.full(codes.size, self.scores[0]), codes, weights, squares)


def _whole_cuts(batches: Iterable[Table], n_classes: int) -> Iterator[_Entries]:
    """Entries of all classes in one order, in parts; no score is in two parts."""
    rest: _Entries | None = None
    for batch in batches:
        weight: Array = batch.get("w", np.ones(batch["s"].size))
        codes: Codes = 2 * batch["k"].astype(np.intp) + (batch["y"] == batch["k"])
        entries = _Entries(batch["s"], codes, weight, np.square(weight))
        if rest is not None:
            entries = _Entries(*(np.concatenate(pair) for pair in zip(rest, entries, strict=True)))
        # What comes next may have the last score too.
        first = int(np.searchsorted(-entries.scores, -entries.scores[-1]))
        rest = entries.part(slice(first, None)).summed(n_classes)
        if first:
            yield entries.part(slice(first))
    if rest is not None:
        yield rest


class _Passed:
    """The order of all probabilities of K classes, from the highest down.

    Attributes:
        curve: Of all of them.
        precision: As of ``Together``, without its diagonal.
    """

    def __init__(self, curve: Along, n_classes: int) -> None:
        self.curve, self.precision = curve, np.zeros((n_classes, n_classes))
        self._above = np.zeros((n_classes, 2))

    def add(self, entries: _Entries) -> None:
        """Go on with the next lower entries."""
        scores, codes, weights, squares = entries
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        members = (codes & 1).astype(np.bool_)
        sides = [np.where(inside, column, 0.0) for column in (weights, squares) for inside in (members, ~members)]
        sums = [np.add.reduceat(side, starts) for side in sides]
        self.curve.add(Cuts(scores.take(starts), sums[0], sums[1], np.stack(sums[2:])))
        classes, rising, at = codes >> 1, -scores, np.flatnonzero(members)
        held, places, size = classes.take(at), rising.take(at), len(self._above)
        for code in range(size):
            own = np.flatnonzero(classes == code)
            tp, fp = (
                np.concatenate([[above], above + np.cumsum(side.take(own))])
                for above, side in zip(self._above[code], sides[:2], strict=True)
            )
            self._above[code] = tp[-1], fp[-1]
            # Of each member before its cut and with it: what this class has above.
            reached = [np.searchsorted(rising.take(own), places, side="left")]
            reached.append(np.searchsorted(rising.take(own), places, side="right"))
            heights = sum(precision_of(tp.take(one), (tp + fp).take(one)) for one in reached)
            self.precision[:, code] += np.bincount(held, 0.5 * weights.take(at) * heights, size)


class LossSums:
    """Sums of losses over the samples of each class, and within groups.

    Attributes:
        first: Weighted sums (6, K) of each kind.
        ends_of_true: Lowest and highest probability of an actual class.

    Args:
        rows: With the losses ``l0``, ``l1``, ... and ``t``.
        sides: The samples of each class.
        weight: SQL of the weight.
        n_groups: 0 where samples are independent.
    """

    def __init__(self, rows: Rows, sides: Sequence[Side], weight: str, n_groups: int) -> None:
        size = len(sides)
        self._rows, self._sides, self._weight, self._n_groups = rows, sides, weight, n_groups
        asked = {f"{name}{kind}": f"{sign}l{kind}" for kind in range(KINDS) for name, sign in (("a", ""), ("b", "-"))}
        ends = rows.smallest("y", t="t", u="-t", **asked)
        codes = ends["y"].astype(np.intp)
        self._low, self._high = np.full((KINDS, size), np.inf), np.full((KINDS, size), -np.inf)
        for kind in range(KINDS):
            self._low[kind, codes], self._high[kind, codes] = ends[f"a{kind}"], -ends[f"b{kind}"]
        self.ends_of_true = float(ends["t"].min()), float(-ends["u"].min())
        # Squares of what is left above the lowest value are exact where values hardly differ.
        self._shift = self._low.min(axis=1)
        above = [f"(l{kind} - {float(shift)!r})" for kind, shift in enumerate(self._shift)]
        found = rows.having(v=weight).sums(
            "y",
            **{f"s{kind}": f"v * l{kind}" for kind in range(KINDS)},
            **{f"f{kind}": f"v * v * {one}" for kind, one in enumerate(above)},
            **{f"q{kind}": f"v * v * {one} * {one}" for kind, one in enumerate(above)},
        )
        self.first, self._own, self._squares = np.zeros((3, KINDS, size))
        for into, name in ((self.first, "s"), (self._own, "f"), (self._squares, "q")):
            for kind in range(KINDS):
                into[kind, codes] = found[f"{name}{kind}"]

    def variance(self, kind: int, shifts: Array | None = None, size: float = 0.0) -> float:
        """Variance of the mean of a kind of losses over all samples.

        Args:
            kind: The kind.
            shifts: Numbers (K) that are added to the losses of each class.
            size: Differences are rounding relative to it too.
        """
        moves = np.zeros(len(self._sides)) if shifts is None else shifts
        there = np.array([side.used > 0 for side in self._sides])
        if _is_rounding((self._low[kind] + moves)[there].min(), (self._high[kind] + moves)[there].max(), size):
            return 0.0
        whole = _together(self._sides)
        weights, squares = (np.array([side[place] for side in self._sides]) for place in (0, 1))
        # Shifts are what is added to the loss above the lowest one.
        own, spread = self._own[kind] + moves * squares, self._squares[kind] + 2.0 * moves * self._own[kind]
        spread = spread + moves * moves * squares
        first = self.first[kind] + (moves - self._shift[kind]) * weights
        return whole.variance((fsum(first), fsum(own), fsum(spread)))

    def variances(self, kind: int) -> Array:
        """Variances (K) of the means of a kind of losses over the members of each class; 0 of no members."""
        found = np.zeros(len(self._sides))
        for code, side in enumerate(self._sides):
            if side.used and not _is_rounding(self._low[kind, code], self._high[kind, code], 0.0):
                first = self.first[kind, code] - self._shift[kind] * side.weight
                found[code] = side.variance((first, self._own[kind, code], self._squares[kind, code]))
        return found

    def share_variance(self, counted: Sequence[int], *, rest: bool) -> float:
        """Variance of the share of the samples that are counted by some of the last two kinds, or by none of them."""
        whole, chosen = _together(self._sides), [*counted]
        of_each = np.array([side.squares for side in self._sides])
        # A sample is counted by one of them at most, and values are 0 or 1.
        first = fsum(self.first[chosen].ravel())
        squares = fsum((self._own[chosen] + self._shift[chosen, None] * of_each).ravel())
        if rest:
            first, squares = whole.weight - first, whole.squares - squares
        return whole.variance((first, squares, squares))

    # Groups.

    @cached_property
    def _of_groups(self) -> Table:
        """By group and class: number of samples, weight, and weighted sums of losses above the lowest one."""
        above = {f"s{kind}": f"v * (l{kind} - {float(shift)!r})" for kind, shift in enumerate(self._shift)}
        return self._rows.having(v=self._weight).sums("g", "y", n="1", w="v", **above)

    def mean(self, kind: int) -> GroupInfluence:
        """Influence of groups on the mean over all samples."""
        return self._moved(kind, np.zeros(len(self._sides)), 0.0, -1.0)

    def saved(self, kind: int, reference: float, moves: Array, size: float) -> GroupInfluence:
        """Influence of groups on the share that is saved of a mean.

        Args:
            kind: Of which losses.
            reference: The mean of which something is saved.
            moves: How much the share of each class (K) adds to what is saved, in units of the reference.
            size: Differences are rounding relative to it too.
        """
        found = self._moved(kind, moves, size, 1.0)
        return found._replace(sums=found.sums / reference)

    def _moved(self, kind: int, moves: Array, size: float, sign: float) -> GroupInfluence:
        """Influence on the mean of moves less losses, or of losses where the sign is -1."""
        table, whole = self._of_groups, _together(self._sides)
        codes = table["y"].astype(np.intp)
        there = np.array([side.used > 0 for side in self._sides])
        ends = (moves - self._high[kind])[there].min(), (moves - self._low[kind])[there].max()
        if _is_rounding(*ends, size):
            return self._none(table)
        sums = moves.take(codes) * table["w"] - table[f"s{kind}"]
        away = sums - table["w"] * (float(sums.sum()) / whole.weight)
        return self._by_group(table, sign * away * _more(whole) / whole.weight, table["n"])

    def class_means(self, kind: int) -> GroupInfluence:
        """Influence of groups on the mean over the classes of the mean over their members."""
        table = self._of_groups
        return self._by_group(table, self._away_in_class(kind) / len(self._sides), table["n"])

    def members(self, kind: int, code: int) -> GroupInfluence:
        """Influence of groups on the mean over the members of a class."""
        table = self._of_groups
        inside = table["y"] == code
        return self._by_group(table, np.where(inside, self._away_in_class(kind), 0.0), np.where(inside, table["n"], 0))

    def share(self, counted: Sequence[int], *, rest: bool) -> GroupInfluence:
        """Influence of groups on the share of the samples that are counted by some kinds, or by none of them."""
        table, whole = self._of_groups, _together(self._sides)
        inside = sum((table[f"s{kind}"] + self._shift[kind] * table["w"] for kind in counted), np.zeros(1))
        inside = table["w"] - inside if rest else inside
        share = float(inside.sum()) / whole.weight
        # Where all samples are counted, or none, none is away from the mean.
        if share * (1.0 - share) <= ROUNDING:
            return self._none(table)
        return self._by_group(table, (inside - share * table["w"]) * _more(whole) / whole.weight, table["n"])

    def _away_in_class(self, kind: int) -> Array:
        """Influences of the samples of each entry on the mean of their class."""
        table = self._of_groups
        away = np.zeros(table["y"].size)
        for code, side in enumerate(self._sides):
            inside = np.flatnonzero(table["y"] == code)
            if inside.size and not _is_rounding(self._low[kind, code], self._high[kind, code], 0.0):
                sums, weights = table[f"s{kind}"].take(inside), table["w"].take(inside)
                mean = float(sums.sum()) / side.weight
                away[inside] = (sums - mean * weights) * _more(side) / side.weight
        return away

    def _none(self, table: Table) -> GroupInfluence:
        return self._by_group(table, np.zeros(table["y"].size), np.zeros(table["y"].size))

    def _by_group(self, table: Table, values: Array, about: Array) -> GroupInfluence:
        codes = table["g"].astype(np.intp)
        made = (sums_by_code(codes, one.astype(np.float64), self._n_groups) for one in (values, about))
        return GroupInfluence(*made)


def _is_rounding(low: float, high: float, size: float) -> bool:
    return bool(high - low <= ROUNDING * max(abs(low), abs(high), size))


def _more(side: Side) -> float:
    return float(np.sqrt(side.used / max(side.used - 1, 1)))


class AreaInfluences:
    """What samples or their groups add to the sampling errors of areas.

    Args:
        scores: Of samples in groups, or of more than two classes.
    """

    def __init__(self, scores: StreamedScores) -> None:
        self._scores, size = scores, scores.n_classes
        self._curves = [scores.ranking(code).curve for code in range(size)]
        self._areas = np.array([curve.area for curve in self._curves])
        self._joint = scores.together.curve if scores.looked_together else None
        # Of each class, and of all entries: sums within groups, or the sum of squares.
        rows = size + 1 if scores.grouped else 3
        self._sums = np.zeros((rows, max(scores.n_groups, 1)))
        # Numbers of members of each class in each group, and what they weigh.
        self._members, self._weights = np.zeros((2, size, max(scores.n_groups, 1)))
        self._sizes = np.zeros(max(scores.n_groups, 1))
        for part, columns in scores.read():
            self._add(part, columns)

    def _add(self, part: Table, columns: Array) -> None:
        size, weights = self._scores.n_classes, part.get("w")
        inside = np.stack([self._scores.inside(part, code) for code in range(size)])
        each = [
            placements(curve, own, members, weights) if curve.has_both else np.full(own.size, np.nan)
            for curve, own, members in zip(self._curves, columns, inside, strict=True)
        ]
        micro = self._of_entries(inside, columns, weights)
        if not self._scores.grouped:
            shares = self._scores.prevalence
            weighted = sum(share * own for share, own in zip(shares, each, strict=True))
            weighted = weighted + self._of_shares(inside, weights)
            for sums, one in zip(self._sums, (sum(each) / size, weighted, micro), strict=True):
                sums += np.square(one).sum()
            return
        groups, n_groups = part["g"].astype(np.intp), self._scores.n_groups
        for sums, one in zip(self._sums, [*each, micro], strict=True):
            sums += np.bincount(groups, one, n_groups)
        self._sizes += np.bincount(groups, minlength=n_groups)
        for members, own, there in zip(self._members, self._weights, inside, strict=True):
            at = np.flatnonzero(there)
            members += np.bincount(groups.take(at), minlength=n_groups)
            own += np.bincount(groups.take(at), None if weights is None else weights.take(at), n_groups)

    def _of_shares(self, inside: Mask, weights: Array | None) -> Array:
        """Influence of samples on the mean of the areas by the shares of the classes, as far as these are random."""
        whole, shares = self._scores.whole, self._scores.prevalence
        away = (self._areas - float(shares @ self._areas)) * _more(whole) / whole.weight
        found: Array = away @ inside
        return found if weights is None else found * weights

    def _of_entries(self, inside: Mask, columns: Array, weights: Array | None) -> Array:
        if self._joint is None:
            return np.full(columns.shape[1], np.nan)
        if not any(self._joint.variances):
            return np.zeros(columns.shape[1])
        places, rest, whole = self._joint.places, self._scores.n_classes - 1, self._scores.whole
        if rest == 1:
            # Of two classes one says what the other does, but for ties that the rounding of 1 - p makes or breaks.
            sums = 2.0 * (1.0 - places.lost(np.where(inside[1], columns[1], columns[0])))
        else:
            placed = [
                np.where(members, 1.0 - places.lost(own), places.won(own) / rest)
                for members, own in zip(inside, columns, strict=True)
            ]
            sums = np.sum(placed, axis=0)
        found: Array = (sums - 2.0 * self._joint.area) * _more(whole) / whole.weight
        return found if weights is None else found * weights

    @property
    def _squares(self) -> Array:
        return self._sums[:, 0]

    def variance(self, *, weighted: bool) -> float:
        """Of the mean of the areas, or of that by the shares of the classes, of independent samples."""
        return float(self._squares[int(weighted)])

    @property
    def variance_of_entries(self) -> float:
        """Of the area of all entries in one order, of independent samples (Obuchowski 1997)."""
        return float(self._squares[2])

    def of_class(self, code: int) -> GroupInfluence:
        """Influence of groups on the area of one class."""
        of_members, of_others = self._curves[code].variances
        members = self._members[code]
        about = members * (of_members > 0) + (self._sizes - members) * (of_others > 0)
        return GroupInfluence(self._sums[code], about)

    def of_mean(self, *, weighted: bool) -> GroupInfluence:
        """Influence of groups on the mean of the areas, or on that by the shares of the classes."""
        size = self._scores.n_classes
        shares = self._scores.prevalence if weighted else np.full(size, 1.0 / size)
        sums = shares @ self._sums[:size]
        if weighted:
            whole = self._scores.whole
            away = (self._areas - float(shares @ self._areas)) * _more(whole) / whole.weight
            sums = sums + away @ self._weights
        return GroupInfluence(sums, self._sizes)

    @property
    def of_entries(self) -> GroupInfluence:
        """Influence of groups on the area of all entries in one order."""
        return GroupInfluence(self._sums[-1], self._sizes)
