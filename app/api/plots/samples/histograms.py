"""Where the scores of a class lie, beside those of the other classes, and where the decision cuts them."""

from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import NUMBERS, WIDE, Row, data, quantity, sentences, side_by_side
from app.api.plots.registry import Given, Needs, figure, place_in, weakest_first
from app.domain.errors import NoFigure
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import name, number, share, whole
from app.services.decide.distributions import Histogram, histogram_of

_BINS: Final = 40
_HEIGHT: Final = 110


@figure("scores", needs=Needs.SAMPLES, by_class=True)
def scores(given: Given) -> Figure:
    """Histograms of the scores of a class, for its own samples and for all others, with the cut of the decision."""
    source = given.run.samples
    if source.task is not None:
        raise NoFigure(f"expected an evaluation of classes, got {source.kind}")
    place = _place(source, given.label)
    label = name(shown(source.labels[place]))
    found = histogram_of(source, place, _BINS)
    what = f"{'probability' if found.are_probabilities else 'score'} of class {label}"
    highest = max(float(found.inside.max()), float(found.outside.max())) or 1.0
    panels = [
        _panel(given.look, found, inside=inside, title=title, what=what, highest=highest)
        for inside, title in ((True, f"samples of class {label}"), (False, "all other samples"))
    ]
    cut = f"dashed: the decision cuts at {number(found.cut)}" if found.cut is not None else ""
    return Figure(
        title=f"{what[0].upper()}{what[1:]}",
        subtitle=(given.heading, "; ".join(one for one in ("bars add up to 1 in each panel", cut) if one)),
        text=sentences(
            f"Histograms of the {what}: {whole(found.n_inside)} samples of the class and {whole(found.n_outside)} "
            "others.",
            _cut_in_words(source, place, found),
        ),
        body=side_by_side(panels, below=True),
    )


def _place(source: MatrixInput, label: str | None) -> int:
    if label is not None:
        return place_in(source.labels, label)
    return weakest_first(source)[0] if source.positive is None else source.positive


def _cut_in_words(source: MatrixInput, place: int, found: Histogram) -> str:
    """How many lie on either side of the cut, by the matrix of the decisions."""
    if found.cut is None:
        return ""
    counts = source.counts
    own, chosen = float(counts[place, place]), float(counts[:, place].sum())
    parts = [
        f"{share(part / total)} of {whose}"
        for part, total, whose in (
            (own, found.n_inside, "the class"),
            (chosen - own, found.n_outside, "the others"),
        )
        if total
    ]
    return f"The decision cuts at {number(found.cut)}: {' and '.join(parts)} are decided to be of the class."


def _panel(look: Look, found: Histogram, *, inside: bool, title: str, what: str, highest: float) -> Spec:
    edges, heights = found.edges.tolist(), (found.inside if inside else found.outside).tolist()
    rows: list[Row] = [
        {"from": start, "to": end, "share": height, "zero": 0}
        for start, end, height in zip(edges, edges[1:], heights, strict=False)
        if height
    ]
    ends = (min(edges[0], edges[0] if found.cut is None else found.cut), edges[-1])
    ends = (ends[0], max(ends[1], edges[-1] if found.cut is None else found.cut))
    x = quantity("from", None if inside else what, domain=ends, tickCount=5, format=NUMBERS)
    y = quantity("share", "share of these samples", domain=(0.0, 1.05 * highest), tickCount=3, format="~%")
    colour = look.accent if inside else look.quiet
    layers: list[Spec] = [
        {
            "name": "inside" if inside else "outside",
            "data": data(rows),
            "mark": {"type": "rect", "color": colour, "stroke": look.paper, "strokeWidth": 0.5},
            "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "zero"}},
        }
    ]
    if found.cut is not None:
        layers.append(
            {
                "name": "cut",
                "data": data([{"from": found.cut}]),
                "mark": {"type": "rule", "style": "reference", "color": look.ink, "strokeWidth": 1.5},
                "encoding": {"x": x},
            }
        )
    return {
        "title": {"text": title, "fontSize": 12, "fontWeight": 400, "anchor": "start"},
        "width": look.width or WIDE + 60,
        "height": look.height or _HEIGHT,
        "layer": layers,
    }
