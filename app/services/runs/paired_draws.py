"""Runs on the same samples, resampled and tested as matrices of all of them together."""

from dataclasses import asdict, replace
from functools import cached_property
from math import nan

import numpy as np

from app.kernel.compare.differences import agreed, off_scale, on_scale, permutation_p, to_scale
from app.kernel.compare.paired import joint as joints
from app.kernel.compare.paired.effects import Effects, paired_effects
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.score import PairedScore
from app.kernel.metrics.expression import is_smooth
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import Functional
from app.services.estimands import Estimand
from app.services.runs.differences import Test, score_tests
from app.services.runs.matrix_draws import MatrixDraws
from app.services.runs.resampling import FEWEST_PERMUTATIONS, PERMUTATIONS
from app.services.runs.simulation import draw_paired

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

    def _other_tests(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        """The score method for what is smooth; for the rest draws and permutations, brought together."""
        scored = self._scored(index, pair, level)
        gaps = self.gaps(index, pair).tolist()
        return [
            self._resampled(index, place, pair, level) if test is None and np.isfinite(gap) else test or Test()
            for place, (test, gap) in enumerate(zip(scored, gaps, strict=True))
        ]

    def _scored(self, index: int, pair: tuple[int, int], level: float) -> list[Test | None]:
        """Tests by the score method of values that it suits, in units of the metric."""
        estimand, found = self.estimands[index], self._effects(pair)
        if index not in found:
            return [None] * len(estimand.names)
        effects, score = found[index]
        values, scale = self.values[index][[*pair]], estimand.scale
        tests = score_tests(
            score,
            level=level,
            rope=to_scale(self.settings.rope, values, scale),
            method="permutation_mid_p",
            limits="score",
        )
        ends = off_scale(np.array([[test.low, test.high] for test in tests]).T, values, scale).T.tolist()
        return [
            replace(test, low=low, high=high) if suits and np.isfinite(low) else None
            for test, (low, high), suits in zip(tests, ends, effects.faithful.tolist(), strict=True)
        ]

    def _effects(self, pair: tuple[int, int]) -> dict[int, tuple[Effects, PairedScore]]:
        """Of the smooth estimands, what the samples contribute and what follows from it; all looked at together."""
        if pair not in self._known_effects:
            both = self._joint.pair(*pair)
            smooth = [index for index, estimand in enumerate(self.estimands) if is_smooth(estimand.expression)]
            found = {}
            if smooth and self._derivable(both.matrices().sum(axis=0)):
                together = paired_effects(both, [_on_its_scale(self.estimands[index]) for index in smooth])
                ends = np.cumsum([len(self.estimands[index].names) for index in smooth]).tolist()
                for index, end in zip(smooth, ends, strict=True):
                    own = together.of(slice(end - len(self.estimands[index].names), end))
                    found[index] = own, PairedScore(own)
            self._known_effects[pair] = found
        return self._known_effects[pair]

    @cached_property
    def _known_effects(self) -> dict[tuple[int, int], dict[int, tuple[Effects, PairedScore]]]:
        return {}

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
        draws = min(PERMUTATIONS, MOST_PERMUTED_CELLS // (each * max(self.setup.n_pairs, 1)))
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
