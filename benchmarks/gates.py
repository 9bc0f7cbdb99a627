"""How often a gate fails though its rules hold, by how many rules and classes can fail by chance.

Run ``python -m benchmarks.gates``. Prints Markdown: classes with one true recall, held against a floor by `recall@*` or
by one guardrail for each, a gate for all of them and as many gates of one rule each. Nothing is simulated: chances of
all numbers of right samples are added up.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.rules import definition_of
from app.kernel.compare.gates import Verdict
from app.kernel.numerics.arrays import Array
from app.services.gate.gate_check import check_gate
from app.services.gate.rule_estimates import rule_estimands
from app.services.runs.aligned import Runs
from app.services.runs.reading import KeptSamples
from benchmarks.coverage import print_table

FLOOR = 0.8
# Less probable outcomes are left out.
NOTHING = 1e-9
# Classes, samples of each, true recall of all.
DESIGNS = (
    (10, 100, 0.8),
    (10, 100, 0.82),
    (10, 500, 0.8),
    (10, 500, 0.82),
    (2, 100, 0.8),
    (30, 100, 0.8),
    (10, 100, 0.7),
)


def fails(rules: Sequence[dict[str, Any]], matrix: Array) -> bool:
    """Does a gate of these rules fail a run?"""
    record = EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind="confusion_matrix",
        labels=tuple(str(code) for code in range(len(matrix))),
        content=Content.counts,
        counts=matrix,
        revision="",
        values={},
    )
    definition, runs = definition_of({"rules": rules}), Runs.align([record]).pair(KeptSamples())
    return check_gate(definition, rule_estimands(definition, runs), runs).verdict is Verdict.FAIL


def rule(metric: str, bound: str) -> dict[str, Any]:
    return {"metric": metric, "min": FLOOR, "bound": bound, "level": 0.95}


def shares_of_fails(classes: int, size: int, recall: float) -> list[float]:
    """Of the rule on all classes, of as many guardrails, and of as many gates of which one failure is enough.

    Classes fail independently of each other, each by a number of right samples that is looked at by itself.
    """
    guardrails = [rule(f"recall@{code}", "upper") for code in range(classes)]
    asked = [rule("recall@*", "lower")], guardrails, guardrails[:1]
    counts = np.arange(size + 1)
    one = np.zeros(3)
    for right, chance in zip(counts.tolist(), binom.pmf(counts, size, recall).tolist(), strict=True):
        if chance > NOTHING:
            matrix = np.diag(np.full(classes, float(size)))
            matrix[0, [0, 1]] = right, size - right
            one += chance * np.array([fails(rules, matrix) for rules in asked])
    return [float(share) for share in 1.0 - (1.0 - one) ** classes]


def main() -> None:
    print(
        f"Share of gates that fail; all recalls are to be at least {FLOOR}. With a true recall of {FLOOR} or more "
        "every failure is false.\n"
    )
    rows = [[*design, *shares_of_fails(*design)] for design in DESIGNS]
    head = [
        "classes",
        "samples of each",
        "true recall",
        "`recall@*`, lower",
        "a guardrail each",
        "a gate each, any of them",
    ]
    print_table(head, rows)


if __name__ == "__main__":
    main()
