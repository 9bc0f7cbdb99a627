"""Seeds of what is simulated."""

from app.kernel.uncertainty.draws import seed_of

# Seeds up to here survive JSON readers that know doubles only.
_SEED_BITS = 53


def chosen_seed(seed: int | None, *content: object) -> int:
    """The seed asked for, or one that the same content always gives."""
    return seed if seed is not None else seed_of(*content) >> (63 - _SEED_BITS)
