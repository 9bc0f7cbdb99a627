"""Routes of models and datasets: listed, one read, one removed."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Cursor, Limit, Listing, Pages
from app.api.deps import UseContext, routes
from app.api.v1.listing.evaluations import DryRun
from app.api.v1.requests.fields import SOUGHT_IN_PATH
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.inventory import DatasetFacts, ModelFacts, Removal

router = routes("evaluations")
_DESCRIPTION = "Its name. What is not a letter or digit is percent-encoded; a slash may stay as it is."
NounName = Annotated[str, Path(min_length=1, max_length=256, description=_DESCRIPTION), SOUGHT_IN_PATH]


@router.get(
    "/models",
    responses=answers(Listing[ModelRef], name="ModelPage"),
    operation_id="listModels",
)
async def list_models(context: UseContext, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the model versions that have an evaluation, by name."""
    pages = Pages({"list": "models"}, (str, str | None), ModelRef)
    return json_response(
        pages.listed(await context.services.evaluations.models(context.project, limit, pages.after(cursor)))
    )


@router.get(
    "/datasets",
    responses=answers(Listing[DatasetRef], name="DatasetPage"),
    operation_id="listDatasets",
)
async def list_datasets(context: UseContext, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the datasets that have an evaluation, by name."""
    pages = Pages({"list": "datasets"}, (str, str | None, str | None), DatasetRef)
    return json_response(
        pages.listed(await context.services.evaluations.datasets(context.project, limit, pages.after(cursor)))
    )


@router.get(
    "/models/{name:path}",
    responses=answers(ModelFacts),
    operation_id="getModel",
)
async def get_model(name: NounName, context: UseContext) -> Response:
    """Read what there is of a model: how many evaluations, which versions, the newest."""
    return json_response(await context.services.inventory.model(context.project, name))


@router.delete(
    "/models/{name:path}",
    responses=answers(Removal),
    operation_id="deleteModel",
)
async def delete_model(name: NounName, context: UseContext, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations of a model, and with them its name from the lists. Comparisons and checks that were made
    of them are kept.
    """
    return json_response(await context.services.inventory.remove_model(context.project, name, dry_run=dry_run))


@router.get(
    "/datasets/{name:path}",
    responses=answers(DatasetFacts),
    operation_id="getDataset",
)
async def get_dataset(name: NounName, context: UseContext) -> Response:
    """Read what there is of a dataset: how many evaluations, which versions and splits, the newest."""
    return json_response(await context.services.inventory.dataset(context.project, name))


@router.delete(
    "/datasets/{name:path}",
    responses=answers(Removal),
    operation_id="deleteDataset",
)
async def delete_dataset(name: NounName, context: UseContext, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations of a dataset, and with them its name from the lists. Comparisons and checks that were made
    of them are kept.
    """
    return json_response(await context.services.inventory.remove_dataset(context.project, name, dry_run=dry_run))
