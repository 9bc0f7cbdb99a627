"""Regions and answers: items with a set that is there and a set that was predicted."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.columns import designed, samples_of
from app.domain.inputs.content import Content
from app.domain.inputs.kind import (
    FLAGS,
    LABELS,
    TOKENS,
    Facts,
    File,
    Input,
    PerClass,
    UnitKind,
    Values,
    column,
    groups,
    ids,
    numbers,
    option,
)
from app.domain.inputs.labels import Column, Numbers, encode
from app.domain.inputs.matrices import MatrixInput, check_found_labels
from app.domain.inputs.samples import Samples
from app.domain.wording import classes, described, listed, number, shown
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.label_sets import samples_f1, samples_jaccard
from app.kernel.metrics.families.overlaps import pooled_jaccard
from app.kernel.uncertainty.units import ItemUnits
from app.kernel.units.overlaps import Overlaps

# Sums of so many larger ones are not exact.
LARGEST_SIZE = 1e15
_WITHOUT_CLASSES = INPUTS_OF[Task.SETS] - {Inputs.CLASS_OVERLAPS}
_SIZES = numbers(0.0, LARGEST_SIZE)
# With fewer items of a class little is known of it.
_FEW = 10
# Pooled values that far from the mean over the items say something else.
_APART = 0.1
_MOST_NAMED = 20
_OF_SIZES, _OF_LISTS = ("n_true", "n_predicted", "n_common"), ("y_true", "y_pred")


def _overlap_units(source: MatrixInput) -> ItemUnits:
    """The items with their sizes. Raises ValueError where they are not known."""
    samples = source.known_samples
    codes = samples.truth.astype(np.intp, copy=False) if source.labels else None
    exact = np.asarray(samples.predicted, dtype=bool)
    items = Overlaps(*samples.known_outputs.T, exact=exact, codes=codes, n_classes=len(source.labels))
    return ItemUnits(items, Inputs.LABELS, Inputs.OVERLAPS, *[Inputs.CLASS_OVERLAPS] * bool(source.labels))


def _findings(source: MatrixInput, _: Subject, values: Values, __: PerClass) -> Iterator[Finding]:
    per_item, pooled = values.get(samples_jaccard.key), values.get(pooled_jaccard.key)
    if per_item is not None and pooled is not None and abs(per_item - pooled) >= _APART:
        better = "large" if pooled > per_item else "small"
        yield Finding.note(
            "size_matters",
            f"{samples_jaccard.key}, in which all items count alike, is {number(per_item)}; {pooled_jaccard.key}, in "
            f"which large items count most, is {number(pooled)}: {better} items are predicted better than others.",
            per_item=per_item,
            pooled=pooled,
        )
    sizes = source.counts.sum(axis=1).tolist()
    few = [label for label, size in zip(source.labels, sizes, strict=False) if size < _FEW]
    if few:
        yield Finding.warning(
            "classes_with_few_items",
            f"There are fewer than {_FEW} items of {classes(few)}: little is known of "
            f"{'these classes' if few[1:] else 'this class'}.{listed(few)}",
            classes=few[:_MOST_NAMED],
        )


def _made(labels: tuple[str, ...], samples: Samples) -> MatrixInput:
    """The canonical form of items of some classes, or of none."""
    n_rows = max(len(labels), 1)
    return MatrixInput(
        kind=Sets.kind,
        labels=labels,
        positive=None,
        content=Content.counts,
        counts=np.bincount(2 * samples.truth + samples.predicted, minlength=2 * n_rows).reshape(n_rows, 2),
        facts={"rows": samples.size, **designed(samples)[1]},
        samples=samples,
    )


def _shown(source: MatrixInput) -> Facts:
    found: dict[str, Any] = {"exact_matches": source.counts[:, 1].sum().item()}
    if source.labels:
        found["class_sizes"] = source.counts.sum(axis=1).tolist()
    return found


_UNITS = UnitKind(
    task=Task.SETS,
    judged="sets",
    # Of each class of items, or of all in one row: how many are not exactly what was predicted, and how many are.
    shape=lambda n_classes, _: (max(n_classes, 1), 2),
    inputs=lambda source: INPUTS_OF[Task.SETS] if source.labels else _WITHOUT_CLASSES,
    ranked=(samples_f1,),
    units=_overlap_units,
    restricted=lambda source, places: _made(source.labels, source.known_samples.taken(places)),
    shown=_shown,
    findings=_findings,
    of_units=(samples_jaccard, samples_f1),
    unit="items",
    figure="per_item",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets(Input):
    """Regions or answers: for each item what is there and what was predicted, as sizes or as lists."""

    kind: ClassVar[str] = "sets"
    units: ClassVar[UnitKind | None] = _UNITS

    n_true: Numbers | None = column(
        _SIZES, "How much is there in each item: pixels, tokens, ids, or an area.", File("n_true", needed=True)
    )
    n_predicted: Numbers | None = column(_SIZES, "How much was predicted for it.", File("n_predicted", needed=True))
    n_common: Numbers | None = column(_SIZES, "How much of it belongs to both.", File("n_common", needed=True))
    y_true: Sequence[Any] | None = column(
        TOKENS,
        "In place of these sizes: the tokens or ids of each item, each as often as it occurs. Their order is not "
        "looked at.",
    )
    y_pred: Sequence[Any] | None = column(TOKENS, "Those predicted for it.")
    tagging: Literal["BIO"] | None = option(
        "The tokens of an item are the tags of a sentence, such as B-PER, I-PER and O: what is compared are the "
        "entities that they make, with their types and places."
    )
    exact: Column | None = column(
        FLAGS,
        "Whether each item was predicted exactly, where sizes do not say it, as with the order of tokens; when left "
        "out, true for items whose three sizes are equal.",
        File("exact"),
    )
    item_classes: Column | None = column(
        LABELS, "The class of each item, for values of every class and means over classes.", File("item_class")
    )
    sample_ids: Column | None = ids("item")
    group_ids: Column | None = groups()

    def read(self, pointer: str) -> MatrixInput:
        """Numbers of items of each class that are not exactly what was predicted and that are, and the samples.

        Of the columns of samples ``truth`` has the codes of the classes, ``predicted`` what is exact, and ``outputs``
        [n, 3] the sizes: there, predicted, common.
        """
        wanted = self.chosen_way(pointer, (_OF_SIZES, ()), (_OF_LISTS, ()))
        read = self.read_columns(pointer, unit="item")
        columns = [read[name] for name in wanted]
        if self.tagging is not None:
            columns = _tagged(columns, pointer, of_lists=wanted is _OF_LISTS)
        sizes = (_sizes if wanted is _OF_SIZES else _sizes_of_lists)(columns, pointer)
        exact = _exact(sizes, read.get("exact"), f"{pointer}/exact")
        labels: tuple[str, ...] = ()
        codes = np.zeros(len(sizes), dtype=np.int64)
        if "item_classes" in read:
            coded = encode({"item_classes": read["item_classes"]}, None, pointer)
            check_found_labels(coded, pointer, fewest=1)
            labels, codes = coded.labels, coded.codes["item_classes"]
        return _made(labels, samples_of(read, codes, exact.astype(np.int64), sizes))


def _sizes(columns: Sequence[NDArray[np.float64]], pointer: str) -> NDArray[np.float64]:
    """Sizes [n, 3]: there, predicted, common."""
    sizes = np.stack(columns, axis=1)
    smaller = np.minimum(sizes[:, 0], sizes[:, 1])
    too_many = np.flatnonzero(sizes[:, 2] > smaller)
    if too_many.size:
        index = int(too_many[0])
        raise InvalidInput.at(
            f"{pointer}/n_common/{index}",
            "out_of_range",
            f"expected at most {smaller[index]:g}, as much as there is and as was predicted, got {sizes[index, 2]:g}",
        )
    return sizes


def _sizes_of_lists(columns: Sequence[Sequence[Any]], pointer: str) -> NDArray[np.float64]:
    """Sizes [n, 3] of lists of tokens or ids, in which one may occur several times; their order is not looked at.

    Both have in common what occurs in both, as often as it does in the one with fewer of it (Rajpurkar et al. 2016).
    """
    there, said = (
        [_bag(row, f"{pointer}/{name}/{index}") for index, row in enumerate(rows)]
        for name, rows in zip(_OF_LISTS, columns, strict=True)
    )
    sizes = [(one.total(), other.total(), (one & other).total()) for one, other in zip(there, said, strict=True)]
    return np.array(sizes, dtype=np.float64)


def _tagged(columns: Sequence[Sequence[Any]], pointer: str, *, of_lists: bool) -> list[list[list[str]]]:
    """The entities of each sentence in place of its tags.

    Raises:
        InvalidInput: these are no lists, something is no tag, or a sentence has more tags on one side.
    """
    if not of_lists:
        raise InvalidInput.at(f"{pointer}/tagging", "one_of", "expected y_true and y_pred beside it, got sizes")
    there, said = (
        [_entities(row, f"{pointer}/{name}/{index}") for index, row in enumerate(rows)]
        for name, rows in zip(_OF_LISTS, columns, strict=True)
    )
    lengths = [[len(row) for row in rows] for rows in columns]
    unlike = next((index for index, (one, other) in enumerate(zip(*lengths, strict=True)) if one != other), None)
    if unlike is not None:
        detail = f"expected {lengths[0][unlike]} tags as in y_true, got {lengths[1][unlike]}"
        raise InvalidInput.at(f"{pointer}/y_pred/{unlike}", "wrong_length", detail)
    return [there, said]


def _entities(row: Any, pointer: str) -> list[str]:
    """Type, first and last place of each entity of a sentence. One that begins with I begins there, as in conlleval."""
    found: list[tuple[str, int, int]] = []
    before = ""
    for place, tag in enumerate(row if isinstance(row, list) else [row]):
        part, _, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
        if (part, kind) != ("O", "") and (part not in ("B", "I") or not kind):
            detail = f"expected B-, I- with a type, or O, got {shown(tag) if isinstance(tag, str) else described(tag)}"
            raise InvalidInput.at(f"{pointer}/{place}", "wrong_value", detail)
        if part == "I" and before == kind:
            found[-1] = (kind, found[-1][1], place)
        elif part != "O":
            found.append((kind, place, place))
        before = kind
    return [f"{kind} {first} {last}" for kind, first, last in found]


def _bag(row: Any, pointer: str) -> "Counter[Any]":
    listed = row.tolist() if isinstance(row, np.ndarray) else row
    if not isinstance(listed, list):
        raise InvalidInput.at(pointer, "not_a_row", f"expected a list of tokens or ids, got {described(row)}")
    for place, token in enumerate(listed):
        if type(token) not in (str, int):
            raise InvalidInput.at(
                f"{pointer}/{place}", "wrong_type", f"expected a text or a whole number, got {described(token)}"
            )
    return Counter(listed)


def _exact(sizes: NDArray[np.float64], exact: NDArray[np.bool_] | None, pointer: str) -> NDArray[np.bool_]:
    """Are items (n) exactly what was predicted: as given, or those with nothing that is not common."""
    common = sizes[:, 2]
    equal: NDArray[np.bool_] = (common == sizes[:, 0]) & (common == sizes[:, 1])
    if exact is None:
        return equal
    unlike = np.flatnonzero(exact & ~equal)
    if unlike.size:
        index = int(unlike[0])
        raise InvalidInput.at(
            f"{pointer}/{index}",
            "not_exact",
            f"expected false, since there are {sizes[index, 0]:g}, {sizes[index, 1]:g} predicted and "
            f"{common[index]:g} in common",
        )
    return exact
