"""Base of all answers: their JSON, a report as text, and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

from prevail.errors import MissingPackage, PrevailError
from prevail.results.html import table_html
from prevail.results.words import table_text, visible
from prevail.wire.steps import Call

# Sends a request for a text and returns it.
Ask = Callable[[Call], str]
_MOST_SHOWN: Final = 20


class Answer:
    """An answer of the service: a light view of its JSON.

    Attributes:
        data: The JSON as it came.
    """

    def __init__(self, data: Mapping[str, Any], again: Call | None = None, ask: Ask | None = None) -> None:
        self.data = dict(data)
        self.again = again
        self._ask = ask
        self._texts: dict[tuple[str, str, int], str] = {}

    def to_dict(self) -> dict[str, Any]:
        """The JSON as it came."""
        return self.data

    @property
    def columns(self) -> Sequence[str]:
        """The columns of a table of it."""
        return ()

    def rows(self) -> Iterator[Sequence[Any]]:
        """A table of it, line by line, with the columns of `columns`."""
        return iter(())

    def to_pandas(self) -> Any:
        """A data frame of pandas."""
        try:
            import pandas as pd  # only where it is asked for
        except ImportError as error:
            raise MissingPackage("to_pandas() needs pandas: pip install pandas", code="missing_package") from error
        return pd.DataFrame([*self.rows()], columns=[*self.columns])

    def to_polars(self) -> Any:
        """A data frame of polars."""
        try:
            import polars as pl  # only where it is asked for
        except ImportError as error:
            raise MissingPackage("to_polars() needs polars: pip install polars", code="missing_package") from error
        return pl.DataFrame([*self.rows()], schema=[*self.columns], orient="row", infer_schema_length=None)

    def keep_text(self, text: str, media: str = "text/plain", style: str = "ascii", width: int = 80) -> None:
        """Remember the report, as a client has asked for it."""
        self._texts[media, style, width] = text

    def text_call(self, media: str, style: str, width: int) -> Call | None:
        """The request that answers the report; None where there is none."""
        if self.again is None:
            return None
        params = {**self.again.params, "style": style, "width": width}
        headers = {**self.again.headers, "Accept": media}
        return Call(
            self.again.method, self.again.path, params, self.again.json, self.again.parts, headers, self.again.patience
        )

    def text(self, media: str = "text/plain", *, style: str = "ascii", width: int = 80) -> str:
        """The service's report: ``text/plain``, ``text/markdown`` or ``text/csv``; asked for once.

        What was saved is read again. What was not is computed again, for which its data is sent a second time.

        Raises:
            PrevailError: the service does not answer; or this came from an asynchronous client, whose ``report`` it is.
        """
        known = self._texts.get((media, style, width))
        if known is not None:
            return known
        call = self.text_call(media, style, width)
        if call is None or self._ask is None:
            raise PrevailError("no report is here yet: await client.report(answer)", code="no_report")
        text = self._ask(call)
        self.keep_text(text, media, style, width)
        return text

    def __str__(self) -> str:
        if self._ask is None and ("text/plain", "ascii", 80) not in self._texts:
            return self.summary()
        return self.text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {visible(self.title())}>"

    def title(self) -> str:
        """The answer in a line."""
        return f"{sum(1 for _ in self.rows()):,} lines"

    def summary(self) -> str:
        """The answer in a line, and the beginning of its table."""
        return f"{visible(self.title())}\n{table_text(self.columns, islice(self.rows(), _MOST_SHOWN))}"

    def _repr_html_(self) -> str | None:
        return f"<p><b>{escape(self.title())}</b></p>{table_html(self.columns, self.rows())}"
