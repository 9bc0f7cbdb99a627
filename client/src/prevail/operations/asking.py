"""Base of all operations: sending a request, reading a list to its end, and asking for a text."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from prevail.errors import InvalidInput, NotFound
from prevail.operations.naming import Name, Run, identified
from prevail.results.answer import Answer, Ask
from prevail.results.listing import Facts, Listing
from prevail.wire.exchange import Retries, answered, exchange
from prevail.wire.steps import Call, Flow, Reply, operation

Kind = TypeVar("Kind", bound=Answer)
_PAGE = 200


def segment(name: str) -> str:
    """A name as a part of an address, whatever is in it."""
    return quote(name, safe="")


def check_limit(limit: int | None) -> None:
    """Raise InvalidInput where no items are asked for."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit: expected at least 1, got {limit}", code="out_of_range")


class Asking:
    """A client's requests."""

    retries: Retries
    # Of the synchronous client: sends a request for a text and returns it.
    ask: Ask | None = None

    def _answered(self, call: Call) -> Flow[dict[str, Any]]:
        return answered(call, self.retries)

    def _made(self, kind: type[Kind], call: Call, again: str | None = None) -> Flow[Kind]:
        """An answer whose report is read at ``again``, with the id of the answer in it, or made by the same request."""
        data = yield from self._answered(call)
        once_more = call if again is None or data.get("id") is None else Call("GET", again.format(data["id"]))
        return kind(data, once_more, self.ask)

    def _facts(self, method: str, path: str, body: Any = None, **params: Any) -> Flow[Facts]:
        data = yield from self._answered(Call(method, path, params, body))
        return Facts(data)

    def _listed(self, path: str, limit: int | None, **params: Any) -> Flow[Listing]:
        """Read the pages of a list, up to so many items.

        Raises:
            InvalidInput: none are asked for.
        """
        check_limit(limit)
        items: list[Mapping[str, Any]] = []
        cursor = None
        while limit is None or len(items) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(items))
            page = yield from self._answered(Call("GET", path, {**params, "limit": size, "cursor": cursor}))
            items += page["items"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return Listing(items)
        return Listing(items, is_complete=False)

    def _identified(self, run: Run, dataset: Name | None = None, split: str | None = None) -> Flow[str]:
        return identified(run, self.retries, dataset, split)

    @operation
    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Flow[Reply]:
        """Any request, with the address, the key and the retries of this client; for what has no method of its own.

        Raises:
            InvalidInput: the path does not begin with a slash, or the request is refused.
            PrevailError: another reason, see `prevail.errors`.
        """
        if not path.startswith("/"):
            raise InvalidInput(f"path: expected one that begins with /, such as /v1/metrics, got {path!r}", code="path")
        reply = yield from exchange(Call(method, path, params or {}, json, None, headers or {}), self.retries)
        return reply

    @operation
    def report(self, answer: Answer, media: str = "text/plain", *, style: str = "ascii", width: int = 80) -> Flow[str]:
        """The service's report of an answer, as text, Markdown (``text/markdown``) or CSV (``text/csv``).

        Afterwards ``str(answer)`` is the text, also with an asynchronous client.
        """
        call = answer.text_call(media, style, width)
        if call is None:
            raise NotFound(f"there is no report of {type(answer).__name__}", code="no_report")
        reply = yield from exchange(call, self.retries)
        answer.keep_text(reply.text, media, style, width)
        return reply.text
