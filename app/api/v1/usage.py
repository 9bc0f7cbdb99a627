"""What a project uses: counted of every request, and told."""

from fastapi import FastAPI
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.deps import UseContext, routes
from app.api.wire.observed import RequestFacts
from app.domain.operations import Usage, Used

router = routes("usage")
_FIRST_ERROR = 400


@router.get("/usage", responses=answers(Usage), operation_id="getUsage")
async def get_usage(context: UseContext) -> Response:
    """Read what the project has used today of its quotas, and when they are free again."""
    return json_response(await context.services.quotas.usage(context.project))


class UsageCount:
    """Counts what each request of a project has used."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def begun(self) -> None:
        """Nothing is known yet."""

    def ended(self, facts: RequestFacts) -> None:
        """Count a request, its body when it was taken to be kept."""
        project = facts.state.get("project")
        if project is not None:
            taken = facts.state.get("stores") and facts.status is not None and facts.status < _FIRST_ERROR
            used = Used(facts.tally.evaluations, facts.received if taken else 0, facts.tally.compute)
            self._app.state.services.quotas.note(project, used)
