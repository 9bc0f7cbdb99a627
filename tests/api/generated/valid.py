"""Generated requests made right where their schema cannot say what is right.

JSON Schema knows one member at a time. What holds between them (equal lengths, one of two members, classes that the
evaluation has, runs that exist) is brought about here, from what was generated.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from schemathesis.checks import CheckFunction
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
    use_after_free,
)

from app.api.plots.catalogue import plot_list
from app.api.plots.registry import Subject
from app.domain.errors import InvalidExpression
from app.domain.expressions.expressions import parse_for_any_classes
from app.domain.inputs.labels import fault_of_name, normalized
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.expression import bounds
from tests.api.generated.kept import DATASETS, MODELS, PROBABILITIES, ROWS, Kept
from tests.api.generated.valid_inputs import cycled, make_valid_input

Json = dict[str, Any]
# Of what is kept, which are classes.
PLOTS: dict[str, Sequence[str]] = {
    plot.name: plot.parameters
    for plot in plot_list().items
    if plot.of is Subject.EVALUATION and "ranking" not in plot.needs and "clustering" not in plot.needs
}
# Of schemathesis; its parts are any JSON.
Case = Any


def operation_id(case: Case) -> str:
    return str(case.operation.definition.raw["operationId"])


def is_positive(case: Case) -> bool:
    """Is all of it as the document wants it?"""
    return case.meta is not None and case.meta.generation.mode.is_positive


def left_out(case: Case) -> list[CheckFunction]:
    """Checks that an operation cannot pass, each for its reason."""
    if operation_id(case) == "createEvaluations":
        # Every evaluation of a batch fails on its own, with a status of its own in a 207.
        return [negative_data_rejection]
    if operation_id(case) == "getKey":
        # A key that is revoked stays, for those who ask who had which.
        return [use_after_free]
    if case.media_type == "multipart/form-data":
        # A file is bytes to the document; what it has to hold stands in words. `test_files` sends right ones.
        return [positive_data_acceptance]
    return []


def fill_addresses(case: Case, kept: Kept) -> None:
    """Let an address lead to something that is there, unless it is what is wrong or what is there would be removed."""
    path = None if case.meta is None else case.meta.components.get(ParameterLocation.PATH)
    if not case.path_parameters or (path is not None and path.mode.is_negative) or case.method == "DELETE":
        return
    if operation_id(case) in ("putGate", "putWebhook", "getMetric", "getProblemType"):
        return
    if "form" in case.path_parameters:
        case.path_parameters["identifier"] = _identifier(operation_id(case), kept)
        # Of the other kind of comparison, and of one that explains, there is none here.
        if case.path_parameters["name"] in ("critical_difference", "causes") and "model" not in case.path_parameters:
            case.path_parameters["name"] = "differences"
        if "gate" in case.path_parameters:
            case.path_parameters["gate"] = kept.gate
        return
    if operation_id(case) in ("getModel", "getDataset"):
        case.path_parameters["name"] = MODELS[0] if operation_id(case) == "getModel" else DATASETS[0]
        return
    if "name" in case.path_parameters:
        case.path_parameters["name"] = kept.gate
    if "identifier" in case.path_parameters:
        case.path_parameters["identifier"] = _identifier(operation_id(case), kept)


def _identifier(operation: str, kept: Kept) -> str:
    return {
        "getCheck": kept.check,
        "sliceEvaluation": kept.by_probabilities,
        "retryDelivery": kept.check,
        "getComparison": kept.comparison,
        "getJob": kept.job,
        "getJobResult": kept.job,
        "getKey": kept.key,
        "rotateKey": kept.key,
        "getCurve": kept.by_probabilities,
        "getEvaluationPlot": kept.by_probabilities,
        "getSlicesPlot": kept.by_probabilities,
        "getComparisonPlot": kept.comparison,
        "getCheckPlot": kept.check,
        "getComparisonReport": kept.comparison,
        "findThreshold": kept.by_probabilities,
        "estimatePrevalence": kept.by_probabilities,
    }.get(operation, kept.runs[0])


def make_valid(case: Case, kept: Kept) -> None:
    """Make a request right that is right member by member."""
    if case.query:
        # A page gives it; none can be made up.
        case.query.pop("cursor", None)
        # Which attributes there are is not known here.
        case.query.pop("slice", None)
        if operation_id(case) != "listEvaluations":
            # Of which kind the evaluation is, and so what may be chosen, is not known here.
            case.query.pop("metrics", None)
    if operation_id(case) == "getSlicesPlot":
        case.query = {**(case.query or {}), "by": ["site", "shift"]}
        # Which of them are rates is not known here.
        case.query.pop("metric", None)
    if case.headers and "Idempotency-Key" in case.headers:
        # One that was used goes with its request only.
        case.headers["Idempotency-Key"] = uuid4().hex
    for name in ("If-Match", "If-None-Match"):
        # A state is what an answer says; none can be made up.
        (case.headers or {}).pop(name, None)
    if not isinstance(case.body, bytes | str) and case.media_type in (None, "application/json"):
        # JSON Schema calls 5.0 an integer; the service wants whole numbers written as such.
        case.body = _whole(case.body)
        if change := _CHANGES.get(operation_id(case)):
            change(case, kept)


def _whole(value: Any) -> Any:
    match value:
        case dict():
            return {name: _whole(one) for name, one in value.items()}
        case list():
            return [_whole(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value


def make_valid_evaluation(body: Any) -> None:
    """The same of the body of an evaluation."""
    _tags(body)
    body["model"] = body.get("model") or {"name": "m"}
    body["dataset"] = body.get("dataset") or {"name": "d"}
    body["input"] = make_valid_input(body["input"])
    # A moment that is past, which only what is kept has.
    body.pop("created_at", None)
    options = body.get("options", {})
    # What they say has to go with each other and with the input.
    for name in ("interval_method", "prior", "pseudo_counts", "proportion_interval", "area_interval", "costs"):
        options.pop(name, None)
    if body["input"]["kind"] in [*Task]:
        # Most metrics of classes have no meaning for these.
        options.pop("metrics", None)
    if options.get("metrics") and body["input"]["kind"] != "probabilities":
        options["metrics"] = [text for text in options["metrics"] if _is_of_matrix(text)]
    if options.get("metrics") and "D" not in (body["input"].get("labels") or []):
        # The class of the example.
        options["metrics"] = [text for text in options["metrics"] if "@D" not in text]
    _on_one_side(options)
    if options.get("intervals") == "none":
        options.pop("alternative", None)
    if options.get("intervals") == "all":
        # Takes numbers of samples, and not weights.
        options["intervals"] = "headline"


def _is_of_matrix(metric: str) -> bool:
    try:
        parse_for_any_classes(metric, inputs=frozenset({Inputs.MATRIX}))
    except InvalidExpression:
        return False
    return True


def _on_one_side(asked: Json) -> None:
    """Limits on one side are at a level above a half."""
    if asked.get("alternative") in ("greater", "less"):
        asked["level"] = max(asked.get("level", 0.95), 0.6)


# --- operations ------------------------------------------------------------------------------------------------------


def _evaluation(case: Case, _: Kept) -> None:
    # Only data that is named is estimated.
    (case.query or {}).pop("estimate", None)
    if not _is_example(case):
        make_valid_evaluation(case.body)


def _is_example(case: Case) -> bool:
    return case.meta is not None and case.meta.phase.name.value == "examples"


def _tags(body: Json) -> None:
    """Names with nothing in them that is not seen."""
    if body.get("tags"):
        names = {name.strip() for name in body["tags"] if fault_of_name(name.strip()) is None}
        body["tags"] = dict(zip(sorted(map(normalized, names)), body["tags"].values(), strict=False))


def _new_tags(case: Case, _: Kept) -> None:
    _tags(case.body)


def _list(case: Case, _: Kept) -> None:
    """Metrics that are stored."""
    query = case.query or {}
    if "values" in str(query.get("fields")):
        query.pop("metrics", None)
    for name, value in (("sort", "-h_mean"), ("metrics", ["h_mean", "mcc"]), ("where", ["h_mean>=0.25", "mcc<1"])):
        if query.get(name) is not None:
            query[name] = value


def _removal(case: Case, kept: Kept) -> None:
    """One filter at least; nothing of what is saved passes."""
    _list(case, kept)
    case.query = {**(case.query or {}), "model": "nobody"}


def _leaderboard(case: Case, _: Kept) -> None:
    """Limits of proportions go with metrics that are some, and conditions with metrics that are stored."""
    if (case.query or {}).get("where") is not None:
        case.query["where"] = ["h_mean>=0.25", "mcc<1"]
    if "proportion_interval" in (case.query or {}):
        case.query["metric"] = "accuracy"
    if (case.query or {}).get("alternative") in ("greater", "less"):
        case.query["level"] = 0.9


def _curve(case: Case, kept: Kept) -> None:
    """Parameters that the curve is made with, a class that there is, and other runs that there are."""
    query = case.query or {}
    _fit_curve(case.path_parameters["curve"], query)
    if "with" in query:
        query["with"] = kept.by_probabilities


def _plot(case: Case, kept: Kept) -> None:
    """Parameters that the figure takes, a class that there is, and other runs that there are."""
    query = case.query or {}
    if case.path_parameters["name"] not in PLOTS:
        case.path_parameters["name"] = "confusion"
    taken = PLOTS[case.path_parameters["name"]]
    for name, value in (("class", "1"), ("with", kept.by_probabilities)):
        if name in query and name in taken:
            query[name] = value
        else:
            query.pop(name, None)


def _curve_of_input(case: Case, _: Kept) -> None:
    if _is_example(case):
        return
    case.body["input"] = PROBABILITIES
    _fit_curve(case.path_parameters["curve"], case.body)


def _fit_curve(curve: str, given: Json) -> None:
    belongs: tuple[str, ...] = {"calibration": ("form", "bins"), "decision": ("prevalence",), "roc": _OF_A_BAND}.get(
        curve, ()
    )
    if "form" in belongs and given.get("form") is not None:
        belongs = ("form",)
    if given.get("band") is None:
        belongs = tuple(name for name in belongs if name not in _OF_A_BAND)
    for name in ("form", "bins", "prevalence", *_OF_A_BAND):
        if name not in belongs:
            given.pop(name, None)
    if "class" in given:
        given["class"] = "1"
    if "band" in given and "max_points" in given:
        given["max_points"] = min(int(given["max_points"]), 2000)


_OF_A_BAND = ("band", "level", "seed")


def _of_input(change: Callable[[Case, Kept], None]) -> Callable[[Case, Kept], None]:
    """The same for a question about an input that comes with it."""

    def changed(case: Case, kept: Kept) -> None:
        if not _is_example(case):
            case.body["input"] = PROBABILITIES
            change(case, kept)

    return changed


def _threshold(case: Case, _: Kept) -> None:
    """No limits, and no guarantee, that no rule can meet: whether one does is a matter of the data; no surface, which
    needs three or four classes, and no rule for each label.
    """
    case.body.pop("surface", None)
    case.body.pop("per_label", None)
    case.body["constraints"] = [{"metric": one["metric"]} | {"min": -1e9} for one in case.body.get("constraints", [])]
    case.body.pop("guarantee", None)
    case.body["objective"] = "balanced_accuracy"
    case.body["resamples"] = 10


def _comparison(case: Case, kept: Kept) -> None:
    """Runs that there are, all different."""
    count = min(len(case.body["evaluations"]), 3)
    case.body["evaluations"] = list(kept.runs[:count])
    if case.body.get("baseline") is not None:
        case.body["baseline"] = kept.runs[0]
    # These runs have no ids of samples.
    if case.body.get("paired") in ("true", True):
        case.body["paired"] = "auto"
    case.body["draws"] = 200
    _on_one_side(case.body)
    if case.body.get("alternative") in ("greater", "less"):
        case.body["multiplicity"] = "holm"
    # And they are matrices, whose thresholds are what they are, and which have no slices.
    case.body.pop("by", None)
    if case.body.get("cost_ranges"):
        case.body["cost_ranges"].pop("best_thresholds", None)


def _merge(case: Case, kept: Kept) -> None:
    """Runs that there are, all different."""
    case.body |= {"evaluations": list(kept.runs[:2]), "model": {"name": "m"}, "dataset": {"name": "d"}}
    case.body.pop("options", None)
    _tags(case.body)


def _slices(case: Case, _: Kept) -> None:
    """By the attribute that there is."""
    case.body = {"by": ["site"]} | ({"input": PROBABILITIES} if "input" in case.body else {})


def _tournament(case: Case, _: Kept) -> None:
    """Models that all have an evaluation on all datasets."""
    case.body["models"] = list(MODELS[: max(2, min(len(case.body["models"]), len(MODELS)))])
    case.body["datasets"] = list(DATASETS)
    if case.body.get("control") is not None:
        case.body["control"] = MODELS[0]


def _check(case: Case, kept: Kept) -> None:
    case.body = {"evaluation": kept.runs[0], "baseline": kept.runs[1]}


_DEMANDS = ("min", "max", "not_worse_than", "better_than", "equivalent_to")


def _gate(case: Case, _: Kept) -> None:
    """Rules with one demand each, and what goes with it; evaluations that the gate is for by the name of a model."""
    if case.body.get("applies_to") is not None:
        case.body["applies_to"] = {"model": {"name": MODELS[0]}}
    for rule in case.body["rules"]:
        demand = next((name for name in _DEMANDS if rule.get(name) is not None), "min")
        value = rule.get(demand) if rule.get(demand) is not None else 0.5
        margin = rule.get("margin")
        for name in (*_DEMANDS, "margin", "not_changed_since"):
            rule.pop(name, None)
        if demand not in ("min", "max") or rule.get("bound") == "value":
            rule.pop("proportion_interval", None)
        if "proportion_interval" in rule:
            rule["metric"] = "accuracy"
        low, high = _range(rule["metric"])
        rule[demand] = min(max(value, low), high) if demand in ("min", "max") else value
        if rule.get("bound", "lower") != "lower" or demand == "equivalent_to":
            rule.pop("alternative", None)
        _on_one_side(rule)
        if demand not in ("min", "max"):
            rule["margin"] = min(max(margin or 0, 1e-3), 1.0, high - low)
        if demand in ("better_than", "equivalent_to") and rule.get("bound") == "upper":
            rule["bound"] = "lower"


def _range(metric: str) -> tuple[float, float]:
    """The ends of what a metric can be; of what is no metric, which is refused anyway, none."""
    try:
        low, high = bounds(parse_for_any_classes(metric, inputs=frozenset(Inputs)))
    except InvalidExpression:
        low = high = None
    return -math.inf if low is None else low, math.inf if high is None else high


def _webhook(case: Case, _: Kept) -> None:
    """An address with a host, where nothing is sent, and a secret in Base64."""
    if not _is_example(case):
        case.body["url"] = "https://hooks.example:9/"
        case.body.pop("secret", None)


def _projection(case: Case, kept: Kept) -> None:
    """One scenario, of classes that there are."""
    body = case.body
    body["metrics"] = [one for one in body.get("metrics", []) if "@" not in one or "@*" in one] or ["accuracy"]
    for name in ("prevalence", "prevalence_range", "sweep", "prevalence_samples", "against", "old_prevalence"):
        value = body.pop(name, None)
        if value is not None and not {"prevalence", "prevalence_range", "sweep"} & set(body):
            body |= _SCENARIOS.get(name, {})
    if not {"prevalence", "prevalence_range", "sweep"} & set(body):
        body["prevalence"] = {"0": 0.5}
    # That takes probabilities, and these runs are of matrices.
    body["recalibrate"] = False
    body["draws"] = 200
    _on_one_side(body)
    if "sweep" in body and operation_id(case) == "projectEvaluation":
        body["against"] = kept.runs[1]


_SCENARIOS: Final[Mapping[str, Json]] = {
    "prevalence": {"prevalence": {"1": 0.2}, "prevalence_samples": 40},
    "prevalence_range": {"prevalence_range": {"1": [0.1, 0.3]}},
    "sweep": {"sweep": {"class": "1", "from": 0.1, "to": 0.4, "steps": 5}},
}


def _estimate(case: Case, _: Kept) -> None:
    """Counts of the classes, or probabilities of them."""
    body = case.body
    if body.get("probabilities") is not None:
        rows = cycled([row or [0.5] for row in body["probabilities"]], ROWS)
        body["probabilities"] = [[row[0], 1 - row[0]] for row in rows]
        body.pop("predicted", None)
        if body.get("old_prevalence") is not None:
            body["old_prevalence"] = {"0": 0.5, "1": 0.5}
    else:
        for name in ("probabilities", "old_prevalence", "recalibrate"):
            body.pop(name, None)
        body["predicted"] = {"0": 30, "1": 20}


def _recommendation(case: Case, _: Kept) -> None:
    """Answers to the questions that the task has."""
    task = case.body.get("task", "classification")
    questions = _QUESTIONS.get(task, {"classes": ("binary", "multiclass"), "balanced": (True, False)})
    said = {name: value for name, value in case.body.items() if name in ("task", "inputs")}
    for name, answers in questions.items():
        said[name] = case.body[name] if case.body.get(name) in answers else answers[0]
    if task in ("binary", "multiclass"):
        said["classes"] = task
    case.body = said


_QUESTIONS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "multilabel": {"judged": ("labels", "samples", "whole_sets")},
    "clustering": {"known_classes": (True, False), "balanced": (True, False)},
    "ranking": {"error_priority": ("type1", "type2", "first", "order"), "fixed_cutoff": (True, False)},
    "sets": {"judged": ("items", "pixels", "classes", "whole_sets")},
}


def _upwards(case: Case, _: Kept) -> None:
    """A sweep from less to more of all classes."""
    if case.body.get("recall_sweep"):
        case.body["recall_sweep"] = {"from": 0.1, "to": 0.9}


def _bounds(case: Case, _: Kept) -> None:
    """One of the two forms, whole."""
    body = case.body
    _upwards(case, _)
    if body.get("recalls") is not None:
        for name in ("classes", "weak", "weak_recall", "max_recall"):
            body.pop(name, None)
        return
    body.pop("recalls", None)
    body["classes"] = body.get("classes") or 3
    body["weak"] = min(body.get("weak") or 1, body["classes"])
    body["target"] = body.get("target") or 0.5
    if body.get("weak_recall") is not None:
        body["weak_recall"] = min(body["weak_recall"], body.get("max_recall", 1))


def _consistency(case: Case, _: Kept) -> None:
    """One of the forms, with scores that it has."""
    form = next((name for name in ("folds", "classes", "total") if case.body.get(name) is not None), "p")
    metrics = [] if form != "p" else ["mcc"] * bool(case.body.get("metrics"))
    case.body = {
        **_REPORTS[form],
        "scores": dict(zip(("accuracy", "recall"), [*case.body["scores"].values()][:2], strict=False)),
        "rounding": case.body.get("rounding", "nearest"),
        "metrics": metrics,
    }
    if form == "classes":
        case.body["scores"] = {"accuracy": case.body["scores"]["accuracy"]}


_REPORTS: Final[Mapping[str, Json]] = {
    "p": {"p": 20, "n": 30},
    "total": {"total": 40},
    "classes": {"classes": {"A": 10, "B": 7}},
    "folds": {"folds": [{"p": 5, "n": 6}, {"p": 6, "n": 5}]},
}


def _batch(case: Case, _: Kept) -> None:
    case.body["evaluations"] = case.body["evaluations"][:5]
    for one in [] if _is_example(case) else case.body["evaluations"]:
        make_valid_evaluation(one)


def _key(case: Case, _: Kept) -> None:
    # A key of another project is none of this one's.
    case.body.pop("project", None)
    if case.body.get("rate") is not None:
        case.body["rate"] = "50/second; 1000/hour"
    if case.body.get("expires_at") is not None:
        case.body["expires_at"] = "2099-01-01T00:00:00Z"


def _trial(case: Case, kept: Kept) -> None:
    _gate(case, kept)
    case.body.pop("gate", None)
    case.body["baseline"] = kept.runs[1]
    if case.body["evaluations"].get("id") is not None:
        case.body["evaluations"] = {"id": kept.runs[0]}


_CHANGES: Final[Mapping[str, Callable[[Case, Kept], None]]] = {
    "createEvaluation": _evaluation,
    "computeMetrics": _evaluation,
    "createEvaluations": _batch,
    "mergeEvaluations": _merge,
    "sliceEvaluation": _slices,
    "sliceInput": _slices,
    "listEvaluations": _list,
    "getLatestEvaluation": _list,
    "deleteEvaluations": _removal,
    "getLeaderboard": _leaderboard,
    "changeTags": _new_tags,
    "getCurve": _curve,
    "getEvaluationPlot": _plot,
    "findThreshold": _threshold,
    "computeCurve": _curve_of_input,
    "findThresholdOfInput": _of_input(_threshold),
    "projectInput": _of_input(_projection),
    "createComparison": _comparison,
    "compareAcrossDatasets": _tournament,
    "createCheck": _check,
    "putGate": _gate,
    "tryGate": _trial,
    "projectEvaluation": _projection,
    "estimatePrevalence": _estimate,
    "boundHMean": _bounds,
    "boundHMeanOfEvaluation": _upwards,
    "recommendMetrics": _recommendation,
    "checkConsistency": _consistency,
    "createKey": _key,
    "putWebhook": _webhook,
}
