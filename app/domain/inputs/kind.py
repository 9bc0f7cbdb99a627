"""The language in which a kind of input is declared: a dataclass whose fields are the members of the JSON.

A field made by `column` has one entry per sample (or item), one made by `option` is anything else. Requests as JSON,
files of columns, large bodies, data by reference, the OpenAPI document and `docs/inputs.md` follow from these fields;
`read` makes the canonical form. `UnitKind` holds what evaluates an input that is more than a matrix of classes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypedDict, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from app.domain.asked import LabelOf, Limits
from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.attributes import MOST_ATTRIBUTES
from app.domain.inputs.columns import (
    check_lengths,
    read_flags,
    read_groups,
    read_ids,
    read_numbers,
    read_rows,
    read_scores,
    read_weights,
)
from app.domain.inputs.content import IGNORED_FACT, LARGEST_TOTAL
from app.domain.inputs.labels import LONGEST_NAME, MOST_CLASSES, as_labels
from app.domain.inputs.matrices import MOST_SAMPLES, MatrixInput
from app.domain.wording import names
from app.kernel.metrics.card import AnyMetric, Card, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.units import Units

# --- members of the JSON ---------------------------------------------------------------------------------------------

_MEMBER = "member"
POSITIVE = "The positive class, K = 2 only; the second label by default."
ATTRIBUTES = (
    "By name one value per sample: a text, a number, true, false or null. Slices are made of them, such as sex, site "
    "or age; texts have at most 1,000 values."
)
GROUPS = (
    "One per sample: the patient, session or other group that it is one of, where samples are not independent. Every "
    "interval then counts groups, not samples."
)


# What columns of numbers have to hold in files.
NUMBERS = frozenset({"numbers", "gaps"})


@dataclass(frozen=True, slots=True)
class Form:
    """The entries of a column.

    Attributes:
        schema: Facts in JSON Schema about an array of them.
        in_files: What a column of a file has to hold; `gaps` are numbers of which some may be missing.
        check: Makes an array of a column as it came, given the JSON pointer to it. Raises InvalidInput, TooLarge.
    """

    schema: Mapping[str, Any]
    in_files: Literal["labels", "ids", "numbers", "gaps", "flags"]
    check: Callable[[Any, str], Any]


def _each(**entry: Any) -> dict[str, Any]:
    return {"items": entry}


def _any_of(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"items": one} for one in entries]}


def _as_it_came(column: Any, _: str) -> Any:
    """Leave a column whose meaning depends on others to the kind."""
    return column


def numbers(lowest: float = -math.inf, highest: float = math.inf, missing: float | None = None) -> Form:
    """Return the form of numbers between two bounds; with ``missing``, what stands for an entry that is null."""
    bounds = {name: one for name, one in (("minimum", lowest), ("maximum", highest)) if math.isfinite(one)}
    check = partial(read_numbers, lowest=lowest, highest=highest, missing=missing)
    if missing is None:
        return Form(_each(**_NUMBER, **bounds), "numbers", check)
    return Form(_any_of({**_NUMBER, **bounds}, {"type": "null"}), "gaps", check)


LABEL_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "format": "visible-text"}
# Of one label, where any may stand.
LABEL_SCHEMA: dict[str, Any] = {"anyOf": [LABEL_TEXT, {"type": "integer"}, {"type": "boolean"}]}
_WHOLE = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_BOOLEAN = {"type": "boolean"}
_NUMBER = {"type": "number"}
_AMOUNT = {"type": "number", "minimum": 0}
_ROW = {"type": "array", "maxItems": MOST_CLASSES}
_SET = {**_ROW, "uniqueItems": True}
_IDS = _any_of({"type": "string", "maxLength": LONGEST_NAME}, _WHOLE)
# Entries of one type: integers sort by value, texts by alphabet.
LABELS = Form(_any_of(LABEL_TEXT, _WHOLE, _BOOLEAN), "labels", as_labels)
# Of which there may be as many as samples.
GROUPINGS = Form(LABELS.schema, "ids", as_labels)
IDS = Form({**_IDS, "uniqueItems": True}, "ids", read_ids)
NAMES_OF_GROUPS = Form(_IDS, "ids", read_groups)
WEIGHTS = Form(_each(**_AMOUNT), "numbers", read_weights)
FLAGS = Form(_each(anyOf=[{"type": "integer", "enum": [0, 1]}, _BOOLEAN]), "labels", read_flags)
SHARES = Form(_each(type="array", items=_AMOUNT, minItems=2, maxItems=MOST_CLASSES), "numbers", read_rows)
POINTS = Form(_each(type="array", items=_NUMBER, minItems=1, maxItems=MOST_CLASSES), "numbers", read_rows)
DISTANCES = Form(_each(type="array", items=_AMOUNT), "numbers", read_rows)
SCORES = Form(
    _any_of(_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": MOST_CLASSES}),
    "numbers",
    read_scores,
)
SETS_OF_LABELS = Form(
    _any_of(
        {**_SET, "items": LABEL_TEXT},
        {**_SET, "items": _WHOLE},
        {"type": "array", "minItems": 2, "maxItems": MOST_CLASSES, "items": {"type": "integer", "enum": [0, 1]}},
    ),
    "flags",
    _as_it_came,
)
TOKENS = Form(
    _each(type="array", maxItems=MOST_SAMPLES, items={"anyOf": [{"type": "string"}, _WHOLE]}), "labels", _as_it_came
)


class Spread(StrEnum):
    """One member in several columns of a file, in the words of messages about these."""

    CLASSES = "one per class named after it"
    LABELS = "one per label, with the member and the label in its name"
    FEATURES = "feature.* if there are features"


@dataclass(frozen=True, slots=True)
class File:
    """A column in files.

    Attributes:
        name: Of the column.
        needed: Must it be there, or one in place of it?
        spread: May it be several columns, and how are they called?
    """

    name: str
    needed: bool = False
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the JSON.

    Attributes:
        about: Description for the OpenAPI document.
        form: Of the entries of a column; None for an option.
        file: The column in files; None where files have none.
        instead: The member that it stands in place of: there is one of all that do, or that member itself.
    """

    about: str | None
    form: Form | None = None
    file: File | None = None
    instead: str | None = None


def column(
    form: Form,
    about: str | None = None,
    file: File | None = None,
    *,
    required: bool = False,
    instead: str | None = None,
) -> Any:
    """A field of one entry per sample; None where it is left out and not ``required``."""
    default = MISSING if required else None
    return field(default=default, metadata={_MEMBER: Member(about, form, file, instead)})


def option(about: str | None = None, default: Any = None, *, required: bool = False) -> Any:
    """A field that is no column."""
    return field(default=MISSING if required else default, metadata={_MEMBER: Member(about)})


# Far beyond any matrix: with fewer the reader says what is wrong with their number.
_MOST_LABELS = 10 * MOST_CLASSES
CLASSES: Mapping[str, Any] = {"minItems": 2, "maxItems": MOST_CLASSES}
FEW: Mapping[str, Any] = {"minItems": 1, "maxItems": MOST_CLASSES}
Entry = Annotated[float, Limits(said={"type": "number", "minimum": 0, "maximum": LARGEST_TOTAL})]
ClassNames = Annotated[list[LabelOf], Limits({"max_length": _MOST_LABELS}, {**CLASSES, "uniqueItems": True})]
GroupNames = Annotated[list[LabelOf], Limits({"max_length": _MOST_LABELS}, {**FEW, "uniqueItems": True})]
Ignored = Annotated[Sequence[LabelOf], Limits({"max_length": MOST_CLASSES})]
_ATTRIBUTE = {"anyOf": [{"type": one} for one in ("string", "number", "boolean", "null")]}
# Values are looked at one by one by the reader.
AttributeColumns = Annotated[
    dict[str, list[Any]],
    Limits(
        {"max_length": MOST_ATTRIBUTES},
        {"additionalProperties": {"type": "array", "items": _ATTRIBUTE, "maxItems": MOST_SAMPLES}},
    ),
]
_ROW_LIMITS = {"max_length": MOST_CLASSES, "fail_fast": True}
MatrixRow = Annotated[list[Entry], Limits(_ROW_LIMITS, CLASSES)]
Matrix = Annotated[list[MatrixRow], Limits({"max_length": MOST_CLASSES}, CLASSES)]
TableRow = Annotated[list[Entry], Limits(_ROW_LIMITS, FEW)]
Table = Annotated[list[TableRow], Limits({"max_length": MOST_CLASSES}, FEW)]


def ids(unit: str = "sample") -> Any:
    """The column `sample_ids`."""
    return column(IDS, f"One id per {unit}; runs are paired by them.", File("sample_id"))


def weights() -> Any:
    """The column `sample_weight`."""
    return column(WEIGHTS, "One weight per sample, 0 or more.", File("sample_weight"))


def groups() -> Any:
    """The column `group_ids`."""
    return column(NAMES_OF_GROUPS, GROUPS, File("group_id"))


# --- a kind ----------------------------------------------------------------------------------------------------------


# Options whose fact has another name. What was ignored is told with its numbers.
_FACT_OF: Final = {"ignore": IGNORED_FACT, "thresholds": "threshold"}


class Beyond(StrEnum):
    """Treatment of more rows of named data than memory holds."""

    COUNTED = "rows that say the same are one entry"
    STREAMED = "rows are read once and forgotten"
    STREAMED_WITH_LABELS = "rows are read once and forgotten, where the labels are declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Members of the JSON, among them columns of one length."""

    @classmethod
    @cache
    def members(cls) -> Mapping[str, Member]:
        """Members of the JSON by name, in their order."""
        return {one.name: one.metadata[_MEMBER] for one in fields(cls) if _MEMBER in one.metadata}

    @classmethod
    def all_columns(cls) -> set[str]:
        """Names of the columns, and of those of tables among the members."""
        tables = [table for hint in get_type_hints(cls, include_extras=True).values() for table in tables_in(hint)]
        return {*cls.columns(), *(name for table in tables for name in table.columns())}

    @classmethod
    def columns(cls) -> dict[str, Form]:
        """Forms of the columns by name, in their order."""
        return {name: member.form for name, member in cls.members().items() if member.form is not None}

    def given(self) -> dict[str, Any]:
        """Columns that came, by name."""
        return {name: value for name in self.columns() if (value := getattr(self, name)) is not None}

    def chosen_way(self, pointer: str, *ways: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the members of which there have to be all, of the one of several ways that a kind can come: each has
        such members, and others that it may have besides. Raises InvalidInput: something is missing or of another way.
        """
        needed_ones = [needed for needed, _ in ways]
        said = (", or " if any(needed[1:] for needed in needed_ones) else " or ").join(map(names, needed_ones))
        there = [name for needed, others in ways for name in (*needed, *others) if getattr(self, name) is not None]
        chosen, besides = next((way for way in ways if not {*way[0]}.isdisjoint(there)), ways[-1])
        other = next((name for name in there if name not in (*chosen, *besides)), None)
        if other is not None:
            raise InvalidInput.at(f"{pointer}/{other}", "one_of", f"expected either {said}, got {other} too")
        absent = next((name for name in chosen if name not in there), None)
        if absent is not None:
            got = f"no {absent}" if {*chosen} & {*there} else "neither"
            raise InvalidInput.at(f"{pointer}/{absent}", "missing_field", f"expected {said}, got {got}")
        return chosen

    def read_columns(self, pointer: str, *, unit: str = "sample") -> dict[str, Any]:
        """Return the columns that came, by name, as arrays with one entry each per ``unit``.

        Raises:
            InvalidInput, TooLarge: there are no entries, a column is of another length, an entry is not of its form, or
                of columns that stand in place of each other there is none or more than one.
        """
        given, forms = self.given(), self.columns()
        replaced = {name: member.instead for name, member in self.members().items() if member.instead is not None}
        for first in dict.fromkeys(replaced.values()):
            names = [first, *(name for name, other in replaced.items() if other == first)]
            found = [name for name in names if name in given]
            either = " or ".join(names)
            if not found:
                raise InvalidInput.at(f"{pointer}/{first}", "missing_field", f"expected {either}, got none of them")
            if found[1:]:
                detail = f"expected either {either}, got {' and '.join(found)}"
                raise InvalidInput.at(f"{pointer}/{found[-1]}", "one_of", detail)
        check_lengths(given, pointer, unit=unit)
        return {name: forms[name].check(one, f"{pointer}/{name}") for name, one in given.items()}


def tables_in(hint: Any) -> list[type[Columns]]:
    """Tables of columns that a member may be, by its type."""
    return [one for one in (hint, *get_args(hint)) if isinstance(one, type) and issubclass(one, Columns)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Columns, ABC):
    """An input of one kind as it came. Its docstring describes it in the OpenAPI document.

    Attributes:
        kind: Name in requests, answers and the store.
        units: What evaluates it; None for matrices of classes.
        in_folds: Can it be a fold of a cross-validation?
        beyond: Treatment of more rows of data that is named than memory holds; None: its data cannot be named.
    """

    kind: ClassVar[str]
    units: ClassVar["UnitKind | None"] = None
    in_folds: ClassVar[bool] = False
    beyond: ClassVar[Beyond | None] = None

    @abstractmethod
    def read(self, pointer: str) -> MatrixInput:
        """The canonical form, with faults told from this JSON pointer. Raises InvalidInput, TooLarge."""

    @classmethod
    def file(cls) -> dict[str, File]:
        """Columns of files by the names of their members: those that have to be there first, numbers last."""
        found = [(name, one) for name, one in cls.members().items() if one.file is not None]
        found.sort(key=lambda pair: pair[1].form is not None and pair[1].form.in_files in NUMBERS)
        return {name: one.file for name, one in found if one.file is not None}

    @classmethod
    def options_of(cls, facts: "Facts") -> dict[str, Any]:
        """Options that a stored input came with, by which the same samples are made of the same columns again.

        Args:
            facts: Of the input, with ``labels``, and ``positive`` where a class is.
        """
        found = {name: facts[_FACT_OF.get(name, name)] for name in cls.members() if _FACT_OF.get(name, name) in facts}
        return {name: [*value] if isinstance(value, dict) else value for name, value in found.items()}


# --- what evaluates inputs that are more than a matrix of classes ----------------------------------------------------


class GroupedMetrics(TypedDict):
    """Values, grouped by how prevalence affects them.

    Attributes:
        prevalence_insensitive: Unchanged when classes are replicated.
        prevalence_sensitive: Move with the mix of the classes.
        at_balanced_prevalence: The sensitive ones again, on the matrix with its rows scaled to equal totals.
    """

    prevalence_insensitive: Mapping[str, float | None]
    prevalence_sensitive: Mapping[str, float | None]
    at_balanced_prevalence: Mapping[str, float | None]


PerClass = Mapping[str, GroupedMetrics]
Values = Mapping[str, float | None]
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reported:
    """An entry of a report: a metric with its parameters, and the name that it has there."""

    name: str
    metric: AnyMetric
    parameters: Mapping[str, Any]

    @property
    def card(self) -> Card:
        """Card of the metric."""
        return self.metric.card

    @classmethod
    def plain(cls, metric: AnyMetric) -> Self:
        """A metric with its default parameters, by its key."""
        return cls(metric.key, metric, metric.card.defaults)


def with_classes_in_order(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    """An input with its classes in their order among others: rows of its counts, and actual classes of its samples."""
    places, samples = [labels.index(label) for label in source.labels], source.samples
    counts = np.zeros((len(labels), *source.counts.shape[1:]), source.counts.dtype)
    counts[places] = source.counts
    if samples is not None:
        samples = replace(samples, truth=np.array(places)[samples.truth])
    return replace(source, labels=labels, counts=counts, samples=samples)


# What is true of a matrix at balanced prevalence, of classes and of most kinds.
EQUALLY_FREQUENT: Final = "were all classes equally frequent"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKind:
    """Functions by which one kind is evaluated, estimated, compared, gated and ranked as all others are.

    Attributes:
        task: What is judged.
        judged: Name of it for people, in the plural.
        shape: Of the counts, from the number of labels and the facts.
        size: Number of units (samples, queries, items) that counts are of.
        needs_samples: Does a report need the samples, by the facts? Else the counts say all.
        inputs: What metrics can be computed from: fewer where scores are missing.
        ranked: What runs are ranked by where nobody says: the first of these that can be computed.
        units: What is resampled. Raises ValueError where samples are needed and missing.
        reordered: An input with its labels in their order among those that several runs share.
        restricted: An input of some of its units alone, by their places, with its samples.
        shown: Members of the input in an answer, beside those that all kinds have.
        twin: The subject as if all labels were equally frequent, for those metrics that it holds something for; None
            where there is no such thing.
        balanced: What is true of the twin, in words.
        findings: What the numbers mean, in words.
        variants: Entries of a report for one metric of an input.
        listed: What is saved of one metric, whatever the report says of it, so that lists can be sorted by it.
        of_units: Metrics by which single units are looked at.
        details: Members of a report that are no metric, at a level of confidence and with costs [K, M], if any.
        unit: What units are called in texts, in the plural; None: as samples.
        figure: The figure that its page shows.
    """

    task: Task
    judged: str
    shape: Callable[[int, Facts], tuple[int, ...]]
    size: Callable[[NDArray[Any]], float] = lambda counts: counts.sum().item()
    needs_samples: Callable[[Facts], bool] = lambda _: True
    inputs: Callable[[MatrixInput], frozenset[Inputs]]
    ranked: tuple[AnyMetric, ...] = ()
    units: Callable[[MatrixInput], Units]
    reordered: Callable[[MatrixInput, tuple[str, ...]], MatrixInput] = with_classes_in_order
    restricted: Callable[[MatrixInput, NDArray[np.intp]], MatrixInput]
    shown: Callable[[MatrixInput], Facts] = lambda _: {}
    twin: Callable[[Subject], Subject | None] = lambda _: None
    balanced: str = EQUALLY_FREQUENT
    findings: Callable[[MatrixInput, Subject, Values, PerClass], Iterable[Finding]]
    variants: Callable[[MatrixInput, AnyMetric], Iterable[Reported]] = lambda _, metric: (Reported.plain(metric),)
    listed: Callable[[AnyMetric], Iterable[Reported]] = lambda metric: (Reported.plain(metric),)
    of_units: tuple[AnyMetric, ...] = ()
    details: Callable[[MatrixInput, Subject, float, Array | None], Facts] = lambda *_: {}
    unit: str | None = None
    figure: str | None = None
