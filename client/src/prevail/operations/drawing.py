"""Figures, pictures of them, and reports as pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from prevail.operations.asking import Asking, segment
from prevail.operations.naming import Name, Run, dataset_ref, several
from prevail.results.listing import Figure, Listing
from prevail.wire.exchange import exchange
from prevail.wire.steps import Call, Flow, operation


class Drawing(Asking):
    """Operations that answer what is looked at."""

    def _drawn(self, path: str, options: Mapping[str, Any]) -> Flow[Figure]:
        return (yield from self._made(Figure, Call("GET", path, options)))

    @operation
    def plots(self) -> Flow[Listing]:
        """The figures that there are, what each shows, and what it needs."""
        data = yield from self._answered(Call("GET", "/v1/plots"))
        return Listing(data["items"])

    @operation
    def plot(self, /, run: Run, name: str, *, of: str | None = None, **options: Any) -> Flow[Figure]:
        """A figure of a run as a Vega-Lite specification, such as ``confusion``; ``of`` is a class."""
        identifier = yield from self._identified(run)
        options = {"class": of, **options}
        return (yield from self._drawn(f"/v1/evaluations/{identifier}/plots/{name}.json", options))

    @operation
    def comparison_plot(self, /, identifier: str, name: str = "differences", **options: Any) -> Flow[Figure]:
        """Return a figure of a stored comparison, as a Vega-Lite specification."""
        return (yield from self._drawn(f"/v1/comparisons/{identifier}/plots/{name}.json", options))

    @operation
    def check_plot(self, /, gate: str, identifier: str, name: str = "verdict", **options: Any) -> Flow[Figure]:
        """Return a figure of a check by a gate, as a Vega-Lite specification."""
        path = f"/v1/gates/{segment(gate)}/checks/{segment(identifier)}/plots/{name}.json"
        return (yield from self._drawn(path, options))

    @operation
    def history_plot(
        self, /, model: str, dataset: Name, *metrics: str, name: str = "history", **options: Any
    ) -> Flow[Figure]:
        """Return a figure of the history of a model on a data set, as a Vega-Lite specification."""
        path = f"/v1/models/{segment(model)}/history/plots/{name}.json"
        place = dataset_ref(dataset) or {}
        names = {"dataset": place.get("name"), "dataset_version": place.get("version"), "split": place.get("split")}
        return (yield from self._drawn(path, {**names, "metric": list(metrics), **options}))

    @operation
    def slices_plot(self, /, run: Run, by: Sequence[str], *metrics: str, **options: Any) -> Flow[Figure]:
        """Return what is lost in the slices of two attributes, as a Vega-Lite specification."""
        identifier = yield from self._identified(run)
        path = f"/v1/evaluations/{identifier}/slices/plots/slices.json"
        return (yield from self._drawn(path, {"by": several(by, "by"), "metric": list(metrics), **options}))

    @operation
    def page(self, /, run: Run, *, theme: str | None = None) -> Flow[str]:
        """The report of a run as one HTML file that loads nothing."""
        identifier = yield from self._identified(run)
        reply = yield from exchange(Call("GET", f"/v1/evaluations/{identifier}/report", {"theme": theme}), self.retries)
        return reply.text

    @operation
    def comparison_page(self, /, identifier: str, *, theme: str | None = None) -> Flow[str]:
        """Return the report of a stored comparison as an HTML page."""
        reply = yield from exchange(Call("GET", f"/v1/comparisons/{identifier}/report", {"theme": theme}), self.retries)
        return reply.text
