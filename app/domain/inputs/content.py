"""What the entries of a matrix are, and what is noted of an input beside its numbers."""

from enum import StrEnum


class Content(StrEnum):
    """What the entries of a matrix are."""

    counts = "counts"
    weights = "weights"
    rates = "rates"


# Among the facts of an input whose samples come in groups: how many groups.
GROUPS_FACT = "n_groups"
