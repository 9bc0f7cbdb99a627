"""Probabilities or scores of any number of samples: parts of an input that are forgotten one after another."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.classified import assumed_threshold, decide_by_threshold
from app.domain.inputs.columns import weight_facts
from app.domain.inputs.content import DATA_FACT, GROUPS_FACT, IGNORED_FACT, WEIGHTS_FACT, DataFacts
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.matrices import MatrixInput, check_entries
from app.domain.inputs.samples import Samples
from app.domain.report import SectionName
from app.kernel.folds.scores import OrderFold, ScoresFold
from app.kernel.matrix.table import confusion_counts
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folded_groups import DecidedInGroups
from app.services.evaluate.folded_weights import DecidedInWeights
from app.services.evaluate.folding.most_groups import check_groups
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.folded import folded_section
from app.services.evaluate.sections.group import group_section
from app.services.evaluate.sections.weight import weight_section
from app.services.ports import Workers
from app.services.runs.joins import numbers_of

# Facts of a part that are numbers of samples.
_COUNTED: Final = ("rows", "ties", "renormalized")
_DATA: Final = "/input/data"


class Folding:
    """One evaluation made of parts, of which nothing is kept but what adds up.

    What others made of their parts is taken in. The answer is the same whoever had which parts. Who makes it closes it.

    Args:
        budget: Bytes of memory, about, that the order of the samples may take; more goes into files.
        folder: Where files are made; None: it stays in memory, and can be sent to another process.

    Attributes:
        rows: That were read so far.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        self.rows = 0
        self._budget, self._folder = budget, folder
        self._whole: NewEvaluation | None = None
        self._fold: ScoresFold | OrderFold | None = None
        self._assumed: AssumedThreshold | None = None
        self._groups: DecidedInGroups | None = None
        self._weights: DecidedInWeights | None = None
        self._left_out: Counter[str] = Counter()
        self._nothing_left: NothingLeft | None = None

    def add(self, part: NewEvaluation) -> None:
        """Add probabilities or scores with the same labels, of data that was named.

        Raises:
            TooLarge: there are too many groups.
        """
        source, samples = part.source, part.source.samples
        if samples is None or samples.outputs is None:
            raise ValueError("expected parts with probabilities or scores")
        self._take(part, source.facts[DATA_FACT]["rows"], source.facts.get(IGNORED_FACT, {}))
        outputs, predicted = samples.outputs, [samples.predicted]
        if source.facts.get("threshold_assumed"):
            self._assumed = self._assumed or AssumedThreshold()
            predicted = self._assumed.add(samples.truth, outputs, source.positive or 0)
        # The kernel's scores are higher for class 1.
        flip = outputs.ndim == 1 and source.positive == 0
        groups = None if samples.groups is None else numbers_of(samples.groups)
        own = self._own(source, weighted=samples.weights is not None)
        own.add(samples.truth, -outputs if flip else outputs, groups, samples.weights)
        if samples.weights is not None:
            found = self._weights or DecidedInWeights(len(source.labels), len(predicted))
            found.add(samples.weights, samples.truth, predicted)
            self._weights = found
        if self._groups is not None and groups is not None:
            self._groups.add(groups, samples.truth, predicted)
            self._check_groups()

    def leave_out(self, rows: int, found: NothingLeft) -> None:
        """Take a part of which all rows are of classes that are ignored."""
        self.rows += rows
        self._left_out.update(found.left_out)
        self._nothing_left = found

    def merge(self, other: "Folding") -> None:
        """Take in what was made of other parts. Raises as `add`."""
        self._nothing_left = self._nothing_left or other._nothing_left
        if other._whole is None:
            self.rows += other.rows
            self._left_out.update(other._left_out)
        if other._whole is not None and other._fold is not None:
            self._take(other._whole, other.rows, other._left_out)
            if other._assumed is not None:
                self._assumed = (self._assumed or AssumedThreshold()).merge(other._assumed)
            own: Any = self._own(other._whole.source, weighted=other._fold.weighted)
            own.merge(other._fold)
            if other._weights is not None:
                self._weights = other._weights if self._weights is None else self._weights.merged(other._weights)
            if self._groups is not None and other._groups is not None:
                self._groups.merge(other._groups)
                self._check_groups()

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Who look at parts of the order of the samples, where there are some.

        Raises:
            InvalidInput: there is no part, or what is asked cannot be given.
            TooLarge: there are too many groups.
        """
        new, fold = self._whole, self._fold
        if (new is None or fold is None) and self._nothing_left is not None:
            raise self._nothing_left
        if new is None or fold is None:
            raise InvalidInput.at(_DATA, "no_samples", "expected at least one sample, got none")
        settled = new.source if self._assumed is None else self._assumed.settled(new.source)
        ignored = {IGNORED_FACT: dict(self._left_out)} if IGNORED_FACT in settled.facts else {}
        whole = replace(settled, facts={**settled.facts, **ignored, DATA_FACT: facts})
        rule = 0 if self._assumed is None else self._assumed.rule
        samples = None
        if self._groups is not None:
            samples = self._groups.samples(rule)
            self._check_groups()
            whole = replace(whole, facts={**whole.facts, GROUPS_FACT: self._groups.n_groups})
        elif self._weights is not None:
            samples = self._weights.samples(rule)
            whole = _weighed(whole, samples)
        question = ask(whole, new.options)
        folded = fold.finish(map if workers is None else workers.in_order)
        run = RunData(replace(whole, samples=samples), folded=folded)
        sections = {SectionName.PROBABILITIES: folded_section(question, run)}
        if self._groups is not None:
            sections[SectionName.GROUPS] = group_section(question, run)
        elif whole.is_weighted:
            sections[SectionName.WEIGHTS] = weight_section(question, run)
        return replace(new, source=whole, report=report_alone(question, sections))

    def close(self) -> None:
        """Delete the files."""
        if self._fold is not None:
            self._fold.close()

    def _take(self, part: NewEvaluation, rows: int, left_out: Mapping[str, int]) -> None:
        self.rows += rows
        self._left_out.update(left_out)
        if self._whole is None:
            self._whole = replace(part, source=replace(part.source, samples=None))
        else:
            self._whole = replace(self._whole, source=_together(self._whole.source, part.source))

    def _own(self, source: MatrixInput, *, weighted: bool) -> ScoresFold | OrderFold:
        if self._fold is None:
            kind = OrderFold if source.has_scores else ScoresFold
            size, grouped = len(source.labels), source.is_grouped
            self._fold = kind(size, self._budget, self._folder, grouped=grouped, weighted=weighted)
            self._groups = DecidedInGroups(size) if grouped else None
        return self._fold

    def _check_groups(self) -> None:
        groups, fold = self._groups, self._fold
        # What has no files is a part, and small.
        if groups is None or fold is None or self._folder is None:
            return
        held = groups.nbytes + fold.bytes_of_groups
        check_groups(groups.n_groups, fold.classes, held, self._budget)


class AssumedThreshold:
    """Decisions by scores at both thresholds that nobody has to name: all scores together say which of them it is."""

    _THRESHOLDS: Final = (0.0, 0.5)

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros((2, 2, 2), dtype=np.int64)
        self._ends = np.inf, -np.inf

    def add(self, truth: NDArray[Any], scores: NDArray[np.float64], positive: int) -> list[NDArray[np.int64]]:
        """Add samples: codes and scores (n), higher for the positive class. Tells what is decided by each threshold."""
        predicted = [decide_by_threshold(scores, threshold, positive) for threshold in self._THRESHOLDS]
        for counts, codes in zip(self._counts, predicted, strict=True):
            counts += confusion_counts(truth, codes, 2)
        self._ends = min(self._ends[0], float(scores.min())), max(self._ends[1], float(scores.max()))
        return predicted

    def merge(self, other: Self) -> Self:
        """Take in others."""
        self._counts = self._counts + other._counts
        self._ends = min(self._ends[0], other._ends[0]), max(self._ends[1], other._ends[1])
        return self

    @property
    def rule(self) -> int:
        """Which of the thresholds is that of all scores."""
        return self._THRESHOLDS.index(assumed_threshold(*self._ends))

    def settled(self, source: MatrixInput) -> MatrixInput:
        """The input with the decisions at the threshold of all scores."""
        facts = {**source.facts, "threshold": self._THRESHOLDS[self.rule]}
        return replace(source, counts=self._counts[self.rule].copy(), facts=facts)


def _weighed(whole: MatrixInput, samples: Samples) -> MatrixInput:
    """The input with the sums of the weights, and what these are worth.

    Raises:
        InvalidInput: as of weights that are sent.
    """
    size = len(whole.labels)
    counts = confusion_counts(samples.truth, samples.predicted, size, samples.weights)
    try:
        check_entries(counts, _DATA, lambda *_: _DATA)
    except InvalidInput as error:
        fault = error.faults[0]
        raise InvalidInput.at(_DATA, fault.code, f"sample_weight: {fault.detail}") from None
    # Parts are worth something else.
    facts = {name: value for name, value in whole.facts.items() if name != WEIGHTS_FACT}
    return replace(whole, counts=counts, facts={**facts, **weight_facts(samples.weights, samples.tally)})


def _together(whole: MatrixInput, part: MatrixInput) -> MatrixInput:
    facts: dict[str, Any] = {**whole.facts}
    facts |= {name: whole.facts[name] + part.facts[name] for name in _COUNTED if name in part.facts}
    return replace(whole, counts=whole.counts + part.counts, facts=facts)
