"""What is made once, so that the first view of a page costs little more than the next."""

import asyncio
import gc
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from jinja2 import DictLoader, Environment
from starlette.types import Message

from app import main
from app.api.jobs import DeferredRequests
from app.api.report import Compiled, templates
from app.domain.operations import Task
from app.main import create_app
from app.settings import Settings
from tests.api.conftest import usual_settings


def test_no_route_is_built_again_and_no_parameter_is_read_in_a_thread() -> None:
    def within(found: Dependant) -> Iterator[Dependant]:
        for each in found.dependencies:
            yield each
            yield from within(each)

    app = create_app(Settings(database_url="postgresql+asyncpg://nobody@nowhere/none"))
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert {"/readyz", "/v1/evaluations", "/ui/history"} < {route.path for route in routes}
    assert not [type(route).__name__ for route in app.routes if "Router" in type(route).__name__]
    called = [each for route in routes for each in within(route.dependant)]
    assert [each.call for each in called if not iscoroutinefunction(each.call)] == []


def test_templates_are_compiled_once_and_each_time_where_nobody_may_write(tmp_path: Path) -> None:
    def written(folder: Path) -> str:
        made = Environment(
            loader=DictLoader({"a": "{{ 6 * n }}"}), bytecode_cache=Compiled(str(folder)), autoescape=True
        )
        return made.get_template("a").render(n=7)

    assert (written(tmp_path / "missing"), [*tmp_path.iterdir()]) == ("42", [])
    assert written(tmp_path) == "42"
    (kept,) = tmp_path.iterdir()
    before = kept.stat()
    assert (written(tmp_path), kept.stat().st_ino) == ("42", before.st_ino)
    kept.write_bytes(kept.read_bytes()[:-20])
    assert written(tmp_path) == "42"
    assert isinstance(templates("app.api.ui").bytecode_cache, Compiled)


@pytest.mark.parametrize("is_there", [True, False])
def test_the_home_page_is_read_before_anybody_asks_for_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_there: bool
) -> None:
    answered, messages = list[Message](), DeferredRequests.messages

    async def noted(self: DeferredRequests, task: Task) -> list[Message]:
        answered.extend(await messages(self, task))
        return answered

    async def start() -> None:
        url = database_url if is_there else "postgresql+asyncpg://nobody:x@127.0.0.1:9/none"
        app = create_app(usual_settings(url), alone=True)
        async with app.router.lifespan_context(app), asyncio.timeout(20):
            while not answered:
                await asyncio.sleep(0.01)

    monkeypatch.setattr(main, "_FIRST_PAGE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(DeferredRequests, "messages", noted)
    asyncio.run(start())
    gc.collect()
    first, *_ = answered
    assert first["status"] == (200 if is_there else 503)
    assert (b"content-type", b"text/html; charset=utf-8") in first["headers"]
    assert "never retrieved" not in caplog.text
