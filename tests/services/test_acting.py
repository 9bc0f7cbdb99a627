"""What a job makes has one id, however often it is worked on."""

from contextvars import copy_context
from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from app.domain.identifiers import new_id, time_of
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.services.acting import make_as, make_part
from app.services.evaluate.evaluations import NewEvaluation

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
SOURCE = MatrixInput("confusion_matrix", ("0", "1"), 1, Content.counts, np.array([[5, 1], [2, 4]]))
NEW = NewEvaluation(source=SOURCE, options=Options(), created_at=MOMENT)


def made(chosen: UUID, place: int) -> UUID:
    """The id of what a job makes at a place of a batch, in a turn of its own."""

    def turn() -> UUID:
        make_as(chosen)
        make_part(place)
        return NEW.identifier()

    return copy_context().run(turn)


def test_a_moment_of_its_own_leaves_the_id_of_a_job_the_same_in_every_turn() -> None:
    chosen = new_id()
    first = [made(chosen, place) for place in range(5)]
    assert [made(chosen, place) for place in range(5)] == first
    assert len(set(first)) == 5
    assert {time_of(one) for one in first} == {MOMENT}
