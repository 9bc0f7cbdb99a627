"""`prevail keys …`: keys made, listed, rotated and revoked at a service, or in the database itself, whether or not the
service runs.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
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
            rotation = parse_body(json.dumps(_rotation(chosen)).encode(), RotationRequest)
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
    """The service does not answer, or refuses; the message says why."""


def run_at(url: str, key: str | None, chosen: argparse.Namespace) -> str:
    """Carry out a command at the service at `url`; returns what is to be printed.

    Raises:
        RefusedAtService: it does not answer, or refuses.
    """
    headers = {"X-Prevail-Project": chosen.project} | ({"Authorization": f"Bearer {key}"} if key else {})
    with httpx.Client(headers=headers, timeout=30) as client:

        def ask(method: str, path: str = "", **request: Any) -> Any:
            try:
                answer = client.request(method, f"{url}/v1/keys{path}", **request)
            except httpx.HTTPError as error:
                raise RefusedAtService(f"{url} does not answer: {error}") from error
            try:
                if answer.is_success:
                    return answer.json() if answer.content else None
            except ValueError:
                raise RefusedAtService(f"{url} is no such service: it answered {answer.text[:100]!r}") from None
            is_problem = answer.headers.get("content-type") == "application/problem+json"
            said = answer.json()["detail"] if is_problem else answer.text[:500]
            raise RefusedAtService(f"{url} answered {answer.status_code}: {said}")

        match chosen.task:
            case "create":
                return f"{ask('POST', json=_asked(chosen))['key']}\n"
            case "rotate":
                return f"{ask('POST', f'/{chosen.id}/rotations', json=_rotation(chosen))['key']}\n"
            case "revoke":
                ask("DELETE", f"/{chosen.id}")
                return _revoked(chosen)
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {"next_cursor": ""}
        while page["next_cursor"] is not None:
            after = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
            page = ask("GET", params={"limit": _PAGE, **after})
            found += page["items"]
        return _listed(found)


def _asked(chosen: argparse.Namespace) -> dict[str, Any]:
    """The body of the request for a key."""
    expires = None if chosen.expires is None else chosen.expires.isoformat()
    asked = {"expires_at": expires, "rate": chosen.rate, "daily_quota": chosen.quota}
    given = {name: value for name, value in asked.items() if value is not None}
    return {"name": chosen.name, "scopes": [*dict.fromkeys(chosen.scopes)], **given}


def _rotation(chosen: argparse.Namespace) -> dict[str, Any]:
    """The body of the request for another secret."""
    return {"overlap_seconds": chosen.overlap}


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
        moment: Any = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a date, or a date and a time, got {text!r}") from None
    found: datetime = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return found


def _project(text: str) -> str:
    if not is_project_name(text):
        raise argparse.ArgumentTypeError(f"expected lower-case letters, digits, dots, _ and -, got {text!r}")
    return text
