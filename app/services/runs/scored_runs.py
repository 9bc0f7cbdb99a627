"""The probabilities or scores of the samples of runs: read together, and brought to one order of the classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.samples import Samples
from app.kernel.compare.replicates import importance
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.resampling import Run, values_of
from app.services.estimands import Estimand
from app.services.ports import PairedLabels, SampleLabels
from app.services.runs.pairing import align
from app.services.stored import stored_request

# Samples times classes of all runs together that are read at once: some 200 MB.
MOST_ENTRIES = 24_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRun:
    """One run with its samples.

    Attributes:
        run: The samples, classes in the order of the first run.
        fold_sizes: Of cross-validated runs, how many samples each fold has.
        weights: (n), or None.
    """

    run: Run
    fold_sizes: tuple[int, ...] | None = None
    weights: Array | None = None

    def part(self, rows: NDArray[np.intp] | slice) -> Run:
        """Some of the samples."""
        scores = self.run.scores
        some = Scores(scores.y[rows], scores.probabilities[rows])
        some.are_probabilities = scores.are_probabilities
        return Run(some, self.run.predicted[rows])

    def values(self, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
        """Values (V) of each estimand; what prevalence moves at the shares (K), if given."""
        plain = values_of(self.run, [estimand.functional for estimand in estimands], self.weights)
        if shares is None:
            return plain
        moved = [index for index, estimand in enumerate(estimands) if not estimand.insensitive]
        weights = importance(self.run.scores.y, shares)
        found = values_of(self.run, [estimands[index].functional for index in moved], weights)
        for index, values in zip(moved, found, strict=True):
            plain[index] = values
        return plain


def entries_of(records: Iterable[EvaluationRecord]) -> int:
    """Samples times classes."""
    return sum(int(record.n_samples) * record.n_classes for record in records)


async def read_outputs(
    labels: PairedLabels,
    project: str,
    records: Sequence[EvaluationRecord],
    metric: str,
    *,
    pointers: Sequence[str] | None = None,
) -> Mapping[UUID, Samples]:
    """The samples of runs that are to be judged by a metric of probabilities.

    Raises:
        IncomparableRuns: a run came without probabilities and scores, or they were not kept.
        OutOfReach: there are too many to be looked at together.
    """
    entries = entries_of(records)
    if entries > MOST_ENTRIES:
        raise OutOfReach(
            f"{metric} needs the probabilities of all samples of the runs, and {entries} of them (samples times "
            f"classes) are more than the {MOST_ENTRIES} that are looked at together; take fewer runs, or metrics of "
            "matrices"
        )
    found = await labels.read_outputs(project, [record.id for record in records])
    for index, record in enumerate(records):
        samples = found.get(record.id)
        if samples is None or samples.outputs is None:
            where = f"/evaluations/{index}" if pointers is None else pointers[index]
            raise IncomparableRuns(f"{metric} {missing_outputs(record)}", pointer=where)
    return found


def is_scored(record: EvaluationRecord) -> bool:
    """Did the run come with probabilities or scores?"""
    return stored_request(record)[0].is_scored


def missing_outputs(record: EvaluationRecord) -> str:
    """Why a metric of probabilities has nothing to work on in a run."""
    needs = f"needs the probabilities or scores of the samples, and those of {record.id} ({record.model.name})"
    if record.options.get("retain") == "none":
        return f"{needs} were not kept: it was sent with the option retain=none"
    return f"{needs} are not there: it came as {record.kind.replace('_', ' ')}"


def labels_of(outputs: Mapping[UUID, Samples]) -> dict[UUID, SampleLabels]:
    """What pairs runs; not for runs without ids."""
    return {
        identifier: SampleLabels(one.ids, one.truth, one.predicted, one.groups)
        for identifier, one in outputs.items()
        if one.ids is not None
    }


def scored_runs(
    records: Sequence[EvaluationRecord], outputs: Mapping[UUID, Samples], pointer: str = "/evaluations"
) -> list[ScoredRun]:
    """Runs with the classes in the order of the first.

    Raises:
        IncomparableLabels: two runs have different classes.
    """
    codes = align(records, pointer)[1]
    return [scored_run(record, outputs[record.id], code) for record, code in zip(records, codes, strict=True)]


def scored_run(record: EvaluationRecord, samples: Samples, code: NDArray[np.intp] | None = None) -> ScoredRun:
    """One run; ``code`` (K) says where each of its classes stands."""
    places = np.arange(record.n_classes) if code is None else code
    truth, predicted = places[samples.truth], places[samples.predicted]
    if samples.outputs is None:
        raise ValueError(f"{record.id} has no probabilities or scores")
    if samples.outputs.ndim == 2:
        # Column p of the result is the class that stands there.
        scores = Scores(truth, samples.outputs[:, np.argsort(places)])
    else:
        positive = places[1 if record.positive is None else record.positive]
        # The kernel's scores are higher for class 1.
        scores = Scores.of_scores(truth, samples.outputs if positive == 1 else -samples.outputs)
    return ScoredRun(Run(scores, predicted), samples.fold_sizes, samples.weights)
