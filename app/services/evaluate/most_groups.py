"""How many groups samples may come in that go by."""

from typing import Final

from app.domain.data import MOST_GROUPS
from app.domain.errors import TooLarge

_DATA: Final = "/input/data"
# Of each group what it adds to the error of an area, of how many samples and members.
_BYTES_OF_AREA: Final = 24


def check_groups(n_groups: int, orders: int, held: int, budget: int) -> None:
    """Whether sums within groups are not too much.

    Args:
        n_groups: So far.
        orders: Of the samples, each of which has something of every group.
        held: Bytes that the sums take besides.
        budget: Bytes that they may take.

    Raises:
        TooLarge: there are too many groups, or they take too much.
    """
    if n_groups > MOST_GROUPS:
        raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {n_groups} or more", pointer=_DATA)
    taken = held + _BYTES_OF_AREA * n_groups * orders
    if taken > budget:
        raise TooLarge(
            f"expected groups that take at most {budget} bytes (half of PREVAIL_DATA_MEMORY_BYTES), got {n_groups}, "
            f"which take {taken}",
            pointer=_DATA,
        )
