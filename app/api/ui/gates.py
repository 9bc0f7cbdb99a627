"""Gates: all of them, one with its versions and checks, and one check."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from app.api.cursors import Cursor, Pages
from app.api.deps import UseContext
from app.api.documents.check import check_document, rule_text
from app.api.documents.reading import run_title, shown
from app.api.plots.registry import as_answered
from app.api.report import view
from app.api.ui.routing import page_routes
from app.api.ui.writing import render
from app.api.v1.requests.fields import GateName
from app.domain.decisions import CheckSummary
from app.domain.wording import whole

router = page_routes()
_ON_A_PAGE = 25
Json = Mapping[str, Any]


@router.get("/gates")
async def show_gates(request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """List the gates with what their last check said."""
    pages: Pages[str] = Pages({"list": "gates"}, (str,))
    found = as_answered(
        pages.listed(await context.services.gates.page(context.project, _ON_A_PAGE, pages.after(cursor)))
    )
    last = await context.services.gates.last_checks(context.project, [gate["name"] for gate in found["items"]])
    items = [{**_gate(gate), "last": last.get(gate["name"])} for gate in found["items"]]
    page = {"title": "Gates", "items": items, "next": found["next_cursor"]}
    return render(request, "gates.html", "gates", page=page)


@router.get("/gates/{name}")
async def show_gate(name: GateName, request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """Show a gate: its rules, all checks, and the rules of earlier versions."""
    versions = [_gate(as_answered(one)) for one in await context.services.gates.versions(context.project, name)]
    pages: Pages[UUID] = Pages({"list": "checks", "gate": name}, (UUID,))
    listed = await context.services.gates.checks(context.project, name, _ON_A_PAGE, pages.after(cursor))
    found = pages.listed(listed)
    page = {
        "title": name,
        "gate": versions[0],
        "earlier": versions[1:],
        "checks": [_checked(one) for one in found.items],
        "next": found.next_cursor,
        "first": cursor is None,
    }
    return render(request, "gate.html", "gates", page=page)


@router.get("/gates/{name}/checks/{identifier}")
async def show_check(name: GateName, identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show what a gate said of a run, rule by rule."""
    answer = as_answered(await context.services.gates.read_check(context.project, name, identifier))
    return render(request, "document.html", "gates", **view(check_document(answer)))


def _gate(gate: Json) -> dict[str, Any]:
    rules = [rule_text(rule) for rule in gate["rules"]]
    if gate.get("minimum_samples"):
        rules.append(f"at least {whole(gate['minimum_samples'])} samples")
    return {
        "name": gate["name"],
        "version": gate["version"],
        "created_at": gate["created_at"],
        "description": shown(gate.get("description") or ""),
        "rules": rules,
    }


def _checked(check: CheckSummary) -> dict[str, Any]:
    """A check in the history; runs have the names that they had when it was made."""
    return {
        **as_answered(check),
        "run": run_title(check.run),
        "against": "" if check.compared_with is None else run_title(check.compared_with),
    }
