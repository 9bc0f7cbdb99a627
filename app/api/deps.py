"""What routes are given: the services, and the project that a request acts in."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

from fastapi import Depends, Request

from app.api.problems import InvalidQuery
from app.domain.errors import Fault
from app.services.compute import ComputePool
from app.services.evaluations import EvaluationService
from app.services.leaderboards import LeaderboardService
from app.services.ports import Readiness

DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Services:
    """Everything the routes may use, built once by the wiring."""

    evaluations: EvaluationService
    leaderboards: LeaderboardService
    compute: ComputePool
    readiness: Readiness


async def services(request: Request) -> Services:
    """The services of the running application."""
    found: Services = request.app.state.services
    return found


async def project() -> str:
    """The project a request acts in."""
    return DEFAULT_PROJECT


async def only_known_parameters(request: Request) -> None:
    """Refuse parameters that the route does not know: a misspelt filter that lets everything pass is worse.

    Raises:
        InvalidQuery: there is one, or one that no database can hold.
    """
    if not request.scope["query_string"]:
        return
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    faults = []
    for name, value in request.query_params.multi_items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}" if known else ""
            faults.append(Fault(name[:128], "unknown_parameter", f"there is no such parameter{hint}"))
        elif "\x00" in value:
            faults.append(Fault(name, "nul_character", "expected text without the character U+0000"))
    if faults:
        raise InvalidQuery(faults)


UseServices = Annotated[Services, Depends(services)]
Project = Annotated[str, Depends(project)]
