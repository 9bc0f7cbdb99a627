"""Does every stored value still follow from what is stored?"""

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import DomainError
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.kinds import task_of
from app.domain.inputs.samples import Samples
from app.services.ports import Archive, Archived

# Values come from the same arithmetic, by whatever build of numpy: what differs by more has another cause.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_AT_ONCE: Final = 200

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """An evaluation of which everything is at hand."""

    record: EvaluationRecord
    samples: Samples | None


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What is found of an evaluation now.

    Attributes:
        values: Empty where they cannot be computed.
        revision: Of the catalogue, for that kind of input.
        refused: Why they cannot be computed.
    """

    values: Values
    revision: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """What does not follow.

    Attributes:
        what: A metric, `counts` or `samples`.
    """

    evaluation: UUID
    what: str
    stored: float | None
    found: float | None
    reason: str

    def __str__(self) -> str:
        """In one line."""
        return f"{self.evaluation}  {self.what}: {self.reason}"


@dataclass(slots=True)
class Verdict:
    """What was found.

    Attributes:
        evaluations: How many were looked at.
        values: How many of their values.
        of_earlier_catalogue: Evaluations whose values differ and were stored by another revision of the catalogue: a
            definition was mended since.
        wrong: How many evaluations have something that does not follow.
    """

    evaluations: int = 0
    values: int = 0
    of_earlier_catalogue: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Checker:
    """Computes every stored value again from the stored input.

    Attributes:
        archive: Where it is read from.
        recompute: Values of some evaluations from their inputs.
    """

    archive: Archive
    recompute: Callable[[Sequence[Checked]], Sequence[Recomputed]]

    async def check(self, project: str, tell: Callable[[Discrepancy], None]) -> Verdict:
        """Look at all evaluations of a project; `tell` is told of everything that does not follow."""
        verdict = Verdict()
        async for found in self._read(project):
            checked = []
            for one in found:
                samples, missing = await self._samples(project, one)
                if missing is not None:
                    verdict.wrong += 1
                    verdict.evaluations += 1
                    tell(missing)
                else:
                    checked.append(Checked(one.record, samples))
            for whole, again in zip(checked, self.recompute(checked), strict=True):
                verdict.evaluations += 1
                verdict.values += len(whole.record.values)
                self._judge(whole, again, verdict, tell)
        return verdict

    async def _read(self, project: str) -> AsyncIterator[Sequence[Archived]]:
        newest = await self.archive.newest(project)
        after = UUID(int=0)
        while newest is not None:
            found = await self.archive.evaluations(project, after, newest, _AT_ONCE)
            if not found:
                break
            plain = [one for one in found if not one.columns]
            yield plain
            for one in found:
                # One at a time: samples can be large.
                if one.columns:
                    yield [one]
            after = found[-1].record.id

    async def _samples(self, project: str, one: Archived) -> tuple[Samples | None, Discrepancy | None]:
        if not one.columns:
            return None, None
        columns: dict[bytes, NDArray[Any]] = {}
        async for group in self.archive.columns(project, sorted(set(one.columns.values()))):
            columns |= {digest: column.values for digest, column in group.items()}
        absent = [name for name, digest in one.columns.items() if digest not in columns]
        if absent:
            reason = f"the column {absent[0]} is not there"
            return None, Discrepancy(one.record.id, "samples", None, None, reason)
        parts: dict[str, Any] = {name: columns[digest] for name, digest in one.columns.items()}
        return Samples(**parts, fold_sizes=one.fold_sizes), None

    def _judge(self, one: Checked, again: Recomputed, verdict: Verdict, tell: Callable[[Discrepancy], None]) -> None:
        record = one.record
        found = [*_of_counts(one), *_of_values(record, again)]
        if not found:
            return
        if record.revision != again.revision and all(each.what in record.values for each in found):
            verdict.of_earlier_catalogue += 1
            return
        verdict.wrong += 1
        for each in found:
            tell(each)


def _of_values(record: EvaluationRecord, again: Recomputed) -> list[Discrepancy]:
    if again.refused is not None:
        return [Discrepancy(record.id, "values", None, None, f"they cannot be computed: {again.refused}")]
    found = []
    for key, stored in record.values.items():
        if key not in again.values:
            found.append(Discrepancy(record.id, key, stored, None, f"stored {_shown(stored)}, does not apply"))
        elif not _same(stored, again.values[key]):
            now = again.values[key]
            reason = f"stored {_shown(stored)}, computed {_shown(now)}"
            found.append(Discrepancy(record.id, key, stored, now, reason))
    if record.revision == again.revision:
        absent = again.values.keys() - record.values.keys()
        found += [
            Discrepancy(record.id, key, None, again.values[key], f"not stored, computed {_shown(again.values[key])}")
            for key in sorted(absent)
        ]
    return found


def _of_counts(one: Checked) -> list[Discrepancy]:
    """A matrix of classes is that of its samples, and the sum of its folds."""
    record, found = one.record, []
    if record.fold_counts is not None and not np.allclose(record.fold_counts.sum(axis=0), record.counts):
        found.append(Discrepancy(record.id, "counts", None, None, "they are not the sum of the folds"))
    samples = one.samples
    if samples is not None and task_of(record.kind, record.extra) is None:
        counts = np.zeros(record.counts.shape)
        weights = 1.0 if samples.weights is None else samples.weights
        np.add.at(counts, (samples.truth, samples.predicted), weights)
        if not np.allclose(counts, record.counts):
            found.append(Discrepancy(record.id, "counts", None, None, "they are not those of the samples"))
    return found


def _same(stored: float | None, now: float | None) -> bool:
    if stored is None or now is None:
        return stored is now
    return math.isclose(stored, now, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else repr(value)


def refused(error: DomainError, revision: str) -> Recomputed:
    """What is said of an input that is refused now."""
    return Recomputed({}, revision, error.detail)
