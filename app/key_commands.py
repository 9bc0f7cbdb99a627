"""`prevail keys …`: keys made, listed, rotated and revoked at a service, or in the database itself, whether or not the
service runs.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.bodies.parsing import parse_body
from app.api.v1.requests.administration import KeyRequest, RotationRequest
from app.domain.errors import DomainError
from app.domain.identifiers import is_project_name
from app.domain.members import as_json
from app.domain.operations import DEFAULT_PROJECT, Scope
from app.services.access import KeyService
from app.store.keys import PostgresKeyStore

_PAGE = 200


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


async def run(chosen: argparse.Namespace, engine: AsyncEngine) -> str:
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
    found: list[dict[str, Any]] = []
    page = await keys.store.page(chosen.project, _PAGE)
    found += as_json(page.items)
    while page.next_position is not None:
        page = await keys.store.page(chosen.project, _PAGE, page.next_position)
        found += as_json(page.items)
    return _listed(found)


class RefusedAtService(DomainError):
    """The service does not answer, or refuses, or nobody can ask it here; the message says why."""


def run_at(url: str, key: str | None, chosen: argparse.Namespace) -> str:
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
