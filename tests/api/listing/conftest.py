"""What tests of lists and of removals share: projects of their own, and a few evaluations."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.api.answers import Json, evaluation, matrix_input

# H is undefined in the last: a class has no samples.
MATRICES = [[[4, 1], [1, 4]], [[8, 2], [2, 8]], [[9, 1], [5, 5]], [[3, 7], [6, 4]], [[7, 3], [0, 0]]]
MODEL = "team/forest v2"
DATASET = "s3://bucket/a b"
# Limits are most of the work, and no test here asks for them.
QUICK = {"intervals": "none"}


@contextmanager
def new_project(base_url: str) -> Iterator[httpx.Client]:
    """A client in a project where nothing is yet."""
    headers = {"X-Prevail-Project": f"p-{secrets.token_hex(6)}"}
    with httpx.Client(base_url=base_url, timeout=60, headers=headers) as opened:
        yield opened


@pytest.fixture
def project(base_url: str) -> Iterator[httpx.Client]:
    """A project for one test alone."""
    with new_project(base_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def shelf(base_url: str) -> Iterator[httpx.Client]:
    """A project in which tests of a module only read."""
    with new_project(base_url) as opened:
        yield opened


@pytest.fixture
def kept(project: httpx.Client) -> list[Json]:
    """Twenty evaluations in a project that a test may change."""
    return twenty(project)


@pytest.fixture(scope="module")
def shelved(shelf: httpx.Client) -> list[Json]:
    """Twenty evaluations in the project that is only read."""
    return twenty(shelf)


def twenty(project: httpx.Client) -> list[Json]:
    """Twenty evaluations, oldest first: two models, two versions each, two datasets, one of them with two splits."""
    bodies = []
    for index in range(20):
        body = evaluation(input=matrix_input(MATRICES[index % 5]), tags={"even": str(index % 2 == 0)}, options=QUICK)
        body["model"] = {"name": MODEL if index < 12 else "other", "version": str(index % 2)}
        body["dataset"] = {"name": DATASET, "version": "1", "split": "test" if index % 3 else "train"}
        if index >= 16:
            body["dataset"] = {"name": "elsewhere"}
        bodies.append(body)
    reply = project.post("/v1/evaluations/batch", json={"evaluations": bodies})
    assert reply.status_code == 207, reply.text
    return [item["evaluation"] for item in reply.json()["items"]]
