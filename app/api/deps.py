"""What routes are given: the services, and the project that a request acts in."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.services.compute import ComputePool
from app.services.evaluations import EvaluationService
from app.services.ports import Readiness

DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Services:
    """Everything the routes may use, built once by the wiring."""

    evaluations: EvaluationService
    compute: ComputePool
    readiness: Readiness


async def services(request: Request) -> Services:
    """The services of the running application."""
    found: Services = request.app.state.services
    return found


async def project() -> str:
    """The project a request acts in."""
    return DEFAULT_PROJECT


UseServices = Annotated[Services, Depends(services)]
Project = Annotated[str, Depends(project)]
