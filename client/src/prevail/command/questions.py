"""Commands that look and ask: metrics, what-if, jobs, and any request."""

import argparse
import json
import sys
from argparse import Namespace
from typing import Any, Final

from prevail.client import Client
from prevail.command import colours
from prevail.command.codes import DONE, REFUSED, VERDICTS, UsageError
from prevail.command.gates import rule
from prevail.command.output import emit, put
from prevail.command.runs import add_local, pairs

COMMANDS: Final = (
    *("metrics", "models", "datasets", "what-if", "project", "threshold", "slices", "curve", "consistency", "jobs"),
    *("job", "api", "mlflow"),
)


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands and what they take."""
    metrics = commands.add_parser("metrics", parents=[common], help="WORD searches | show KEY")
    metrics.add_argument("words", nargs="*", metavar="WORD", help="`show KEY` has all that is known of a metric")
    add_local(metrics)
    metrics.set_defaults(carry_out=_metrics)
    for name, words in (("models", "the models that have evaluations"), ("datasets", "the data sets")):
        commands.add_parser(name, parents=[common], help=words).set_defaults(carry_out=_names)

    project = _of_run(commands, common, "what-if", "metrics at another class prevalence", _project, "project")
    project.add_argument("shares", nargs="+", metavar="CLASS=SHARE")
    project.add_argument("-m", "--metric", action="append", metavar="EXPRESSION")
    threshold = _of_run(commands, common, "threshold", "the decision rule that is best for an objective", _threshold)
    threshold.add_argument("--objective", default="h_mean", metavar="EXPRESSION")
    threshold.add_argument("--min", action="append", default=[], metavar="METRIC=X", help="a constraint")
    slices = _of_run(commands, common, "slices", "for whom it is worse, by attributes of the samples", _slices)
    slices.add_argument("--by", default="", metavar="NAME,NAME", help="attributes")
    slices.add_argument("--depth", type=int, help="how many of them are crossed (default: 1)")
    slices.add_argument(
        "--bins",
        action="append",
        default=[],
        metavar="NAME=EDGES",
        help="of a number: 30,50 or 30, alone; or how many bins: 4",
    )
    slices.add_argument("-m", "--metric", action="append", metavar="EXPRESSION")
    slices.add_argument("--against", metavar="rest|overall", help="what a slice is held against (default: rest)")
    slices.add_argument("--search", metavar="EXPRESSION", help="look through all slices for those that are worse")
    for option, words in (("--min", 'as of a gate: "min(recall@D, by=site)=0.8"'), ("--max", "the same from above")):
        slices.add_argument(
            option, action="append", default=[], metavar="METRIC=X", help=f"{words}; sets the exit code"
        )
    curve = _of_run(commands, common, "curve", "the points of a curve", _curve)
    curve.add_argument("name", metavar="NAME", help="roc, pr, det, mcp, imcp, calibration, decision, cost, gain, …")
    curve.add_argument("--class", dest="of", metavar="LABEL")
    curve.add_argument("--max-points", type=int, default=100)

    consistency = commands.add_parser("consistency", parents=[common], help="could these scores come from one matrix?")
    consistency.add_argument("scores", nargs="+", metavar="METRIC=SCORE", help="as printed: accuracy=0.9567")
    consistency.add_argument("-p", type=int, help="positive samples")
    consistency.add_argument("-n", type=int, help="negative samples")
    add_local(consistency)
    consistency.set_defaults(carry_out=_consistency)

    commands.add_parser("jobs", parents=[common], help="jobs, the latest first").set_defaults(carry_out=_jobs)
    job = commands.add_parser("job", parents=[common], help="how far a job is")
    job.add_argument("id")
    job.add_argument("--wait", action="store_true", help="until it has ended; prints the result")
    job.add_argument("--cancel", action="store_true")
    job.set_defaults(carry_out=_job)
    api = commands.add_parser("api", parents=[common], help="any request, with address and key")
    api.add_argument("method", type=str.upper)
    api.add_argument("path")
    api.add_argument("-d", "--data", help="JSON; - reads the standard input")
    add_local(api)
    api.set_defaults(carry_out=_api)
    _add_mlflow(commands, common)


def _add_mlflow(commands: Any, common: argparse.ArgumentParser) -> None:
    tasks = commands.add_parser(
        "mlflow", help="gate: move an alias of MLflow's registry on a pass only"
    ).add_subparsers(dest="task", required=True, metavar="TASK")
    gate = tasks.add_parser("gate", parents=[common], help="hold a registered model against a gate")
    gate.add_argument("--model", required=True, help="its name in MLflow's registry")
    gate.add_argument("--version", required=True, help="its version there")
    gate.add_argument("--gate", required=True)
    gate.add_argument("--dataset", metavar="NAME[:VERSION]", help="on which it was evaluated (default: the latest)")
    gate.add_argument("--split")
    gate.add_argument("--alias", default="champion", help="moved on a pass; its version before is the baseline")
    gate.add_argument("--tracking-uri", help="of MLflow (default: MLFLOW_TRACKING_URI)")
    gate.set_defaults(carry_out=_mlflow_gate)


def _of_run(commands: Any, common: argparse.ArgumentParser, name: str, words: str, carry_out: Any, *before: str) -> Any:
    """A command about one run; ``before`` are names that it had, which stay for one release."""
    found = commands.add_parser(name, parents=[common], help=words, aliases=before)
    found.add_argument("run", metavar="RUN", help="an id, MODEL:VERSION or TAG=VALUE")
    found.add_argument("--dataset", metavar="NAME[:VERSION]", help="narrows what RUN can be")
    found.add_argument("--split")
    found.set_defaults(carry_out=carry_out)
    return found


def _metrics(client: Client, chosen: Namespace) -> int:
    match chosen.words:
        case ["show", key]:
            emit(client, client.metric(key), chosen)
        case [] | [_]:
            found = client.metrics(*chosen.words)
            if chosen.output == "text":
                width = max((len(one["key"]) for one in found), default=0)
                lines = [f"{one['key']:{width}}  {one['name']}" for one in found]
                put("\n".join(lines) or "no metric has this in its names", chosen)
            else:
                emit(client, found, chosen)
        case _:
            raise UsageError("expected nothing, a word, or: show KEY")
    return DONE


def _names(client: Client, chosen: Namespace) -> int:
    emit(client, client.models() if chosen.command == "models" else client.datasets(), chosen)
    return DONE


def _numbers(texts: list[str]) -> dict[str, float]:
    try:
        return {key: float(value) for key, value in pairs(texts, of_metrics=True).items()}
    except ValueError as error:
        raise UsageError(f"expected numbers: {error}") from error


def _place(chosen: Namespace) -> dict[str, Any]:
    return {"dataset": chosen.dataset, "split": chosen.split}


def _project(client: Client, chosen: Namespace) -> int:
    options = {} if chosen.metric is None else {"metrics": chosen.metric}
    emit(client, client.project(chosen.run, prevalence=_numbers(chosen.shares), **_place(chosen), **options), chosen)
    return DONE


def _threshold(client: Client, chosen: Namespace) -> int:
    constraints = [{"metric": metric, "min": value} for metric, value in _numbers(chosen.min).items()]
    emit(client, client.threshold(chosen.run, chosen.objective, constraints=constraints, **_place(chosen)), chosen)
    return DONE


def _slices(client: Client, chosen: Namespace) -> int:
    given = {
        "depth": chosen.depth,
        "bins": {name: _edges(text) for name, text in pairs(chosen.bins).items()} or None,
        "metrics": chosen.metric,
        "reference": chosen.against,
        "search": None if chosen.search is None else {"metric": chosen.search},
    }
    options = {name: value for name, value in given.items() if value is not None}
    by = [name for name in chosen.by.split(",") if name]
    rules = [*(rule(one, "--min", min=...) for one in chosen.min), *(rule(one, "--max", max=...) for one in chosen.max)]
    emit(client, client.slices(chosen.run, by, **_place(chosen), **options), chosen)
    return _tried(client, rules, chosen) if rules else DONE


def _tried(client: Client, rules: list[dict[str, Any]], chosen: Namespace) -> int:
    """Hold the run against rules of which no gate is made; returns the exit code."""
    (found,) = client.try_gate(rules, chosen.dataset, run=chosen.run, split=chosen.split)["items"]
    tried = found["tried"]
    if tried["verdict"] is None:
        print(f"prevail: {tried['reason']}", file=sys.stderr)
        return REFUSED
    text = "\n".join(f"{one['verdict']}: {one['message']}" for one in tried["results"])
    if chosen.output == "text" and not chosen.write:
        put(text, chosen)
    else:
        print(colours.plain(text), file=sys.stderr)
    return VERDICTS[tried["verdict"]]


def _edges(text: str) -> list[float] | int:
    """Edges of bins, or how many bins."""
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",") if edge]
    except ValueError as error:
        raise UsageError(f"--bins: expected numbers: {error}") from error


def _curve(client: Client, chosen: Namespace) -> int:
    points = client.curve(chosen.run, chosen.name, of=chosen.of, max_points=chosen.max_points, **_place(chosen))
    emit(client, points, chosen)
    return DONE


def _consistency(client: Client, chosen: Namespace) -> int:
    sizes = {name: value for name, value in (("p", chosen.p), ("n", chosen.n)) if value is not None}
    emit(client, client.consistency(pairs(chosen.scores, of_metrics=True), **sizes), chosen)
    return DONE


def _jobs(client: Client, chosen: Namespace) -> int:
    emit(client, client.jobs(limit=50), chosen)
    return DONE


def _job(client: Client, chosen: Namespace) -> int:
    if chosen.cancel:
        client.cancel(chosen.id)
    emit(client, client.wait(chosen.id) if chosen.wait else client.job(chosen.id), chosen)
    return DONE


def _api(client: Client, chosen: Namespace) -> int:
    body = None
    if chosen.data is not None:
        try:
            body = json.loads(sys.stdin.read() if chosen.data == "-" else chosen.data)
        except ValueError as error:
            raise UsageError(f"--data: expected JSON: {error}") from error
    put(client.request(chosen.method, chosen.path, json=body).text, chosen)
    return DONE


def _mlflow_gate(client: Client, chosen: Namespace) -> int:
    from prevail.mlflow.gate import hold

    check = hold(
        client,
        model=chosen.model,
        version=chosen.version,
        gate=chosen.gate,
        dataset=chosen.dataset,
        split=chosen.split,
        alias=chosen.alias,
        tracking_uri=chosen.tracking_uri,
    )
    emit(client, check, chosen)
    return check.exit_code
