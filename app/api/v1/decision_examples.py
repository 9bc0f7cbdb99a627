"""Examples of comparisons, gates and projections. The tests send each to a running service with ids of its own."""

from typing import Any

# Stand for ids of evaluations that exist: the tests put their own in their place.
FIRST = "01900000-0000-7000-8000-000000000001"
SECOND = "01900000-0000-7000-8000-000000000002"

COMPARISONS: dict[str, Any] = {
    "two runs": {
        "evaluations": [FIRST, SECOND],
        "metrics": ["h_mean", "accuracy", "recall@*", "min(recall@*)"],
        "rope": 0.01,
        "level": 0.95,
    },
    "against a baseline": {
        "evaluations": [FIRST, SECOND],
        "baseline": SECOND,
        "paired": "auto",
        "multiplicity": "holm",
        "seed": 0,
    },
}
