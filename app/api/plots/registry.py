"""The figures that there are. A figure is one function, and its line in the catalogue is its docstring.

@figure("roc", needs=Needs.SAMPLES, several=True)
def roc(given: FigureData) -> Figure:
'''How many of a class are found at each share of false alarms.'''
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final

from numpy.typing import NDArray

from app.api.documents.document import Json
from app.api.documents.reading import has_classes
from app.api.plots.look import Figure, Look
from app.api.plots.marks import apart
from app.domain.errors import NoFigure
from app.domain.inputs.labels import place_in
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import HIDDEN, as_json
from app.domain.wording import run_names, run_title
from app.services.decide.curves import CurveQuestion, curve_of


class Subject(StrEnum):
    """The kind of record that a figure shows."""

    EVALUATION = "evaluation"
    COMPARISON = "comparison"
    CHECK = "check"
    HISTORY = "history"
    SLICES = "slices"


class Needs(Enum):
    """The data that a figure is made of.

    Attributes:
        of: The record that has them.
        words: What has to be there, in words.
    """

    REPORT = "report", Subject.EVALUATION, "an evaluation of classes"
    SAMPLES = "samples", Subject.EVALUATION, "an evaluation of probabilities or scores whose samples are saved"
    SWEEP = "sweep", Subject.EVALUATION, "an evaluation of classes"
    COMPARISON = "comparison", Subject.COMPARISON, "a comparison of runs"
    TOURNAMENT = "tournament", Subject.COMPARISON, "a comparison of models across datasets"
    CHECK = "check", Subject.CHECK, "a check of an evaluation by a gate"
    HISTORY = "history", Subject.HISTORY, "the evaluations of a model on a dataset"
    SLICES = "slices", Subject.SLICES, "slices of an evaluation"
    UNITS = "units", Subject.EVALUATION, "an evaluation of rankings or sets whose samples are saved"
    CLUSTERS = "clusters", Subject.EVALUATION, "an evaluation of a clustering whose classes are known"

    def __init__(self, _: str, of: Subject, words: str) -> None:
        self.of, self.words = of, words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One run of a figure.

    Attributes:
        of: What is called `model` and `dataset` in the answers.
        report: The evaluation as it is answered, where the figure needs it.
        sweep: The same of its projection.
        source: Its input with the samples, where the figure needs these.
    """

    of: Json
    report: Json = field(default_factory=dict)
    sweep: Json = field(default_factory=dict)
    source: MatrixInput | None = None

    @property
    def title(self) -> str:
        """Title of the run: its model and its dataset."""
        return run_title(self.of)

    @property
    def samples(self) -> MatrixInput:
        """Its input with the samples, which a figure that needs them is given."""
        if self.source is None:
            raise ValueError(f"expected the samples of {self.title}: the figure does not say that it needs them")
        return self.source

    def curve(self, question: CurveQuestion) -> Json:
        """A curve of its samples as it is answered."""
        return as_answered(curve_of(self.samples, question))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FigureData:
    """The data of one figure.

    Attributes:
        label: The class that was asked for.
        runs: The run it is of, and those to be drawn with it; none where it is of something else.
        answer: That, as it is answered.
    """

    look: Look = field(default_factory=Look)
    label: str | None = None
    runs: Sequence[Run] = ()
    answer: Json = field(default_factory=dict)

    @property
    def run(self) -> Run:
        """The run that the figure is of."""
        return self.runs[0]

    @property
    def names(self) -> list[str]:
        """Names that tell the runs apart."""
        return apart(run_names([run.of for run in self.runs]))

    @property
    def heading(self) -> str:
        """Title of the run; empty where a legend names several."""
        return self.run.title if len(self.runs) == 1 else ""


as_answered: Callable[[Any], Json] = as_json


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotFacts:
    """A figure that can be asked for.

    Attributes:
        of: What it is of: `evaluation`, `comparison`, `check`, `history` or `slices`.
        shows: What is seen in it.
        needs: What it is made of.
        parameters: Parameters of the address that it takes beside those of how it looks.
        room: Pixels of height that a page keeps for it and its words, by the answer that it is of: the page has its
            length before the figure is drawn. 0 where a page comes with it.
        broad: No other figure has room beside it on a page.
    """

    name: str
    of: Subject
    shows: str
    needs: str
    parameters: Sequence[str]
    data: Needs = field(metadata=HIDDEN)
    make: Callable[[FigureData], Figure] = field(metadata=HIDDEN)
    room: Callable[[Json], int] = field(metadata=HIDDEN)
    broad: bool = field(metadata=HIDDEN)


PLOTS: Final[dict[tuple[Subject, str], PlotFacts]] = {}


def figure(
    name: str,
    *,
    needs: Needs,
    several: bool = False,
    by_class: bool = False,
    room: Callable[[Json], int] = lambda _: 540,
    broad: bool = False,
) -> Callable[[Callable[[FigureData], Figure]], Callable[[FigureData], Figure]]:
    """Enter a function into the registry; ``several``: further runs can be drawn with it, ``by_class``: `class` chooses
    what is drawn, and the rest as of `PlotFacts`.
    """

    def entered(make: Callable[[FigureData], Figure]) -> Callable[[FigureData], Figure]:
        PLOTS[needs.of, str(name)] = PlotFacts(
            name=str(name),
            of=needs.of,
            shows=" ".join((make.__doc__ or "").split()),
            needs=needs.words,
            parameters=[*["class"] * by_class, *["with"] * several],
            data=needs,
            make=make,
            room=room,
            broad=broad,
        )
        return make

    return entered


def matrix_of(run: Run) -> list[list[float]]:
    """The confusion matrix of a report; raises NoFigure where it has none."""
    matrix: list[list[float]] | None = run.report["input"].get("confusion_matrix")
    if matrix is None:
        raise NoFigure(f"expected an evaluation with a confusion matrix, got {run.report['input']['kind']}")
    return matrix


def class_of(given: FigureData, run: Run) -> int:
    """The place in a run of the class that was asked for, else of the positive one of the first run, else of its one
    with the lowest recall: all runs of a figure show the same class. Raises NoFigure where there are no classes, and
    UnknownClass where there is none of this name.
    """
    needs_classes(run.report)
    label = given.label
    if label is None:
        first = given.run.report
        weakest = first["headline"]["weakest_class"] or {"label": first["input"]["labels"][0]}
        positive = first["input"].get("positive")
        label = weakest["label"] if positive is None else positive
    return place_in(run.report["input"]["labels"], label)


def hits_of(source: MatrixInput) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """True positives, actual and predicted positives (K each) of every class, or of every label."""
    counts = source.counts
    if source.task is not None:
        return counts[:, 1, 1], counts[:, 1].sum(axis=1), counts[:, :, 1].sum(axis=1)
    return counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)


def weakest_first(source: MatrixInput) -> list[int]:
    """Places of the classes that have samples, or of the labels that some have and others have not, that of the lowest
    recall first; raises NoFigure where there is no such label.
    """
    found, actual, _ = hits_of(source)
    present = [place for place, one in enumerate(actual) if one and (source.task is None or one < source.n_samples)]
    if not present:
        raise NoFigure("expected a label that some samples have and others have not, got none")
    return sorted(present, key=lambda place: float(found[place] / actual[place]))


def needs_classes(report: Json) -> None:
    """Refuse what has no classes; raises NoFigure."""
    if not has_classes(report):
        raise NoFigure(f"expected an evaluation of classes or labels, got {report['input']['kind']}")
