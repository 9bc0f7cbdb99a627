"""How routes are made, as far as it decides what each request costs."""

from collections.abc import Iterator
from inspect import iscoroutinefunction

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.main import create_app
from app.settings import Settings


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
