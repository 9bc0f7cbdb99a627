"""What a gate says of runs, without a server."""

from typing import Any

import numpy as np

from app.api.answers import write_json
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.rules import definition_of
from app.kernel.compare.gates import Verdict
from app.services.gate.gate_check import check_gate
from app.services.gate.rule_estimates import rule_estimands
from app.services.runs.aligned import Runs
from app.services.runs.reading import KeptSamples


def kept(matrix: Any, model: str = "m", dataset: str = "d") -> EvaluationRecord:
    counts = np.array(matrix)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef(model),
        dataset=DatasetRef(dataset),
        kind="confusion_matrix",
        labels=tuple(map(str, range(len(counts)))),
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def rule(metric: str, bound: str = "lower", level: float = 0.95, **demand: Any) -> dict[str, Any]:
    return {"metric": metric, **demand, "bound": bound, "level": level}


def check(stated: dict[str, Any], *records: EvaluationRecord) -> Any:
    """Verdict and results for a candidate, and a baseline if there is one."""
    definition, runs = definition_of({"rules": [stated]}), Runs.align(records, "/baseline").pair(KeptSamples())
    return check_gate(definition, rule_estimands(definition, runs), runs)


def test_a_difference_at_the_margin_is_inconclusive_and_can_be_written() -> None:
    candidate, baseline = kept([[170, 30], [30, 170]]), kept([[160, 40], [40, 160]], "b", "other")
    stated = rule("accuracy", better_than="baseline", margin=0.05)
    found = check(stated, candidate, baseline)
    (result,) = found.results
    assert found.verdict is Verdict.INCONCLUSIVE
    assert result.needed_samples is None
    assert "no number of samples settles it" in result.message
    assert write_json(result)


def test_a_value_at_the_margin_has_reached_it() -> None:
    candidate, baseline = kept([[170, 30], [30, 170]]), kept([[160, 40], [40, 160]], "b", "other")
    stated = rule("accuracy", "value", better_than="baseline", margin=0.05)
    assert check(stated, candidate, baseline).verdict is Verdict.PASS
