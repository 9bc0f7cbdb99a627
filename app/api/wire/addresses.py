"""Which methods each address takes. A plain address such as /v1/evaluations/batch is never one with a parameter."""

import re
from collections.abc import Iterable

from starlette.routing import Route

_ORDER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Addresses:
    """The addresses of the service."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, set[str]] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], set[str]]] = {}
        for route in routes:
            own = route.methods or set()
            taken = {"OPTIONS", *own, *({"HEAD"} if "GET" in own else ())}
            if "{" in route.path:
                self._patterns.setdefault(route.path, (route.path_regex, set()))[1].update(taken)
            else:
                self._plain.setdefault(route.path, set()).update(taken)

    def refuses(self, path: str, method: str) -> bool:
        """Whether it is plain and does not take the method, so that no route with a parameter is to be asked."""
        taken = self._plain.get(path)
        return taken is not None and method not in taken

    def template(self, path: str) -> str | None:
        """The address as its route has it, with the names of its parameters; None when there is no such address."""
        if path in self._plain:
            return path
        return next((name for name, (pattern, _) in self._patterns.items() if pattern.match(path)), None)

    def methods(self, path: str) -> str:
        """The methods that an address takes, as the header Allow lists them; empty when there is no such address."""
        taken = self._plain.get(path) or {
            method for pattern, methods in self._patterns.values() if pattern.match(path) for method in methods
        }
        return ", ".join(method for method in _ORDER if method in taken)
