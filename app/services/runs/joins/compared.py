"""What comes of joined samples: joint counts and sums, which add up whatever the parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.kernel.compare.folded import Block, PairedSums, Plan
from app.kernel.compare.paired.joint import JointCounts, merged
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.services.runs.joins.groups import GroupedJoin
from app.services.runs.joins.joined import Joined, joined
from app.services.runs.joins.spilled import CODES, Columns, Part
from app.services.runs.joins.weights import CommonWeights

_OUTPUT: Final = "output_"
# The number of the group of a sample.
GROUP: Final = "group"
# What it weighs.
WEIGHT: Final = "weight"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the probabilities or scores of a run are.

    Attributes:
        width: Numbers of a sample, K.
    """

    width: int
    are_probabilities: bool

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """Of the divided files."""
        return {name: pa.float64() for name in self._names}

    def divided(self, outputs: Array) -> Columns:
        """Probabilities or scores (n, K) as columns."""
        return dict(zip(self._names, outputs.T, strict=True))

    def scores(self, truth: NDArray[np.int64], columns: Columns) -> Scores:
        """As metrics take them."""
        made = Scores if self.are_probabilities else Scores.of_class_scores
        return made(truth, np.column_stack([columns[name] for name in self._names]))

    @property
    def _names(self) -> list[str]:
        return [f"{_OUTPUT}{place}" for place in range(self.width)]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the samples. Can be sent to another process.

    Attributes:
        outputs: What the outputs of each run are, where some are needed.
        plan: What is summed of them.
        grouped: Which runs have groups, where one has.
        weighted: Which runs have weights, where one has.
    """

    n_runs: int
    n_classes: int
    outputs: tuple[Outputs, ...] = ()
    plan: Plan | None = None
    grouped: tuple[bool, ...] = ()
    weighted: tuple[bool, ...] = ()

    def columns(self, run: int) -> Mapping[str, pa.DataType]:
        """Of the divided files of a run."""
        groups = {GROUP: pa.uint64()} if self.grouped and self.grouped[run] else {}
        weights = {WEIGHT: pa.float64()} if self.weighted and self.weighted[run] else {}
        outputs = self.outputs[run].columns if self.outputs else {}
        return {**CODES, **groups, **weights, **outputs}


class Compared:
    """Counts and sums of samples that all runs have. Merges in any order.

    Attributes:
        sums: Of what rows say by themselves.
        block: Samples of one part whose orders matter; whoever merges takes it first.
        groups: Of samples in groups.
        weights: Of samples with weights.
        matched: How many samples there are.
        different: Bytes of what was different when it was added up last.

    Args:
        question: What is asked.
        waiting: Bytes that wait at least until they are added up.
    """

    def __init__(self, question: Question, waiting: int = 0) -> None:
        self.question, self._waiting, self.different = question, waiting, 0
        self.sums = None if question.plan is None else PairedSums(question.plan, ordered=False)
        self.block: Block | None = None
        self.groups = GroupedJoin() if question.grouped else None
        self.weights = CommonWeights(question.n_runs) if question.weighted else None
        self.matched = 0
        self._joint: list[JointCounts] = []

    @property
    def joint(self) -> JointCounts:
        """How often each truth met each combination of predictions."""
        if len(self._joint) != 1:
            self._joint = [merged(self._joint, self.question.n_runs, self.question.n_classes)]
        return self._joint[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory of what grows with the samples."""
        of_parts = [one.nbytes for one in (self.groups, self.sums) if one is not None]
        return sum(of_parts) + sum(one.nbytes for one in self._joint)

    def merge(self, other: Self) -> None:
        """Take in what was made of other parts."""
        self.matched += other.matched
        if self.weights is not None and other.weights is not None:
            self.weights.merge(other.weights)
        self._joint.extend(other._joint)
        if self.sums is not None and other.sums is not None:
            self.sums.merge(other.sums)
        if self.groups is not None and other.groups is not None:
            self.groups.merge(other.groups)
        # So that adding up takes no more time for each part the more there are.
        if self.nbytes > self.different + max(self.different // 2, self._waiting):
            self.add_up()

    def add_up(self) -> None:
        """What says the same becomes one."""
        self._joint = [self.joint]
        for one in (self.sums, self.groups):
            if one is not None:
                one.add_up()
        self.different = self.nbytes

    def _add(self, found: Joined) -> None:
        question = self.question
        self.matched = found.truth.size
        weights = None
        if self.weights is not None:
            ones = np.ones(self.matched)
            each = [columns.get(WEIGHT, ones) for columns in found.others]
            self.weights.add(each)
            weights = each[0]
        self._joint.append(found.counts(question.n_classes, weights))
        if question.plan is not None:
            # What weighs nothing says nothing.
            rows = slice(None) if weights is None else np.flatnonzero(weights)
            self._add_outputs(question.plan, found.among(rows), None if weights is None else weights[rows])
        if self.groups is not None:
            groups = [columns[GROUP] for columns in found.others if GROUP in columns]
            self.groups.add(groups, found.truth, found.predictions, question.n_classes, weights)

    def _add_outputs(self, plan: Plan, found: Joined, weights: Array | None) -> None:
        if self.sums is None or not found.truth.size:
            return
        outputs = zip(self.question.outputs, found.others, strict=True)
        runs = [one.scores(found.truth, columns) for one, columns in outputs]
        truth = found.truth.astype(np.intp)
        self.sums.add(truth, runs, weights)
        self.block = Block.of(plan, truth, runs, weights)

    @classmethod
    def of(cls, question: Question, parts: Sequence[Part | None]) -> Self:
        """What comes of the samples that all runs have of one part: a pure function, for any process.

        Raises:
            InvalidInput, IncomparableRuns: as `joined`.
        """
        made, found = cls(question), joined(parts, question.n_classes)
        if found is not None and found.truth.size:
            made._add(found)
            made.add_up()
        return made
