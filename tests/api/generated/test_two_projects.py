"""Two projects and one service: requests along the links of the document, with ids of either. Nothing of one project is
seen by a key of the other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx
import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import evaluation
from tests.api.generated.document import SCHEMA
from tests.api.generated.kept import PROBABILITIES, Kept, keep_everything
from tests.api.generated.profile import generated
from tests.api.generated.valid import Case, fill_addresses, is_positive, make_valid, operation_id
from tests.api.keys import bearer, make_key
from tests.serving import Served

pytestmark = pytest.mark.slow

# What belongs to a project: all else is the same for everybody. Who may read and write only may do nothing with keys
# and webhooks.
_KEPT = SCHEMA.exclude(
    path_regex="^/v1/(bounds|consistency-checks|curves|isocurves|keys|metrics|projections|thresholds|webhooks)"
)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
# Who sends each request of a sequence, and whose things it is about when nothing else says so.
_TURNS = ((0, 0), (0, 1), (1, 0), (0, 0), (1, 1), (1, 0), (0, 1), (1, 1))


@dataclass
class Side:
    """A project.

    Attributes:
        mark: Stands in names of its own, and nowhere else.
        headers: With a key that may read and write.
        kept: What is there from the beginning.
        ids: Of all that it has been answered.
        sent: Ids that it has named.
    """

    mark: str
    headers: dict[str, str]
    kept: Kept
    ids: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def guarded(database_url: str) -> Iterator[str]:
    with Served(Settings(database_url=SecretStr(database_url), authentication=Authentication.keys)) as url:
        yield url


@pytest.fixture(scope="module")
def sides(guarded: str, database_url: str) -> tuple[Side, Side]:
    found = []
    for name in ("first-of-two", "second-of-two"):
        kept = keep_everything(guarded, bearer(make_key(database_url, name, "admin")))
        side = Side(f"mark-of-{name}", bearer(make_key(database_url, name, "write")), kept)
        with httpx.Client(base_url=guarded, headers=side.headers, timeout=60) as client:
            made = client.post("/v1/evaluations", json=_marked(side))
            assert made.status_code == 201, made.text
            for path in ("evaluations", "comparisons", "jobs", "gates/kept/checks"):
                side.ids |= set(_ID.findall(client.get(f"/v1/{path}", params={"limit": 200}).text))
        side.ids |= {kept.key, kept.job, kept.check, kept.comparison}
        found.append(side)
    first, second = found
    assert len(first.ids) > 20
    assert not first.ids & second.ids
    return first, second


def _marked(side: Side) -> Any:
    return evaluation(model=side.mark, dataset=side.mark, input=PROBABILITIES, tags={side.mark: side.mark})


def test_nothing_of_one_project_is_seen_in_the_other(guarded: str, sides: tuple[Side, Side]) -> None:
    succeeded: set[str] = set()
    foreign: set[str] = set()
    seen: list[str] = []

    class Machine(_KEPT.as_state_machine()):  # type: ignore[misc]  # a class made by a function
        turn = 0
        sender = about = sides[0]

        def get_call_kwargs(self, _: Case) -> dict[str, Any]:
            return {"base_url": guarded, "headers": self.sender.headers}

        def before_call(self, case: Case) -> None:
            self.sender, self.about = (sides[side] for side in _TURNS[self.turn % len(_TURNS)])
            self.turn += 1
            if self.about is not self.sender or not _ID.search(str(case.path_parameters)):
                fill_addresses(case, self.about.kept)
                if case.method == "DELETE" and self.about is not self.sender and "identifier" in case.path_parameters:
                    case.path_parameters["identifier"] = self.about.kept.by_probabilities
            if is_positive(case):
                make_valid(case, self.about.kept)
            if operation_id(case) == "createEvaluation" and case.media_type == "application/json":
                case.body = _marked(self.sender)

        def after_call(self, response: Any, case: Case) -> None:
            super().after_call(response, case)
            # All are kept: a sequence that is played again finds what the first time has left.
            seen.extend(_seen(self.sender, sides[self.sender is sides[0]], response, case))
            if response.status_code < 300:
                succeeded.add(operation_id(case))
            if self.about is not self.sender and _ID.findall(unquote(response.request.url)):
                foreign.add(operation_id(case))

        def validate_response(self, response: Any, case: Case, **_: Any) -> None:
            """What answers look like is looked at elsewhere."""

    run_state_machine_as_test(Machine, settings=hypothesis.settings(generated(), stateful_step_count=8))
    assert seen == []
    assert len(succeeded) >= 6, succeeded
    assert len(foreign) >= 3, foreign
    # What is there from the beginning is there still, unless its own side has removed it.
    for side in sides:
        with httpx.Client(base_url=guarded, headers=side.headers, timeout=60) as client:
            assert client.get("/v1/gates/kept").status_code == 200
            assert client.get(f"/v1/evaluations/{side.kept.by_probabilities}").status_code == 200
            assert client.get(f"/v1/comparisons/{side.kept.comparison}").status_code == 200


def _seen(sender: Side, other: Side, response: Any, case: Case) -> Iterator[str]:
    """What was answered of the other project that was not sent, or found under an id of it."""
    request, said = response.request, response.text + str(dict(response.headers))
    body = request.body.decode(errors="replace") if isinstance(request.body, bytes) else str(request.body)
    sent = unquote(request.url) + body
    named = set(_ID.findall(sent))
    about = f"{operation_id(case)}: {request.method} {request.url} {response.status_code}"
    # A job says later what was wrong with what was sent.
    sender.sent |= named
    known = sender.sent if "Job" in operation_id(case) else named
    if found := (set(_ID.findall(said)) - known) & other.ids:
        yield f"{about}: ids {found}"
    if other.mark in said and other.mark not in sent:
        yield f"{about}: {other.mark}"
    if set(_ID.findall(unquote(request.url).partition("?")[0])) & other.ids and response.status_code < 400:
        yield f"{about}: found under an id of the other"
    if response.status_code >= 500:
        yield f"{about}: {response.text}"
    if response.status_code < 300:
        sender.ids |= set(_ID.findall(said)) - sender.sent
