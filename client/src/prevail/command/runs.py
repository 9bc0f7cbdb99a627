"""Commands about evaluations: made, shown, listed, compared, ranked."""

import argparse
import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from prevail.client import Client
from prevail.command import colours
from prevail.command.codes import DONE, UsageError
from prevail.command.gates import add_outputs, judged
from prevail.command.output import MEDIA, emit, hint, put, style, written
from prevail.errors import InvalidInput, NotFound
from prevail.operations.naming import run_ref
from prevail.results.words import table_text
from prevail.uploads.inputs import column_names

COMMANDS: Final = ("evaluate", "show", "list", "compare", "merge", "leaderboard", "history", "tag", "delete", "card")
# Of a request in JSON.
_MEMBERS: Final = ("model", "dataset", "tags", "input", "options")
EVALUATE: Final = """examples:
  prevail evaluate preds.parquet --model tumor-rf:7 --dataset hartwig --split test
  prevail evaluate preds.csv --y-true label --y-pred guess --local
  prevail evaluate --data 's3://bucket/preds/*.parquet' --y-true label --y-pred guess --filter "day >= '2026-01-01'"
  echo '[[45,5],[10,40]]' | prevail evaluate -"""


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands and what they take."""
    raw = argparse.RawDescriptionHelpFormatter
    evaluate = commands.add_parser(
        "evaluate",
        parents=[common],
        epilog=EVALUATE,
        formatter_class=raw,
        help="evaluate predictions, probabilities, scores or a matrix; - reads JSON from the standard input",
    )
    evaluate.add_argument(
        "file", metavar="FILE", nargs="?", help="Parquet, Arrow, CSV or NPZ; or JSON: a matrix, an input, a request"
    )
    data = evaluate.add_argument_group("in place of FILE: files that the service reads itself")
    data.add_argument("--data", metavar="ADDRESS", help="such as s3://bucket/preds/*.parquet; or JSON: a data")
    data.add_argument("--filter", metavar="CONDITION", help="such as \"day >= '2026-01-01'\"")
    data.add_argument(
        "--format",
        choices=["parquet", "arrow", "csv", "delta", "iceberg"],
        help="taken from the end of the address when left out; or what table it is",
    )
    add_local(evaluate)
    _add_columns(evaluate)
    _add_names(evaluate)
    evaluate.add_argument("-m", "--metric", action="append", default=[], metavar="EXPRESSION", help="repeat for more")
    evaluate.add_argument("--intervals", choices=["headline", "all", "none"])
    evaluate.add_argument("--level", type=float, help="of the intervals (default: 0.95)")
    evaluate.add_argument("--seed", type=int)
    evaluate.add_argument("--gate", help="check it afterwards; the exit code is the gate's")
    evaluate.add_argument("--baseline", metavar="RUN", help="for the gate")
    evaluate.add_argument("-q", "--quiet", action="store_true", help="print the id only")
    add_outputs(evaluate)
    evaluate.set_defaults(carry_out=_evaluate, refuse=_refuse_evaluate)

    show = _of_run(commands, common, "show", "print the report of a saved evaluation", _show)
    show.add_argument("--open", action="store_true", help="the report page, where the service has one")
    listing = commands.add_parser("list", parents=[common], help="saved evaluations, the latest first")
    for name in ("model", "dataset", "split", "sort"):
        listing.add_argument(f"--{name}")
    listing.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE")
    listing.add_argument("--limit", type=int, default=50)
    listing.set_defaults(carry_out=_list)

    compare = commands.add_parser("compare", parents=[common], help="what differs between runs, and how sure that is")
    compare.add_argument("runs", nargs="+", metavar="RUN")
    compare.add_argument("-m", "--metric", action="append", metavar="EXPRESSION", help="repeat for more")
    compare.add_argument("--baseline", metavar="RUN", help="compare all with this one (default of two: the second)")
    compare.add_argument("--margin", type=float, help="differences up to this count as the same (default: 0.01)")
    compare.add_argument("--level", type=float)
    compare.add_argument("--paired", choices=["auto", "yes", "no"])
    compare.add_argument(
        "--explain", action="store_true", default=None, help="how much of a difference is class prevalence"
    )
    compare.add_argument("--by", metavar="NAME,NAME", help="attributes of samples: in each of their slices too")
    _add_place(compare)
    compare.set_defaults(carry_out=_compare)

    merge = commands.add_parser("merge", parents=[common], help="evaluate the data of several runs as one, and save it")
    merge.add_argument("runs", nargs="+", metavar="RUN")
    merge.add_argument("--folds", action="store_true", help="each run is a fold, beside the sum of all")
    _add_new_names(merge)
    merge.set_defaults(carry_out=_merge)

    board = commands.add_parser("leaderboard", parents=[common], help="the models of a data set, the best first")
    board.add_argument("dataset", metavar="DATASET")
    board.add_argument("-m", "--metric", metavar="EXPRESSION", help="usual for the kind of input when left out")
    board.add_argument("--split")
    board.add_argument("--where", action="append", default=[], metavar="CONDITION", help="such as 'mcc>=0.5'")
    board.add_argument("--limit", type=int)
    board.set_defaults(carry_out=_leaderboard)

    history = commands.add_parser("history", parents=[common], help="the values of a model over time, what changed")
    history.add_argument("model", metavar="MODEL")
    history.add_argument("--dataset", metavar="NAME[:VERSION]", required=True)
    history.add_argument("--split")
    history.add_argument("-m", "--metric", action="append", default=[], metavar="EXPRESSION", help="repeat for more")
    history.add_argument("--created-after", metavar="MOMENT", help="such as 2026-01-01")
    history.set_defaults(carry_out=_history)

    tag = _of_run(commands, common, "tag", "change tags; KEY= takes one away", _tag)
    tag.add_argument("tags", nargs="+", metavar="KEY=VALUE")
    delete = commands.add_parser("delete", parents=[common], help="delete evaluations")
    delete.add_argument("runs", nargs="+", metavar="RUN")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    _add_place(delete)
    delete.set_defaults(carry_out=_delete)
    _of_run(commands, common, "card", "a model card: metadata as `model-index`, and the report", _card)


def _of_run(commands: Any, common: argparse.ArgumentParser, name: str, words: str, carry_out: Any) -> Any:
    found = commands.add_parser(name, parents=[common], help=words)
    found.add_argument("run", metavar="RUN", help="an id, MODEL:VERSION or TAG=VALUE")
    _add_place(found)
    found.set_defaults(carry_out=carry_out)
    return found


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="NAME[:VERSION]", help="narrows what RUN can be")
    parser.add_argument("--split")


def add_local(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that need nothing that a service has saved."""
    parser.add_argument("--local", action="store_true", help="compute here; nothing is saved")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group("columns of the file, where they have other names")
    for option in ("y-true", "y-pred", "scores", "sample-id", "group-id", "weight"):
        columns.add_argument(f"--{option}", metavar="COLUMN")
    columns.add_argument("--probabilities", metavar="COLUMN,COLUMN", help="in the order of the labels")
    columns.add_argument("--attributes", metavar="COLUMN,COLUMN", help="of the samples, to make slices of")
    meaning = parser.add_argument_group("what they mean")
    meaning.add_argument("--labels", metavar="A,B", help="the classes in order")
    meaning.add_argument("--positive", metavar="LABEL")
    meaning.add_argument("--threshold", type=float)
    meaning.add_argument(
        "--renormalize", action="store_true", default=None, help="divide every row of probabilities by its sum"
    )
    meaning.add_argument("--predicted-rows", action="store_true", help="of a matrix: rows are what was predicted")


def _add_names(parser: argparse.ArgumentParser) -> None:
    names = _add_new_names(parser)
    names.add_argument("--no-store", action="store_true", help="compute only")


def _add_new_names(parser: argparse.ArgumentParser) -> Any:
    names = parser.add_argument_group("saved as")
    names.add_argument("--model", metavar="NAME[:VERSION]")
    names.add_argument("--dataset", metavar="NAME[:VERSION]")
    names.add_argument("--split")
    names.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="repeat for more")
    return names


def pairs(texts: list[str], *, of_metrics: bool = False) -> dict[str, str]:
    """KEY=VALUE, as often as it is given. Metrics end at the last sign, as f_beta(beta=2)=0.5.

    Raises:
        UsageError: there is no equals sign, or a key comes twice.
    """
    found: dict[str, str] = {}
    for one in texts:
        key, sign, value = one.rpartition("=") if of_metrics else one.partition("=")
        if not sign:
            raise UsageError(f"expected KEY=VALUE, got {one!r}")
        if key in found:
            raise UsageError(f"expected each once, {key} is there twice")
        found[key] = value
    return found


def _refuse_evaluate(chosen: Namespace) -> None:
    """Options that have no meaning together."""
    if chosen.local and chosen.gate is not None:
        raise UsageError("--local saves nothing, and a gate checks what is saved by a service: leave out one of both")
    if (chosen.file is None) == (chosen.data is None):
        raise UsageError("expected either FILE or --data ADDRESS")
    if chosen.data is None and (chosen.filter or chosen.format):
        raise UsageError("--filter and --format belong to --data")
    if chosen.gate is None and (chosen.junit or chosen.markdown or chosen.baseline or chosen.inconclusive):
        raise UsageError("--baseline, --junit, --markdown and --inconclusive belong to a gate: name it by --gate")
    if chosen.gate is not None and (chosen.model is None or chosen.dataset is None or chosen.no_store):
        raise UsageError("a gate checks what is saved: give --model and --dataset")
    if (chosen.model is None) != (chosen.dataset is None) and not chosen.no_store:
        raise UsageError("to keep an evaluation give both --model and --dataset; to compute only, --no-store")
    pairs(chosen.tag)


def _evaluate(client: Client, chosen: Namespace) -> int:
    given = _given(chosen)
    # A request in JSON has names and options of its own, which those of the command line go before.
    asked = given.pop("request", {})
    names = {name: getattr(chosen, name) or asked.get(name) for name in ("model", "dataset")}
    arguments = {
        **given,
        **names,
        "split": chosen.split,
        "tags": {**(asked.get("tags") or {}), **pairs(chosen.tag)},
        "options": asked.get("options"),
        "metrics": chosen.metric,
        "intervals": chosen.intervals,
        "level": chosen.level,
        "seed": chosen.seed,
        "store": False if chosen.no_store else None,
    }
    is_saved = all(names.values()) and not chosen.no_store
    if chosen.quiet and not is_saved:
        raise UsageError("--quiet prints the id of what is saved: give --model and --dataset")
    if not is_saved and chosen.output != "json":
        drawn = style() if chosen.output == "text" else {}
        put(client.report_of(MEDIA[chosen.output], **drawn, **arguments), chosen)
        hint("not saved; --model NAME:VERSION --dataset NAME saves it")
        return DONE
    evaluation = client.evaluate(**arguments)
    if chosen.gate is not None:
        check = client.check(chosen.gate, evaluation, _baseline(chosen))
        return judged(client, check, chosen, quietly=str(evaluation.id) if chosen.quiet else None)
    if chosen.quiet:
        put(str(evaluation.id), chosen)
    else:
        emit(client, evaluation, chosen)
        hint(f"saved as {evaluation.id}; next: prevail leaderboard {(evaluation.dataset or {}).get('name')}")
    return DONE


def _baseline(chosen: Namespace) -> Any:
    return None if chosen.baseline is None else run_ref(chosen.baseline, chosen.dataset, chosen.split)


def _given(chosen: Namespace) -> dict[str, Any]:
    """Return the input that the arguments name, as arguments of `Client.evaluate`."""
    facts: dict[str, Any] = {"positive": chosen.positive, "threshold": chosen.threshold}
    facts["renormalize"] = chosen.renormalize
    facts["labels"] = None if chosen.labels is None else chosen.labels.split(",")
    if chosen.data is not None:
        beside = {"filter": chosen.filter, "format": chosen.format}
        where = {**_data(chosen.data), **{name: value for name, value in beside.items() if value}}
        return {**facts, **_columns(chosen), "data": where}
    path = Path(chosen.file)
    if chosen.file == "-" or path.suffix.lower() == ".json":
        if any(_columns(chosen).values()):
            raise UsageError("options of columns belong to a file of rows: JSON has its arrays under our names")
        source, request = _json_input(chosen)
        if chosen.predicted_rows:
            source = {**source, "orientation": "predicted_rows"}
        return {**facts, "input": source, "request": request}
    if chosen.predicted_rows:
        raise UsageError("--predicted-rows belongs to a matrix in JSON")
    columns = _columns(chosen)
    _check_columns(path, columns)
    return {**facts, **columns, "file": path}


def _data(text: str) -> dict[str, Any]:
    """A ``data`` as the service takes it, of an address or of JSON."""
    if not text.startswith("{"):
        return {"uri": text}
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--data: expected an address, or JSON: {error}") from error
    return found


def _columns(chosen: Namespace) -> dict[str, Any]:
    lists = {name: getattr(chosen, name) for name in ("probabilities", "attributes")}
    return {
        "y_true": chosen.y_true,
        "y_pred": chosen.y_pred,
        "scores": chosen.scores,
        **{name: None if value is None else value.split(",") for name, value in lists.items()},
        "sample_ids": chosen.sample_id,
        "group_ids": chosen.group_id,
        "sample_weight": chosen.weight,
    }


def _check_columns(path: Path, columns: dict[str, Any]) -> None:
    names = column_names(path)
    wanted = [one for value in columns.values() if value for one in ([value] if isinstance(value, str) else value)]
    missing = [one for one in [*wanted, *([] if columns["y_true"] else ["y_true"])] if names and one not in names]
    # Of one column the service says what it takes it for.
    if missing and names and len(names) > 1:
        option = " Name it: --y-true COLUMN" if missing[0] == "y_true" else ""
        raise InvalidInput(
            f"{path.name} has no column {missing[0]}. It has: {', '.join(names[:20])}.{option}", code="missing_column"
        )


def _json_input(chosen: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """A matrix, an input, or what has an input in it, from a file or the standard input; and what is beside the input
    of a request.
    """
    try:
        text = sys.stdin.read() if chosen.file == "-" else Path(chosen.file).read_text(encoding="utf-8")
        text = text.removeprefix("\ufeff")
    except OSError as error:
        raise InvalidInput(f"there is no file {chosen.file}: {error.strerror}", code="no_such_file") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{chosen.file}: expected JSON as UTF-8", code="invalid_json") from error
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{chosen.file}: expected JSON: {error}", code="invalid_json") from error
    if isinstance(found, list):
        return {"kind": "confusion_matrix", "matrix": found}, {}
    if isinstance(found, dict):
        source = found.get("input", found)
        if source is found:
            return source, {}
        unknown = [name for name in found if name not in _MEMBERS]
        if unknown:
            raise UsageError(
                f"{chosen.file}: of a request expected {', '.join(_MEMBERS)}, got {unknown[0]!r} too: "
                "prevail api POST /v1/evaluations sends it as it is"
            )
        if all(isinstance(one, dict) for one in (source, found.get("tags") or {}, found.get("options") or {})):
            return source, found
    raise InvalidInput(
        f"{chosen.file}: expected a matrix or an object with an input, tags and options that are objects",
        code="invalid_json",
    )


def _show(client: Client, chosen: Namespace) -> int:
    found = client.evaluation(chosen.run, dataset=chosen.dataset, split=chosen.split)
    if chosen.open:
        import webbrowser  # only here

        reply = client.request("GET", f"/v1/evaluations/{found.id}/report", headers={"Accept": "text/html"})
        # A browser has no key, and a page needs nothing but itself.
        with tempfile.NamedTemporaryFile(
            "w", suffix=".html", prefix="prevail-", encoding="utf-8", delete=False
        ) as file:
            file.write(reply.text)
        webbrowser.open(Path(file.name).as_uri())
        return DONE
    emit(client, found, chosen)
    return DONE


def _list(client: Client, chosen: Namespace) -> int:
    found = client.evaluations(
        model=chosen.model,
        dataset=chosen.dataset,
        split=chosen.split,
        tags=pairs(chosen.tag),
        sort=chosen.sort,
        limit=chosen.limit,
    )
    if chosen.output == "text":
        columns = ("id", "model", "dataset", "h_mean", "accuracy", "created_at")
        table = table_text(columns, [_line(one) for one in found]) if found.items else "no evaluations"
        put(table if found.is_complete else f"{table}\n{found.title()}", chosen)
    else:
        emit(client, found, chosen)
    return DONE


def _line(one: Any) -> list[Any]:
    model, dataset, metrics = one["model"], one["dataset"], one.get("metrics") or {}
    names = [":".join(str(part) for part in (ref["name"], ref.get("version")) if part) for ref in (model, dataset)]
    values = (
        {key: value for group in metrics.values() for key, value in group.items()} if _grouped(metrics) else metrics
    )
    place = f"{names[1]}, {dataset['split']}" if dataset.get("split") else names[1]
    return [one["id"], names[0], place, values.get("h_mean"), values.get("accuracy"), one["created_at"][:19]]


def _grouped(metrics: Any) -> bool:
    return any(isinstance(one, dict) for one in metrics.values())


def _merge(client: Client, chosen: Namespace) -> int:
    if len(chosen.runs) < 2:
        raise UsageError("expected two runs or more")
    found = client.merge(
        *chosen.runs,
        mode="folds" if chosen.folds else "pooled",
        model=chosen.model,
        dataset=chosen.dataset,
        split=chosen.split,
        tags=pairs(chosen.tag),
    )
    emit(client, found, chosen)
    hint(f"saved as {found.id}")
    return DONE


def _compare(client: Client, chosen: Namespace) -> int:
    if len(chosen.runs) + (chosen.baseline is not None) < 2:
        raise UsageError("expected two runs or more, or one and --baseline")
    paired = {"yes": "true", "no": "false"}.get(chosen.paired, chosen.paired)
    baseline = chosen.baseline or (chosen.runs[1] if len(chosen.runs) == 2 else None)
    found = client.compare(
        *chosen.runs,
        baseline=baseline,
        metrics=chosen.metric,
        rope=chosen.margin,
        level=chosen.level,
        paired=paired,
        explain=chosen.explain,
        by=chosen.by and chosen.by.split(","),
        dataset=chosen.dataset,
        split=chosen.split,
    )
    emit(client, found, chosen)
    return DONE


def _leaderboard(client: Client, chosen: Namespace) -> int:
    board = client.leaderboard(
        chosen.dataset, chosen.metric, split=chosen.split, where=chosen.where, limit=chosen.limit
    )
    if not board.items and not chosen.where:
        raise NotFound(" ".join(board.data["notes"]), code="not_found")
    emit(client, board, chosen)
    return DONE


def _history(client: Client, chosen: Namespace) -> int:
    found = client.history(
        chosen.model, chosen.dataset, *chosen.metric, split=chosen.split, created_after=chosen.created_after
    )
    emit(client, found, chosen)
    return DONE


def _tag(client: Client, chosen: Namespace) -> int:
    run = client.evaluation(chosen.run, dataset=chosen.dataset, split=chosen.split)
    changed = client.tag(run, {key: value or None for key, value in pairs(chosen.tags).items()})
    put(json.dumps(dict(changed.tags), ensure_ascii=False), chosen)
    return DONE


def _delete(client: Client, chosen: Namespace) -> int:
    named = [client.evaluation(one, dataset=chosen.dataset, split=chosen.split) for one in chosen.runs]
    found = [*{one.id: one for one in named}.values()]
    if not chosen.yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing is deleted without being asked for: add --yes")
        print(colours.plain("\n".join(f"{one.id}  {one.name}" for one in found)), file=sys.stderr)
        if input("delete these? (yes/no) ").strip().lower() not in ("y", "yes"):
            raise UsageError("nothing was deleted")
    for one in found:
        client.delete_evaluation(one)
    put("\n".join(str(one.id) for one in found), chosen)
    return DONE


def _card(client: Client, chosen: Namespace) -> int:
    from prevail.card import model_card

    found = client.evaluation(chosen.run, dataset=chosen.dataset, split=chosen.split)
    put(model_card(found, written(client, found, "markdown")), chosen)
    return DONE
