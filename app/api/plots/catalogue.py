"""All figures, and the one way to draw one. Whoever adds a module of figures names it here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.api.answers import write_json
from app.api.plots import causes, classes, differences, histories, kinds, matrices, rates, samples, slices, verdicts
from app.api.plots.registry import PLOTS, FigureData, PlotFacts, Subject

# Imported for the figures that they enter into the registry. Figures are listed in this order, whichever module was
# imported first.
MODULES: Final = (matrices, classes, samples, rates, kinds, differences, verdicts, histories, slices, causes)

_PLACES: Final = {module.__name__: place for place, module in enumerate(MODULES)}
_IN_ORDER: Final = sorted(PLOTS.values(), key=lambda plot: ([*Subject].index(plot.of), _PLACES[plot.make.__module__]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotList:
    """All figures."""

    items: Sequence[PlotFacts]


def plot_list() -> PlotList:
    """Return all figures, those of evaluations first."""
    return PlotList(items=_IN_ORDER)


def names_of(subject: Subject) -> list[str]:
    """The names of the figures of an evaluation, a comparison or another subject."""
    return [plot.name for plot in _IN_ORDER if plot.of is subject]


def drawn(subject: Subject, name: str, given: FigureData) -> bytes:
    """The specification of a figure as JSON."""
    return write_json(PLOTS[subject, name].make(given).specification(given.look))
