"""What is made of the pieces of data, here or by workers of a cluster: in the order of the data either way."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from app.api.bodies.files.pieces import Piece
from app.domain.errors import InvalidInput
from app.services.ports.cluster import Workers
from app.services.processes.progress import progressed

Made = TypeVar("Made")
# Bytes of what is made of a piece by a process of a cluster; what is larger is made where it is needed.
MOST_TRAVELLING: Final = 128 << 20


def made_of(
    pieces: Sequence[Piece],
    workers: Workers | None,
    apart: Callable[[Piece], Made],
    here: Callable[[Piece], Made],
    travels: Callable[[Piece], bool] = lambda _: True,
) -> Iterator[Made]:
    """What is made of each piece.

    Args:
        pieces: Of the data, in order.
        workers: None: everything is done here.
        apart: Makes it in another process.
        here: Makes it here, where it is known what came before; perhaps only while it is gone through.
        travels: Whether what is made of a piece is small enough to come from elsewhere.

    Raises:
        DomainError: what is wrong with the first piece with which something is.
    """
    if workers is None:
        yield from map(here, pieces)
        return
    results = workers.in_order(apart, filter(travels, pieces))
    for piece in pieces:
        if not travels(piece):
            yield here(piece)
            continue
        try:
            made = next(results)
        except InvalidInput:
            # Here it is known how many rows come before it, so that the fault says which row it is.
            yield here(piece)
            raise
        progressed(piece.stop, piece.total)
        yield made


def travels(piece: Piece, numbers: int) -> bool:
    """Is what is made of a piece small, so many numbers of a row? Of files that do not say how many rows they have, a
    number takes 8 bytes.
    """
    size = piece.stop - piece.start if piece.rows is None else 8 * piece.rows * numbers
    return size <= MOST_TRAVELLING
