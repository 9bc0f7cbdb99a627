"""Evaluations that are named by what they are of, in place of their ids."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.domain.errors import NotFound
from app.domain.evaluation import EvaluationQuery, Reference
from app.services.ports.evaluations import EvaluationStore

# How a run is named where one is asked for.
Named = UUID | Reference


async def identified(
    store: EvaluationStore, project: str, named: Sequence[Named], pointers: Sequence[str]
) -> list[UUID]:
    """The ids of what is named: of a reference that of the latest evaluation that matches.

    Raises:
        NotFound: nothing matches; its pointer is that of the reference.
    """
    found = []
    for one, pointer in zip(named, pointers, strict=True):
        found.append(one if isinstance(one, UUID) else await _latest(store, project, one, pointer))
    return found


async def _latest(store: EvaluationStore, project: str, reference: Reference, pointer: str) -> UUID:
    query = EvaluationQuery(tags=reference.tags, limit=1)
    if (model := reference.model) is not None:
        query = replace(query, model=model.name, model_version=model.version)
    if (dataset := reference.dataset) is not None:
        query = replace(query, dataset=dataset.name, dataset_version=dataset.version, split=dataset.split)
    page = await store.page(project, query)
    if not page.items:
        raise NotFound(f"there is no evaluation of {reference}", pointer=pointer)
    return page.items[0].id
