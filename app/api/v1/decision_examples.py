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
GATES: dict[str, Any] = {
    "promotion": {
        "description": "What a model has to show before it goes into production.",
        "minimum_samples": 100,
        "rules": [
            {"metric": "h_mean", "min": 0.8},
            {"metric": "min(recall@*)", "min": 0.5, "bound": "lower"},
            {"metric": "h_mean", "not_worse_than": "baseline", "margin": 0.01, "level": 0.95},
        ],
    },
    "guardrails": {
        "rules": [
            {"metric": "recall@*", "not_worse_than": "baseline", "margin": 0.05, "bound": "upper"},
            {"metric": "error_rate", "max": 0.1, "bound": "value"},
            {"metric": "accuracy", "better_than": "baseline"},
        ]
    },
}
CHECKS: dict[str, Any] = {"against a baseline": {"evaluation": FIRST, "baseline": SECOND}}
