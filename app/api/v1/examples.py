"""Examples of the OpenAPI document. The tests send each of them to a running service."""

from typing import Any

TUMOURS: dict[str, Any] = {
    "model": {"name": "tumor-rf", "version": "7"},
    "dataset": {"name": "hartwig", "version": "2022-08", "split": "test"},
    "tags": {"stage": "candidate", "git": "a1b2c3"},
    "input": {
        "kind": "confusion_matrix",
        "labels": ["A", "B", "C", "D"],
        "orientation": "actual_rows",
        "matrix": [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]],
    },
    "options": {"metrics": ["h_mean", "f_beta(beta=2)@D", "gps(recall@*, precision@D)"], "level": 0.95},
}
SCREENING: dict[str, Any] = {
    "model": {"name": "screening", "version": "2"},
    "dataset": {"name": "clinic", "split": "2026"},
    "input": {"kind": "binary_counts", "tp": 40, "fn": 10, "fp": 5, "tn": 45, "negative": "healthy", "positive": "ill"},
}
LABELS: dict[str, Any] = {
    "model": {"name": "pets"},
    "dataset": {"name": "photos"},
    "input": {
        "kind": "predictions",
        "y_true": ["cat", "dog", "dog", "bird", "cat", "dog"],
        "y_pred": ["cat", "dog", "cat", "bird", "cat", "dog"],
    },
}
FOLDS: dict[str, Any] = {
    "model": {"name": "pets", "version": "cv"},
    "dataset": {"name": "photos"},
    "input": {
        "kind": "folds",
        "folds": [
            {"kind": "confusion_matrix", "matrix": [[45, 5], [4, 46]]},
            {"kind": "confusion_matrix", "matrix": [[43, 7], [6, 44]]},
            {"kind": "confusion_matrix", "matrix": [[47, 3], [5, 45]]},
        ],
    },
}
PROBABILITIES: dict[str, Any] = {
    "model": {"name": "pets", "version": "soft"},
    "dataset": {"name": "photos"},
    "input": {
        "kind": "probabilities",
        "y_true": ["bird", "cat", "cat", "dog", "dog", "dog"],
        "probabilities": [
            [0.8, 0.1, 0.1],
            [0.1, 0.6, 0.3],
            [0.2, 0.5, 0.3],
            [0.1, 0.2, 0.7],
            [0.3, 0.4, 0.3],
            [0.0, 0.1, 0.9],
        ],
        "labels": ["bird", "cat", "dog"],
        "sample_ids": [1, 2, 3, 4, 5, 6],
    },
    "options": {"metrics": ["roc_auc@*", "log_loss(clip=0.001)"], "retain": "full"},
}
PATIENTS: dict[str, Any] = {
    "model": {"name": "lesions", "version": "2"},
    "dataset": {"name": "clinic", "split": "images of 2026"},
    "input": {
        "kind": "predictions",
        "y_true": ["mole", "mole", "melanoma", "melanoma", "mole", "melanoma", "mole", "mole"],
        "y_pred": ["mole", "mole", "melanoma", "mole", "mole", "melanoma", "melanoma", "mole"],
        "group_ids": [
            "patient 1",
            "patient 1",
            "patient 2",
            "patient 2",
            "patient 3",
            "patient 3",
            "patient 4",
            "patient 4",
        ],
    },
}
SCORES: dict[str, Any] = {
    "model": {"name": "screening", "version": "3"},
    "dataset": {"name": "clinic", "split": "2026"},
    "input": {
        "kind": "scores",
        "y_true": ["healthy", "ill", "ill", "healthy", "ill", "healthy"],
        "scores": [-1.2, 0.3, 2.1, 0.4, 1.7, -0.6],
        "labels": ["healthy", "ill"],
        "threshold": 0.35,
    },
}
EVALUATIONS = {
    "confusion matrix": TUMOURS,
    "binary counts": SCREENING,
    "predictions": LABELS,
    "samples in groups": PATIENTS,
    "folds": FOLDS,
    "probabilities": PROBABILITIES,
    "scores": SCORES,
}
COMPUTATIONS = {
    "confusion matrix": {"input": TUMOURS["input"], "options": TUMOURS["options"]},
    "interpretation": {"input": SCREENING["input"], "options": {"interpretation": True}},
    "rates": {
        "input": {"kind": "confusion_matrix", "matrix": [[0.9, 0.1], [0.2, 0.8]], "normalized": True},
        "options": {"metrics": ["h_mean"]},
    },
}
BATCHES = {"two evaluations": {"evaluations": [TUMOURS, SCREENING]}}
TAGS = {"promoted": {"tags": {"stage": "production"}}}
RECOMMENDATIONS = {
    "rare class": {
        "task": "classification",
        "classes": "multiclass",
        "balanced": False,
        "error_priority": "both",
        "chance_corrected": False,
        "graphical": False,
        "inputs": ["matrix"],
    }
}
BOUNDS = {
    "critical recall": {"classes": 35, "weak": 1, "max_recall": 1, "target": 0.8},
    "one weak class": {"classes": 4, "weak": 1, "max_recall": 1, "weak_recall": 0.16},
    "known recalls": {"recalls": [1, 1, 1, 0.16]},
}
THRESHOLDS = {
    "balanced": {"objective": "h_mean"},
    "with a constraint": {"objective": "mcc", "constraints": [{"metric": "min(recall@*)", "min": 0.5}]},
}
