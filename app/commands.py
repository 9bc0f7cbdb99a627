"""Commands on the database itself: `prevail keys …`, which a service may carry out too; `prevail export`, `import` and
`check`: a project as files and back, and whether its values are right.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.bodies.parsing import parse_body
from app.api.v1.requests.administration import KeyRequest, RotationRequest
from app.domain.errors import DomainError
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import is_project_name
from app.domain.members import as_json
from app.domain.operations import DEFAULT_PROJECT, Scope
from app.domain.options import Options
from app.kernel.metrics.catalogue import catalogue
from app.services.access import KeyService
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import is_light, passes, report_alone, sections_from_json
from app.services.evaluate.sections.matrix import batch_values
from app.services.ports import ArchiveKind
from app.services.stored import options_from_json
from app.services.transfer import EVALUATIONS, Checker, Discrepancy, Exporter, Importer, Recomputed
from app.store.keys import PostgresKeyStore
from app.store.transfer import PostgresArchive

_MOST_SHOWN: Final = 100
_PAGE = 200


def add_arguments(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command."""
    if command == "keys":
        add_key_arguments(parser)
        return
    if command == "import":
        parser.add_argument("--project", type=_project, help="where to (default: the project that was exported)")
    else:
        parser.add_argument("--project", type=_project, default=DEFAULT_PROJECT, help="(default: %(default)s)")
    if command != "check":
        parser.add_argument("folder", type=Path, help="with the export; docs/reference/export.md says what lies in it")


def add_key_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the commands about keys."""
    tasks = parser.add_subparsers(dest="task", required=True)
    create = tasks.add_parser("create", help="make a key and print it; it is shown only now")
    create.add_argument("--name", default="key", help="what it is for (default: key)")
    create.add_argument("--scope", action="append", required=True, choices=[one.value for one in Scope], dest="scopes")
    create.add_argument("--expires", type=_moment, help="when it ends, such as 2027-01-01 or 2027-01-01T12:00:00Z")
    create.add_argument("--rate", help="how often it may be used, such as 100/second; per worker")
    create.add_argument("--quota", type=int, help="requests per day (UTC)")
    listing = tasks.add_parser("list", help="list the keys of a project, revoked ones too")
    rotate = tasks.add_parser("rotate", help="give a key a new secret and print it; it is shown only now")
    rotate.add_argument("--overlap", type=int, default=0, help="seconds for which the previous secret stays valid")
    revoke = tasks.add_parser("revoke", help="end a key for good")
    for task in (create, listing, rotate, revoke):
        task.add_argument("--project", type=_project, default=DEFAULT_PROJECT, help="(default: %(default)s)")
    for task in (rotate, revoke):
        task.add_argument("id", type=UUID, help="as `list` shows it")


async def run_keys(chosen: argparse.Namespace, engine: AsyncEngine) -> str:
    """Carry out a command on a database; returns what is to be printed.

    Raises:
        DomainError: there is no such key, or what was asked for cannot be: what a service would refuse.
        StoreUnavailableError: the database does not answer.
    """
    keys = KeyService(PostgresKeyStore(engine))
    match chosen.task:
        case "create":
            key = parse_body(json.dumps(_asked(chosen)).encode(), KeyRequest)
            return f"{(await keys.create(**key.model_dump() | {'project': chosen.project})).key}\n"
        case "rotate":
            rotation = parse_body(json.dumps({"overlap_seconds": chosen.overlap}).encode(), RotationRequest)
            return f"{(await keys.rotate(chosen.project, chosen.id, rotation.overlap_seconds)).key}\n"
        case "revoke":
            await keys.store.revoke(chosen.project, chosen.id)
            return _revoked(chosen)
    page = await keys.store.page(chosen.project, _PAGE)
    found = [*page.items]
    while page.next_position is not None:
        page = await keys.store.page(chosen.project, _PAGE, page.next_position)
        found += page.items
    return _listed(as_json(found))


class RefusedAtService(DomainError):
    """The service does not answer, or refuses, or nobody can ask it here; the message says why."""


def run_keys_at(url: str, key: str | None, chosen: argparse.Namespace) -> str:
    """Carry out a command at the service at `url`; returns what is to be printed.

    Raises:
        RefusedAtService: it does not answer, or refuses, or the client is not installed.
    """
    try:
        from prevail import Client, PrevailError
    except ImportError as error:
        detail = f"to ask {url} takes the client, which is not installed here: pip install prevail"
        raise RefusedAtService(detail) from error
    try:
        # Tried once: the answer is the only place where a key is shown.
        with Client(url, api_key=key, project=chosen.project, retries=0) as client:
            match chosen.task:
                case "create":
                    return f"{client.create_key(**_asked(chosen))['key']}\n"
                case "rotate":
                    return f"{client.rotate_key(str(chosen.id), overlap_seconds=chosen.overlap)['key']}\n"
                case "revoke":
                    client.revoke_key(str(chosen.id))
                    return _revoked(chosen)
            return _listed([*client.keys(limit=None)])
    except PrevailError as error:
        raise RefusedAtService(str(error)) from error


def _asked(chosen: argparse.Namespace) -> dict[str, Any]:
    """The body of the request for a key."""
    expires = None if chosen.expires is None else chosen.expires.isoformat()
    asked = {"expires_at": expires, "rate": chosen.rate, "daily_quota": chosen.quota}
    given = {name: value for name, value in asked.items() if value is not None}
    return {"name": chosen.name, "scopes": [*dict.fromkeys(chosen.scopes)], **given}


def _listed(found: Sequence[Mapping[str, Any]]) -> str:
    rows: list[tuple[str, ...]] = [("id", "name", "scopes", "expires", "last used", "revoked")]
    rows += [
        (
            key["id"],
            key["name"],
            ",".join(key["scopes"]),
            *(_shown(key[name]) for name in ("expires_at", "last_used_at", "revoked_at")),
        )
        for key in found
    ]
    return _table(rows)


def _revoked(chosen: argparse.Namespace) -> str:
    return f"{chosen.id} is revoked; running services know it within two seconds.\n"


def _shown(moment: str | None) -> str:
    return "-" if moment is None else datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a date, or a date and a time, got {text!r}") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _project(text: str) -> str:
    if not is_project_name(text):
        raise argparse.ArgumentTypeError(f"expected lower-case letters, digits, dots, _ and -, got {text!r}")
    return text


async def run_on_whole(chosen: argparse.Namespace, engine: AsyncEngine) -> tuple[str, int]:
    """Carry out a command on a database; returns what is to be printed, and the exit code.

    Raises:
        TransferError: it cannot be done; the message says why.
        StoreUnavailableError, StoreFullError: the database does not answer, or has no space left.
    """
    archive = PostgresArchive(engine)
    match chosen.command:
        case "export":
            manifest = await Exporter(archive, _tell).export(chosen.project, chosen.folder)
            counts = ", ".join(f"{manifest.rows(kind)} {kind}" for kind in (EVALUATIONS, *ArchiveKind))
            return f"{chosen.project} is in {chosen.folder}: {counts}.\n", 0
        case "import":
            added = await Importer(archive, _tell).bring_in(chosen.folder, chosen.project)
            counts = ", ".join(f"{number} {kind}" for kind, number in added.items())
            return f"Added {counts}; what was there already stayed as it was.\n", 0
    shown = 0

    def tell(found: Discrepancy) -> None:
        nonlocal shown
        shown += 1
        if shown <= _MOST_SHOWN:
            print(found)

    verdict = await Checker(archive, recompute).check(chosen.project, tell)
    lines = [f"Looked at {verdict.values} values of {verdict.evaluations} evaluations of {chosen.project}."]
    if shown > _MOST_SHOWN:
        lines.append(f"{shown - _MOST_SHOWN} more findings are not shown.")
    if verdict.of_earlier_catalogue:
        lines.append(
            f"{verdict.of_earlier_catalogue} were stored by an earlier catalogue and would be stored with other values "
            "now; their reports are computed by the present one."
        )
    if verdict.wrong:
        lines.append(f"{verdict.wrong} have something that does not follow from what is stored.")
    else:
        lines.append("Every value follows from what is stored.")
    return "\n".join(lines) + "\n", 1 if verdict.wrong else 0


def recompute(checked: Sequence[EvaluationRecord]) -> list[Recomputed]:
    """Values of some evaluations from their inputs: those that follow quickly from matrices of one size in one pass."""
    found: dict[int, Recomputed] = {}
    light: dict[int, Question] = {}
    for place, one in enumerate(checked):
        revision = (catalogue() if one.is_scored or one.task is not None else catalogue().of_matrices).revision
        kept = None if one.part is None else sections_from_json(one.part)
        try:
            question = ask(one, _options(one))
            if is_light(question, kept):
                light[place] = question
            else:
                found[place] = Recomputed(report_alone(question, kept).values, revision)
        except DomainError as error:
            found[place] = Recomputed({}, revision, error.detail)
    waiting = list(light)
    for those in passes([*light.values()]):
        places = [waiting[index] for index in those]
        values = batch_values([light[place] for place in places]).values
        found |= {
            place: Recomputed(own, catalogue().of_matrices.revision) for place, own in zip(places, values, strict=True)
        }
    return [found[place] for place in range(len(checked))]


def _options(one: EvaluationRecord) -> Options:
    """Return the options that the stored values follow from: intervals and expressions are not stored."""
    return replace(options_from_json(one.options).without_intervals, metrics=())


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
