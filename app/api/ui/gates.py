"""Pages of gates: their rules and checks, which rule blocks most often, and what other rules would have said."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from fastapi import Query, Request
from starlette.responses import Response

from app.api.bodies.parsing import parse_body, refuse_repeated_members
from app.api.cursors import Cursor, read_page
from app.api.deps import Context, UseContext
from app.api.documents.check import WORST_FIRST, as_decided, axis_of, check_document, estimate_of, limits_of, rule_said
from app.api.documents.document import Json
from app.api.plots.registry import as_answered
from app.api.problems import UnreadableBody, refusal_of
from app.api.report import tick, view
from app.api.ui.web import Web, page_routes, reasons_of, render
from app.api.v1.gates import tried
from app.api.v1.requests.decisions import TrialRequest
from app.api.v1.requests.fields import SOUGHT, GateName
from app.domain.decisions import CheckFilter
from app.domain.errors import DomainError
from app.domain.rules import Demand
from app.domain.wording import PAGE, dataset_name, printable, run_name, run_title

router = page_routes()
_ON_A_PAGE: Final = 25
# Evaluations that edited rules are tried on.
_TRIED: Final = 20
_LONGEST_RULES: Final = 8000
_OF_THE_FORM: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


@router.get("/gates")
async def show_gates(request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """List the gates with what their last check said."""
    read = partial(context.services.gates.page, context.project)
    found = as_answered(await read_page(read, _ON_A_PAGE, cursor, {"list": "gates"}, str))
    last = await context.services.gates.last_checks(context.project, [gate["name"] for gate in found["items"]])
    items = [{**_gate(gate), "last": last.get(gate["name"])} for gate in found["items"]]
    page = {"title": "Gates", "items": items, "next": found["next_cursor"]}
    return render(request, "gates.html", "gates", page=page)


@router.get("/gates/{name}")
async def show_gate(
    name: GateName,
    request: Request,
    context: UseContext,
    cursor: Cursor = None,
    rules: Annotated[str | None, Query(max_length=_LONGEST_RULES)] = None,
    baseline: Annotated[str | None, SOUGHT, Query(max_length=512)] = None,
) -> Response:
    """Show a gate: its rules, all checks, and earlier versions; edited rules are tried on what there is."""
    answers = [as_answered(one) for one in await context.services.gates.versions(context.project, name)]
    versions = [_gate(one) for one in answers]
    read = partial(context.services.gates.checks, context.project, CheckFilter(gate=name))
    found = await read_page(read, _ON_A_PAGE, cursor, {"list": "checks", "gate": name}, UUID)
    # The model and the dataset whose evaluations rules are tried on: those the gate is for, or is used for.
    applies: Json = answers[0].get("applies_to") or {}
    if not applies and found.items:
        applies = {"dataset": as_answered(found.items[0])["evaluation"]["dataset"]}
    about = {name: one for name in ("model", "dataset") if (one := applies.get(name)) is not None}
    trial, wrong, status = None, list[str](), HTTPStatus.OK
    try:
        trial = None if rules is None else await _trial(context, answers[0], about, rules, baseline)
    except DomainError as error:
        problem = refusal_of(error)
        if problem.status not in _OF_THE_FORM:
            raise
        # What was typed stays in the form.
        wrong, status = [*reasons_of(problem)], problem.status
    page = {
        "title": name,
        "edit": {
            "rules": rules or "[" + ",\n ".join(orjson.dumps(one).decode() for one in answers[0]["rules"]) + "]",
            "compared": baseline or any(one in rule for rule in answers[0]["rules"] for one in _COMPARED),
            "baseline": baseline or next((one.baseline["id"] for one in found.items if one.baseline), ""),
            "on": dataset_name(about.get("dataset")),
            "most": _TRIED,
            "wrong": wrong,
        },
        "trial": trial,
        "gate": versions[0],
        "earlier": versions[1:],
        # Runs have the names that they had when they were checked.
        "checks": [
            {
                **as_answered(one),
                "run": run_title(one.evaluation),
                "against": "" if one.baseline is None else run_title(one.baseline),
            }
            for one in found.items
        ],
        "next": found.next_cursor,
        "first": cursor is None,
        "history": _history(await context.services.gates.history(context.project, name, _IN_A_HISTORY)),
    }
    return render(request, "gate.html", "gates", status, page=page)


@router.get("/gates/{name}/checks/{identifier}")
async def show_check(name: GateName, identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show what a gate said of a run, rule by rule."""
    answer = as_answered(await context.services.gates.read_check(context.project, name, identifier))
    return render(request, "document.html", "gates", **view(check_document(answer), Web.of(request).at))


_IN_A_HISTORY: Final = 50


def _history(answers: Sequence[Json]) -> dict[str, Any] | None:
    """Return the results of each rule over the checks, the oldest first, and which rule blocks most often."""
    if len(answers) < 2:
        return None
    found: dict[str, list[Json | None]] = {}
    alone: Counter[str] = Counter()
    for place, answer in enumerate(reversed(answers)):
        decisive: dict[str, Json] = {}
        for one in map(as_decided, answer["results"]):
            rule = rule_said(one["rule"])
            # Of a rule on several classes the worst verdict counts.
            decisive[rule] = min(decisive.get(rule, one), one, key=lambda each: WORST_FIRST.index(each["verdict"]))
        blocking = [rule for rule, one in decisive.items() if one["verdict"] != "pass"]
        for rule, one in decisive.items():
            found.setdefault(rule, [None] * len(answers))[place] = one
        alone.update(blocking if len(blocking) == 1 else ())
    rows = [
        {
            "rule": rule,
            "blocked": sum(one is not None and one["verdict"] != "pass" for one in results),
            "alone": alone[rule],
            "strip": _strip(results),
        }
        for rule, results in found.items()
    ]
    rows.sort(key=lambda row: (-row["blocked"], -row["alone"]))
    first, n = rows[0], len(answers)
    alike = sum((row["blocked"], row["alone"]) == (first["blocked"], first["alone"]) for row in rows)
    who = f"{alike} rules block" if alike > 1 else f"{first['rule']} blocks"
    each = " each" if alike > 1 else ""
    say = f"{who} most often: {first['blocked']} of {n} checks{each}, {first['alone']} of them alone."
    return {
        "rows": rows,
        "say": say if first["blocked"] else f"No rule blocked any of the last {n} checks.",
        "n": n,
        "dates": [answers[-1]["created_at"], answers[0]["created_at"]],
    }


# Where values stand in a strip of this height, in per cent of its width and in pixels.
_FROM, _TOP, _BOTTOM = 12.0, 8.0, 64.0
# Pixels between labels that can be read.
_APART = 13.0


def _strip(results: Sequence[Json | None]) -> dict[str, Any]:
    """Return the values of a rule over the checks with their limits, and the limits of the rule, as they are drawn."""
    *_, last = known = [one for one in results if one is not None]
    said = estimate_of(last)
    if not isinstance(said, str):
        said = PAGE.said(said.value, said.low, said.high, sign=said.sign)
    told = [one[end] for one in known for end in ("value", "low", "high") if one[end] is not None]
    limits, sign = limits_of(last), last.get("quantity") == "difference"
    # Without a value and a limit there is nothing to be seen but the verdicts.
    shown = [*told, *(at for at, _ in limits)] or [0.0]
    start, end = axis_of(shown, sign=sign)
    if (start, end) == (0.0, 1.0):
        start = min(math.floor(10 * min(shown)) / 10, 0.9)
        end = max(math.ceil(10 * max(shown)) / 10, start + 0.1)

    def height(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * (value - start) / (end - start), 1)

    step, marks = (100 - _FROM) / len(results), []
    for place, one in enumerate(results):
        if one is not None:
            ends = [height(one[side]) for side in ("low", "high") if one[side] is not None]
            marks.append(
                {
                    "x": f"{_FROM + step * (place + 0.5):.2f}%",
                    # What has no value stands below.
                    "y": _BOTTOM if one["value"] is None else height(one["value"]),
                    "ends": ends if len(ends) == 2 else None,
                    "verdict": one["verdict"],
                }
            )
    ticks = [at for at in (start, end) if all(abs(height(at) - height(one)) > _APART for one, _ in limits)]
    return {
        "marks": marks,
        "limits": [(height(at), tick(at, sign=sign)) for at, _ in limits],
        "wrong": [
            (height(at), _BOTTOM - height(at)) if below else (_TOP, height(at) - _TOP)
            for at, below in limits
            if below is not None
        ],
        "ticks": [(height(at), tick(at, sign=sign)) for at in ticks],
        "last": (last["verdict"], said),
    }


# --- edited rules ----------------------------------------------------------------------------------------------------

_COMPARED: Final = tuple(one for one in Demand if one.needs_baseline)


async def _trial(context: Context, gate: Json, about: Json, edited: str, baseline: str | None) -> dict[str, Any]:
    """Return what edited rules and the saved ones say of the latest evaluations, the oldest first."""
    named = {name: {part: one for part, one in ref.items() if one is not None} for name, ref in about.items()}
    others = {
        "gate": gate["name"],
        "evaluations": {"latest": _TRIED, **named},
        "minimum_samples": gate.get("minimum_samples"),
        "baseline": baseline,
    }
    refuse_repeated_members(edited.encode())
    try:
        rules = orjson.loads(edited)
    except orjson.JSONDecodeError as error:
        raise UnreadableBody.at("/rules", "invalid_json", f"expected rules as JSON: {error}") from None
    body = parse_body(orjson.dumps({"rules": rules, **others}), TrialRequest)
    items = as_answered(await tried(context, body))["items"][::-1]
    known = [one for one in items if one["tried"]["verdict"] and one["saved"]["verdict"]]
    reasons = {one[rules].get("reason") for one in items if one not in known for rules in ("tried", "saved")}
    pairs = [(one["saved"]["verdict"], one["tried"]["verdict"]) for one in known]
    before, after = ([rule_said(one) for one in rules] for rules in (gate["rules"], body.definition()["rules"]))
    new, gone = ([one for one in these if one not in those] for these, those in ((after, before), (before, after)))
    edit = "With these rules"
    if len(new) == 1 and len(gone) < 2:
        edit = f"With {new[0]}"
    elif not new and len(gone) == 1:
        edit = f"Without {gone[0]}"
    step = 100 / max(len(known), 1)
    return {
        "say": f"{edit}, {sum(a != b for a, b in pairs)} of the last {len(known)} runs would have ended otherwise",
        "rows": [
            {
                "words": words,
                "counts": ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).items()),
                "marks": [
                    {"x": f"{step * (place + 0.5):.2f}%", "y": 11, "ends": None, "verdict": one}
                    for place, one in enumerate(verdicts)
                ],
            }
            for words, verdicts in zip(("As saved", "As edited"), zip(*pairs, strict=True), strict=True)
        ]
        if pairs
        else [],
        "ticks": [f"{step * (place + 0.5):.2f}%" for place, (a, b) in enumerate(pairs) if a != b],
        "otherwise": [
            {
                "id": one["evaluation"]["id"],
                "run": run_name(one["evaluation"]["model"]),
                "created_at": one["created_at"],
                "saved": one["saved"]["verdict"],
                "tried": one["tried"]["verdict"],
            }
            for one in known
            if one["tried"]["verdict"] != one["saved"]["verdict"]
        ],
        "unknown": len(items) - len(known),
        "reasons": sorted(printable(one) for one in reasons if one),
    }


# --- parts -----------------------------------------------------------------------------------------------------------


def _gate(gate: Json) -> dict[str, Any]:
    rules = [(rule_said(rule), rule["metric"]) for rule in gate["rules"]]
    if gate.get("minimum_samples"):
        rules.append((rule_said({"minimum_samples": gate["minimum_samples"]}), ""))
    return {**gate, "description": printable(gate.get("description") or ""), "rules": rules}
