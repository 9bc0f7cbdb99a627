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
PROJECTIONS: dict[str, Any] = {
    "at deployment": {"prevalence": {"0": 0.99, "1": 0.01}, "metrics": ["accuracy", "precision@1", "h_mean"]},
    "uncertain": {"prevalence": {"1": 0.05}, "prevalence_samples": 200, "metrics": ["accuracy", "mcc"]},
    "within a range": {"prevalence_range": {"1": [0.01, 0.1]}, "metrics": ["precision@1"]},
    "sweep": {
        "sweep": {"class": "1", "from": 0.01, "to": 0.5, "steps": 20},
        "metrics": ["accuracy", "f1@1"],
        "against": SECOND,
    },
}
ESTIMATES: dict[str, Any] = {
    "predicted labels": {"predicted": {"0": 900, "1": 100}},
    "probabilities": {"probabilities": [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]], "recalibrate": True},
}
CONSISTENCY: dict[str, Any] = {
    "impossible": {"p": 100, "n": 200, "scores": {"accuracy": "0.9567", "recall": "0.8545", "specificity": "0.9734"}},
    "possible": {"p": 50, "n": 50, "scores": {"f1": "0.80", "accuracy": "0.80"}, "metrics": ["mcc", "h_mean"]},
    "classes": {"classes": {"A": 100, "B": 50, "C": 20}, "scores": {"accuracy": "0.900", "recall@C": "0.50"}},
    "folds": {"folds": [{"p": 10, "n": 20}, {"p": 11, "n": 19}], "scores": {"accuracy": "0.85", "recall": "0.75"}},
    "only the total": {"total": 57, "scores": {"recall": "0.8500", "specificity": "0.9459"}},
}
TOURNAMENTS: dict[str, Any] = {
    "two forests and a baseline": {
        "metric": "h_mean",
        "models": ["forest", {"name": "boosted", "version": "2"}, "majority"],
        "datasets": ["iris", "wine", "digits", "breast_cancer", {"name": "clinic", "split": "2026"}],
        "rope": 0.01,
        "control": "majority",
    }
}
