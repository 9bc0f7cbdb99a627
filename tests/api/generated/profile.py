"""How many examples are made: few in every run of the tests, twenty times as many on demand (`make fuzz`)."""

import os

from hypothesis import HealthCheck, Phase, settings

# PREVAIL is the prefix of the service's own settings, so this one has another.
FACTOR = float(os.environ.get("FUZZ_FACTOR", "1"))
LONG = FACTOR > 1
EXAMPLES = 12 * FACTOR


def generated(share: float = 1.0) -> settings:
    """The settings of a test that takes this share of the usual number of examples.

    The usual run is the same every time. The long one looks for something new, and makes what it finds small.
    """
    return settings(
        max_examples=max(int(share * EXAMPLES), 1),
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if LONG else [])],
        suppress_health_check=list(HealthCheck),
    )
