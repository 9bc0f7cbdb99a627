"""The route of a project's usage."""

from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.deps import UseContext, routes
from app.domain.operations import Usage

router = routes("usage")


@router.get("/usage", responses=answers(Usage))
async def get_usage(context: UseContext) -> Response:
    """Read what the project has used today of its quotas, and when they are free again."""
    return json_response(await context.services.quotas.usage(context.project))
