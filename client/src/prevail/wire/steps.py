"""A conversation as a generator: it yields what is to be done and is sent what came of it.

The two clients differ in how a step is done and in nothing else, so that every method is written once.
"""

import functools
import inspect
import json
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, overload

P = ParamSpec("P")
R = TypeVar("R")
# Makes the parts of a body; called again for every try.
Parts = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        path: Begins with a slash, without the address of the service.
        params: Of the address; a list of values is sent as several, and None is left out.
        json: The body as JSON, or None for no body or ``parts``.
        parts: In place of it what makes a body that is sent part by part.
        patience: Seconds to wait for the answer, where that may be more than usual.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    parts: Parts | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: float | None = None

    def query(self) -> list[tuple[str, str]]:
        """The parameters of the address as they are sent."""
        found = []
        for name, value in self.params.items():
            several = value if isinstance(value, list | tuple) else [value]
            found += [(name, _text(one)) for one in several if one is not None]
        return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that was read to its end. Names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    url: str = ""

    @property
    def is_json(self) -> bool:
        """Is it JSON by its media type?"""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return media == "application/json" or media.endswith("+json")

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.content)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Lost:
    """A request that got no answer.

    Attributes:
        reason: Why, in words.
        lasting: Would another try end in the same way? A certificate that does not fit will not fit later.
        unsent: Is it certain that the service has not seen the request?
    """

    reason: str
    url: str
    lasting: bool = False
    unsent: bool = False


Step = Call | Pause
Flow = Generator[Step, Any, R]


class Synchronous:
    """Carries out the steps of a flow one after the other."""

    def drive(self, flow: Flow[R]) -> R:
        """Carry out a flow; returns what it returns."""
        raise NotImplementedError


class Asynchronous:
    """Carries out the steps of a flow in an event loop."""

    async def drive(self, flow: Flow[R]) -> R:
        """Carry out a flow; returns what it returns."""
        raise NotImplementedError


class Operation(Generic[P, R]):
    """A method written once as a flow: of a synchronous client a function, of an asynchronous one a coroutine."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[R]]) -> None:
        self.flow = flow
        self.__name__, self.__doc__ = flow.__name__, flow.__doc__
        self._shown: Any = None

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, instance: Synchronous, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        whole = self._signature()
        if instance is None:

            @functools.wraps(self.flow)
            def function(client: Any, *arguments: P.args, **named: P.kwargs) -> Any:
                return client.drive(self.flow(client, *arguments, **named))

            function.__signature__ = whole  # type: ignore[attr-defined]  # `inspect` reads it
            return function
        bound = functools.partial(self.flow, instance)

        @functools.wraps(self.flow)
        def method(*arguments: P.args, **named: P.kwargs) -> Any:
            return instance.drive(bound(*arguments, **named))

        # Without `self`, which is bound.
        own = whole.replace(parameters=[*whole.parameters.values()][1:])
        method.__signature__ = own  # type: ignore[attr-defined]  # `inspect` reads it
        return method

    def _signature(self) -> inspect.Signature:
        """The signature of what is called: it returns what the flow returns in the end."""
        if self._shown is None:
            found = inspect.signature(self.flow)
            self._shown = found.replace(return_annotation=get_args(found.return_annotation)[2])
        shown: inspect.Signature = self._shown
        return shown


def operation(flow: Callable[Concatenate[Any, P], Flow[R]]) -> Operation[P, R]:
    """A method of both clients."""
    return Operation(flow)
