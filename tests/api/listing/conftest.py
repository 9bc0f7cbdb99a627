"""What tests of lists and of removals share: projects of their own, and a few evaluations."""

import secrets
from collections.abc import Iterator

import httpx
import pytest

from tests.api.answers import Json, create, evaluation, matrix_input

# H is undefined in the last: a class has no samples.
MATRICES = [[[4, 1], [1, 4]], [[8, 2], [2, 8]], [[9, 1], [5, 5]], [[3, 7], [6, 4]], [[7, 3], [0, 0]]]
MODEL = "team/forest v2"
DATASET = "s3://bucket/a b"


@pytest.fixture
def project(base_url: str) -> Iterator[httpx.Client]:
    """A client in a project where nothing is yet."""
    headers = {"X-Prevail-Project": f"p-{secrets.token_hex(6)}"}
    with httpx.Client(base_url=base_url, timeout=60, headers=headers) as opened:
        yield opened


@pytest.fixture
def kept(project: httpx.Client) -> list[Json]:
    """Twenty evaluations, oldest first: two models, two versions each, two datasets, one of them with two splits."""
    bodies = []
    for index in range(20):
        body = evaluation(input=matrix_input(MATRICES[index % 5]), tags={"even": str(index % 2 == 0)})
        body["model"] = {"name": MODEL if index < 12 else "other", "version": str(index % 2)}
        body["dataset"] = {"name": DATASET, "version": "1", "split": "test" if index % 3 else "train"}
        if index >= 16:
            body["dataset"] = {"name": "elsewhere"}
        bodies.append(body)
    return [create(project, body) for body in bodies]
