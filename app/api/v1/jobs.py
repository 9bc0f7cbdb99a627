"""Routes of jobs: requests that are answered later."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Listing, Paging, paging_of
from app.api.deps import UseContext, routes
from app.api.documentation import problem
from app.api.presentation import Media, require_acceptable
from app.api.problems import RETRY_SECONDS
from app.api.report import HEADERS
from app.domain.operations import Job, JobStatus

router = routes("jobs")
# Proxies end requests that are silent for a minute.
MOST_SECONDS: Final = 50


@router.get("/jobs", responses=answers(Listing[Job], name="JobPage"))
async def list_jobs(
    context: UseContext,
    paging: Annotated[Paging, paging_of(Job)],
    status: Annotated[JobStatus | None, Query(description="Only those of this status.")] = None,
) -> Response:
    """List the jobs of the project, latest first."""
    read = partial(context.services.jobs.store.page, context.project, status)
    return await paging.page(read, {"list": "jobs", "status": status}, UUID)


@router.get("/jobs/{identifier}", responses=answers(Job))
async def get_job(
    identifier: UUID,
    context: UseContext,
    wait: Annotated[
        float, Query(ge=0, le=MOST_SECONDS, description="Wait so many seconds at most for the job to end.")
    ] = 0,
) -> Response:
    """Read how far a job is, and how it ended."""
    job = await context.services.jobs.read(context.project, identifier, wait)
    headers = {} if job.status.ended else {"Retry-After": str(RETRY_SECONDS)}
    return json_response(job, headers=headers)


@router.get(
    "/jobs/{identifier}/result",
    responses={
        200: {
            "description": "The answer of the operation, in the form that its request asked for.",
            "content": {media.value: {"schema": {} if media is Media.JSON else {"type": "string"}} for media in Media},
        }
    },
)
async def get_job_result(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Read the result of a job that is saved nowhere else, as the request itself would have been answered."""
    result = await context.services.jobs.result(context.project, identifier)
    require_acceptable(request, result.media_type.partition(";")[0])
    page = result.media_type.startswith(Media.PAGE)
    return Response(result.content, headers=HEADERS if page else None, media_type=result.media_type)


@router.delete(
    "/jobs/{identifier}",
    responses=answers(Job, description="It is cancelled.")
    | answers(Job, status=202, description="The job is running and is being stopped: read it again to see its end.")
    | {409: problem("The job has ended already.")},
)
async def cancel_job(identifier: UUID, context: UseContext) -> Response:
    """Cancel a job. What it had stored until then stays."""
    job = await context.services.jobs.cancel(context.project, identifier)
    return json_response(job, HTTPStatus.OK if job.status.ended else HTTPStatus.ACCEPTED)
