"""Commands about gates. The exit code of a check is its verdict."""

import argparse
import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from prevail.client import Client
from prevail.command.codes import DONE, VERDICTS, UsageError
from prevail.command.junit import junit
from prevail.command.output import emit, put, write_file, written
from prevail.operations.naming import dataset_ref
from prevail.results.decisions import Check
from prevail.results.words import rule_text

COMMANDS: Final = ("gate",)
# Of a file: what defines a gate, and what `gate show --json` says beside it.
_MEMBERS: Final = ("rules", "minimum_samples", "applies_to", "description", "name", "version", "created_at")


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands and what they take."""
    tasks = commands.add_parser("gate", help="check | put | try | show | list | delete").add_subparsers(
        dest="task", required=True, metavar="TASK"
    )
    check = tasks.add_parser(
        "check",
        parents=[common],
        help="hold a run against a gate",
        epilog="exit codes: 0 pass, 1 fail, 2 inconclusive; anything else is not a verdict",
    )
    check.add_argument("gate", metavar="GATE")
    check.add_argument("run", metavar="RUN", nargs="?", help="default: PREVAIL_RUN")
    check.add_argument("--baseline", metavar="RUN", help="needed when a rule compares with one")
    check.add_argument("--dataset", metavar="NAME[:VERSION]", help="narrows what RUN can be")
    check.add_argument("--split")
    add_outputs(check)
    check.set_defaults(carry_out=_check)

    put_gate = tasks.add_parser("put", parents=[common], help="define a gate; a change is a new version")
    put_gate.add_argument("gate", metavar="GATE")
    _add_rules(put_gate)
    put_gate.add_argument("--dataset", metavar="NAME[:VERSION]", help="the only data that it is for")
    put_gate.add_argument("--split")
    put_gate.add_argument("--description")
    put_gate.set_defaults(carry_out=_put)

    trial = tasks.add_parser("try", parents=[common], help="what rules would have said of the latest runs")
    _add_rules(trial)
    trial.add_argument("--dataset", metavar="NAME[:VERSION]", help="of the runs")
    trial.add_argument("--split")
    trial.add_argument("--latest", type=int, default=20, metavar="N", help="how many runs (default: 20)")
    trial.add_argument("--baseline", metavar="RUN", help="needed when a rule compares with one")
    trial.add_argument("--beside", metavar="GATE", help="a gate whose rules are tried too")
    trial.set_defaults(carry_out=_try)

    show = tasks.add_parser("show", parents=[common], help="the rules of a gate")
    show.add_argument("gate", metavar="GATE")
    show.add_argument("--version", type=int)
    show.set_defaults(carry_out=_show)
    tasks.add_parser("list", parents=[common], help="the gates").set_defaults(carry_out=_list)
    delete = tasks.add_parser("delete", parents=[common], help="end a gate; its versions and checks stay")
    delete.add_argument("gate", metavar="GATE")
    delete.set_defaults(carry_out=_delete)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="JSON, in place of rules")
    parser.add_argument("--min-samples", type=int, metavar="N")
    parser.add_argument("--min", action="append", default=[], metavar="METRIC=X", help="the whole interval is above")
    parser.add_argument("--max", action="append", default=[], metavar="METRIC=X", help="the whole interval is below")
    parser.add_argument(
        "--not-worse", action="append", default=[], metavar="METRIC=X", help="shown to be within X of the baseline"
    )
    parser.add_argument("--guard", action="append", default=[], metavar="METRIC=X", help="not worse by X for certain")
    parser.add_argument(
        "--unchanged",
        action="append",
        default=[],
        metavar="METRIC",
        help="no change of the model is claimed at the run",
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that write a verdict to files."""
    parser.add_argument("--junit", metavar="FILE", help="write the rules as test cases")
    parser.add_argument("--markdown", metavar="FILE", help="append a report, such as to $GITHUB_STEP_SUMMARY")
    parser.add_argument("--inconclusive", choices=["pass", "fail"], help="what the exit code says of it (default: 2)")


def judged(client: Client, check: Check, chosen: Namespace, *, quietly: str | None = None) -> int:
    """Write and print a verdict, or in its place the id that is all that is wanted; returns the exit code."""
    if chosen.markdown:
        write_file(chosen.markdown, written(client, check, "markdown"), append=True)
    if chosen.junit:
        write_file(chosen.junit, junit(check, tolerant=chosen.inconclusive != "fail"))
    # Last: what cannot be written ends without anything that looks like a verdict.
    if quietly is None:
        emit(client, check, chosen)
    else:
        put(quietly, chosen)
    if check.verdict == "inconclusive" and chosen.inconclusive:
        return VERDICTS[chosen.inconclusive]
    return check.exit_code


def _check(client: Client, chosen: Namespace) -> int:
    run = chosen.run or os.environ.get("PREVAIL_RUN")
    if not run:
        raise UsageError("which run? Give an id, MODEL:VERSION or TAG=VALUE, or set PREVAIL_RUN")
    check = client.check(chosen.gate, run, chosen.baseline, dataset=chosen.dataset, split=chosen.split)
    return judged(client, check, chosen)


def rule(text: str, option: str, **demand: Any) -> dict[str, Any]:
    """A rule of an option such as ``--min h_mean=0.8``; ``...`` stands for the number.

    Raises:
        UsageError: it is none.
    """
    metric, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        metric = ""
    if not metric:
        raise UsageError(f"{option}: expected METRIC=NUMBER, such as h_mean=0.8, got {text!r}")
    return {"metric": metric, **{name: value if one is ... else one for name, one in demand.items()}}


def _definition(chosen: Namespace) -> dict[str, Any]:
    """The rules of the options, or the definition in a file; what an option says beside it goes before the file."""
    rules = [
        *(rule(one, "--min", min=...) for one in chosen.min),
        *(rule(one, "--max", max=...) for one in chosen.max),
        *(rule(one, "--not-worse", not_worse_than="baseline", margin=...) for one in chosen.not_worse),
        *(rule(one, "--guard", not_worse_than="baseline", margin=..., bound="upper") for one in chosen.guard),
        *({"metric": one, "not_changed_since": "last_change"} for one in chosen.unchanged),
    ]
    if bool(rules) == bool(chosen.file):
        raise UsageError("expected either a file or rules, such as --min h_mean=0.8")
    body: Any = {"rules": rules}
    if chosen.file:
        try:
            body = json.loads(Path(chosen.file).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{chosen.file}: expected the JSON of a gate: {error}") from error
        given = body.get("rules") if isinstance(body, dict) else None
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise UsageError(f"{chosen.file}: expected an object with rules, a list of objects")
        unknown = [one for one in body if one not in _MEMBERS]
        if unknown:
            raise UsageError(f"{chosen.file}: there is no member {unknown[0]!r} of a gate, only {', '.join(_MEMBERS)}")
    place = dataset_ref(chosen.dataset, chosen.split)
    return {
        "rules": body["rules"],
        "minimum_samples": body.get("minimum_samples") if chosen.min_samples is None else chosen.min_samples,
        "applies_to": body.get("applies_to") if place is None else {"dataset": place},
        "description": body.get("description"),
    }


def _put(client: Client, chosen: Namespace) -> int:
    body = _definition(chosen)
    body["description"] = chosen.description or body["description"]
    return _shown(client, client.put_gate(chosen.gate, **body), chosen)


def _try(client: Client, chosen: Namespace) -> int:
    body = _definition(chosen)
    among = body["applies_to"] or {}
    if not isinstance(among, dict) or {*among} - {"model", "dataset"}:
        raise UsageError("rules are tried on runs of a dataset or a model, got other applies_to: name --dataset")
    found = client.try_gate(
        body["rules"],
        **among,
        minimum_samples=body["minimum_samples"],
        latest=chosen.latest,
        baseline=chosen.baseline,
        gate=chosen.beside,
    )
    if chosen.output != "text":
        emit(client, found, chosen)
        return DONE
    lines = []
    for one in found["items"]:
        model = one["evaluation"]["model"]
        name = ":".join(part for part in (model["name"], model.get("version")) if part)
        verdicts = [each["verdict"] or "none" for each in (one["tried"], one.get("saved")) if each is not None]
        lines.append("  ".join(f"{verdict:12}" for verdict in verdicts) + f"  {name}  {one['evaluation']['id']}")
    put("\n".join(lines) or "no evaluations", chosen)
    return DONE


def _show(client: Client, chosen: Namespace) -> int:
    return _shown(client, client.gate(chosen.gate, version=chosen.version), chosen)


def _shown(client: Client, gate: Any, chosen: Namespace) -> int:
    if chosen.output != "text":
        emit(client, gate, chosen)
        return DONE
    lines = [f"gate {gate['name']}, version {gate['version']}"]
    lines += [f"  {rule_text(one)}" for one in gate["rules"]]
    if gate.data.get("minimum_samples"):
        lines.append(f"  {rule_text({'minimum_samples': gate['minimum_samples']})}")
    put("\n".join(lines), chosen)
    return DONE


def _list(client: Client, chosen: Namespace) -> int:
    emit(client, client.gates(), chosen)
    return DONE


def _delete(client: Client, chosen: Namespace) -> int:
    client.delete_gate(chosen.gate)
    return DONE
