"""Evaluations of which one slice is looked at: whatever is read of them is of the samples in it alone."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast
from uuid import UUID

from app.domain.errors import NoSamples
from app.domain.evaluation import EvaluationQuery, EvaluationRecord, EvaluationSummary, Page, Position
from app.domain.expressions.conditions import Slice, text_of
from app.domain.inputs.content import SLICE_FACT, SliceFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.slices import attributes_of, places_of, restricted
from app.services.ports import EvaluationStore
from app.services.stored import of_part

# The parameter of addresses.
SLICE: Final = "slice"


class SlicedStore:
    """Reads of an evaluation store, restricted to a slice of every evaluation."""

    def __init__(self, store: EvaluationStore, where: Slice) -> None:
        self._store, self._where = store, where
        # One request reads the same evaluation several times.
        self._known: dict[UUID, EvaluationRecord] = {}

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """Return the record of the slice, or None when the project has none of that id.

        Raises:
            InvalidInput: the samples have no such attributes, or none is in the slice.
            NoSamples: the samples were not saved.
        """
        if identifier not in self._known:
            whole = await self._store.get(project, identifier)
            if whole is None:
                return None
            samples = await self._store.read_samples(project, identifier)
            if samples is None:
                raise NoSamples(
                    f"expected saved samples with attributes, of {identifier} there are none", pointer=SLICE
                )
            some = await asyncio.to_thread(self._restricted, replace(whole, samples=samples))
            self._known[identifier] = replace(of_part(whole, some), values={})
        return self._known[identifier]

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Return whole evaluations, by which a reference is told."""
        return await self._store.page(project, query)

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        """Return the samples of the slice."""
        record = await self.get(project, identifier)
        return None if record is None else record.samples

    async def read_part(self, _: str, __: UUID) -> Mapping[str, Any] | None:
        """Return None: of samples that are not saved there are no slices."""
        return None

    def _restricted(self, source: MatrixInput) -> MatrixInput:
        places = places_of(source, self._where, SLICE)
        some = restricted(source, places)
        size = next(one.codes.size for one in attributes_of(source, SLICE).values())
        facts = SliceFacts(where=text_of(self._where), size=places.size, of=size)
        return replace(some, facts={**some.facts, SLICE_FACT: facts})


def sliced_store(store: EvaluationStore, where: Slice) -> EvaluationStore:
    """Return an evaluation store of which nothing is asked but what reads one evaluation, restricted to a slice."""
    return cast(EvaluationStore, SlicedStore(store, where))
