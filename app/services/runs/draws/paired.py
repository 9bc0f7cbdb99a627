"""Runs on the same samples, resampled and tested as matrices of all of them together."""

from dataclasses import asdict, replace
from functools import cached_property
from math import nan

import numpy as np

from app.kernel.compare.differences import agreed, off_scale, on_scale, permutation_p, to_scale
from app.kernel.compare.paired import joint as joints
from app.kernel.compare.paired.effects import Effects, PairedScore, paired_effects
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.metrics.expression import is_smooth
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Functional, generator, seed_of
from app.services.estimands import Estimand
from app.services.runs.differences import Test, score_tests
from app.services.runs.draws.matrices import MatrixDraws
from app.services.runs.draws.resampling import FEWEST_PERMUTATIONS, PERMUTATIONS, Pairs
from app.services.runs.draws.simulation import draw_paired

# Cells of the permuted matrices of all pairs.
MOST_PERMUTED_CELLS = 40_000_000


class PairedMatrices(MatrixDraws):
    """The joint posterior of runs on the same samples: what they have in common stays in common."""

    @property
    def _joint(self) -> JointCounts:
        assert self.runs.pairing.joint is not None  # noqa: S101 - what this is chosen by
        return self.runs.pairing.joint

    @property
    def _cells(self) -> int:
        return max(super()._cells, self._joint.counts.size)

    def _draw(self) -> list[Array]:
        return draw_paired(self._joint, self.estimands, draws=self.draws, seed=self.settings.seed)

    def _other_tests(self, index: int, pairs: Pairs, level: float) -> list[list[Test]]:
        """The score method for what is smooth; for the rest draws and permutations, brought together."""
        scored = self._scored(index, level) if pairs else {}
        return [
            [
                self._resampled(index, place, pair, level) if test is None and np.isfinite(gap) else test or Test()
                for place, (test, gap) in enumerate(zip(scored[pair], self.gaps(index, pair).tolist(), strict=True))
            ]
            for pair in pairs
        ]

    def _scored(self, index: int, level: float) -> dict[tuple[int, int], list[Test | None]]:
        """Tests by the score method of values that it suits, in units of the metric, for all pairs."""
        estimand = self.estimands[index]
        found: dict[tuple[int, int], list[Test | None]] = {
            pair: [None] * len(estimand.names) for pair in self.setup.pairs
        }
        if index not in self._scores:
            return found
        effects, score = self._scores[index]
        values, scale = [self.values[index][[*pair]] for pair in self._effects], estimand.scale
        tests = score_tests(
            score,
            level=level,
            rope=np.concatenate([to_scale(self.settings.rope, both, scale) for both in values]),
            method="permutation_mid_p",
            limits="score",
        )
        limits, suited, start = np.array([[test.low, test.high] for test in tests]).T, effects.faithful.tolist(), 0
        for pair, both in zip(self._effects, values, strict=True):
            own = slice(start, start + len(estimand.names))
            ends = off_scale(limits[:, own], both, scale).T.tolist()
            found[pair] = [
                replace(test, low=low, high=high) if suits and np.isfinite(low) else None
                for test, (low, high), suits in zip(tests[own], ends, suited[own], strict=True)
            ]
            start = own.stop
        return found

    @cached_property
    def _smooth(self) -> list[int]:
        return [index for index, estimand in enumerate(self.estimands) if is_smooth(estimand.expression)]

    @cached_property
    def _effects(self) -> dict[tuple[int, int], Effects]:
        """What the samples contribute to the differences of all smooth estimands, for pairs of few enough cells."""
        functionals = [_on_its_scale(self.estimands[index]) for index in self._smooth]
        both = {pair: self._joint.pair(*pair) for pair in self.setup.pairs} if functionals else {}
        return {
            pair: paired_effects(joint, functionals)
            for pair, joint in both.items()
            if self._derivable(joint.matrices().sum(axis=0))
        }

    @cached_property
    def _scores(self) -> dict[int, tuple[Effects, PairedScore]]:
        """By smooth estimand the effects on its values, one pair after the other, and what follows from them."""
        if not self._effects:
            return {}
        ends = np.cumsum([0] + [len(self.estimands[index].names) for index in self._smooth]).tolist()
        found = {}
        for index, start, end in zip(self._smooth, ends, ends[1:], strict=False):
            own = Effects.stacked([effects.of(slice(start, end)) for effects in self._effects.values()])
            found[index] = own, PairedScore(own)
        return found

    def _resampled(self, index: int, place: int, pair: tuple[int, int], level: float) -> Test:
        permuted, drawn = self._permuted(pair), self.drawn[index]
        p = nan if permuted is None else float(permuted[index][place])
        if drawn is None or permuted is None:
            return Test(p=p, method="none" if permuted is None else "permutation")
        gaps = drawn[:, pair[0], place] - drawn[:, pair[1], place]
        gap = float(self.gaps(index, pair)[place])
        found = agreed(gaps, gap, p, level=level, rope=self.settings.rope)
        return Test(method="permutation", limits=self.name, **asdict(found))

    def _permuted(self, pair: tuple[int, int]) -> list[Array] | None:
        """By estimand, p of each value (V) from the same permutations; None where these would take too long."""
        each = max(1, 2 * self.runs.counts[0].size, self._joint.counts.size)
        draws = min(PERMUTATIONS, MOST_PERMUTED_CELLS // (each * max(len(self.setup.pairs), 1)))
        if draws < FEWEST_PERMUTATIONS:
            return None
        if pair not in self._permutations:
            random = generator(seed_of(self.settings.seed, "permutation", *pair))
            both = self._joint.pair(*pair)
            batches = joints.permute(both, draws=draws, random=random)
            found = permutation_p(both, [estimand.functional for estimand in self.estimands], batches)
            self._permutations[pair] = [np.atleast_1d(values) for values in found]
        return self._permutations[pair]

    @cached_property
    def _permutations(self) -> dict[tuple[int, int], list[Array]]:
        return {}


def _on_its_scale(estimand: Estimand) -> Functional:
    return lambda table: on_scale(estimand.functional(table), estimand.scale)
