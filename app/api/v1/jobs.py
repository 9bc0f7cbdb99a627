"""Routes of jobs: requests that are answered later."""

from http import HTTPStatus
from uuid import UUID

from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Cursor, Limit, Listing, Pages
from app.api.deps import UseContext, routes
from app.api.documentation import problem
from app.api.presentation import Media
from app.domain.operations import Job

router = routes("jobs")


@router.get("/jobs", responses=answers(Listing[Job], name="JobPage"), operation_id="listJobs")
async def list_jobs(context: UseContext, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the jobs of the project, latest first."""
    pages: Pages[UUID] = Pages({"list": "jobs"}, (UUID,))
    return json_response(pages.listed(await context.services.jobs.page(context.project, limit, pages.after(cursor))))


@router.get("/jobs/{identifier}", responses=answers(Job), operation_id="getJob")
async def get_job(identifier: UUID, context: UseContext) -> Response:
    """Read how far a job is, and how it ended."""
    return json_response(await context.services.jobs.read(context.project, identifier))


@router.get(
    "/jobs/{identifier}/result",
    responses={
        200: {
            "description": "The answer of the operation, in the form that its request asked for.",
            "content": {media.value: {"schema": {} if media is Media.JSON else {"type": "string"}} for media in Media},
        }
    },
    operation_id="getJobResult",
)
async def get_job_result(identifier: UUID, context: UseContext) -> Response:
    """Read the result of a job that is kept nowhere else, as the request itself would have been answered."""
    result = await context.services.jobs.result(context.project, identifier)
    return Response(result.content, media_type=result.media_type)


@router.delete(
    "/jobs/{identifier}",
    responses=answers(Job, description="It is cancelled.")
    | answers(Job, status=202, description="The job is running and is being stopped: read it again to see its end.")
    | {409: problem("The job has ended already.")},
    operation_id="cancelJob",
)
async def cancel_job(identifier: UUID, context: UseContext) -> Response:
    """Cancel a job. What it had stored until then stays."""
    job = await context.services.jobs.cancel(context.project, identifier)
    return json_response(job, HTTPStatus.OK if job.status.ended else HTTPStatus.ACCEPTED)
