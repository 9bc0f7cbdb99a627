"""Arrays of any library, known by what they can do: nothing is imported that the user does not have already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prevail.errors import InvalidInput

# Types of pandas, polars and Arrow whose entries may hold several values.
_KINDS_OF_ROWS: Final = ("object", "list", "large_list", "fixed_size_list", "array")


def plain(values: Any, name: str) -> Any:
    """A list, or an array of numpy, of what came: of torch, JAX, pandas, polars, Arrow, or a list already.

    Raises:
        InvalidInput: it is nothing of the kind.
    """
    # A set has no order.
    if isinstance(values, str | bytes | Mapping | set | frozenset) or values is None:
        raise InvalidInput(f"{name}: expected a list or an array, got {type(values).__name__}", code="array_type")
    if _kind(values).startswith("struct"):
        # As an array it would lose the names of its fields.
        raise InvalidInput(f"{name}: expected a table, got one column of structs: unnest it", code="array_type")
    if isinstance(values, list | tuple | range):
        return [_unpacked(one) for one in values]
    if hasattr(values, "toarray"):  # sparse matrices of scipy
        return _native(values.toarray())
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # torch: it may need gradients, or lie on a device
        values = values.detach().cpu()
        return values.float().numpy() if str(values.dtype) == "torch.bfloat16" else values.numpy()
    for way in (_by_to_numpy, _by_array, _by_capsule):
        found = way(values)
        if found is not None:
            return _native(found)
    if isinstance(values, Iterable):
        return [_unpacked(one) for one in values]
    raise InvalidInput(f"{name}: expected a list or an array, got {type(values).__name__}", code="array_type")


def _kind(values: Any) -> str:
    """The type of the entries as a library writes it, such as ``list<item: string>``; empty of what says none."""
    return str(getattr(values, "dtype", getattr(values, "type", ""))).lower()


def _native(values: Any) -> Any:
    """Numbers of another machine, or wider than those of Python, as those that JSON and Arrow have; so moments."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or not hasattr(dtype, "isnative"):
        return values
    if dtype.kind == "f" and dtype.itemsize > 8:
        return values.astype("float64")
    if dtype.name == "datetime64[ns]":
        # In a list numpy makes numbers of them, and moments of all others.
        return values.astype("datetime64[us]")
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


def _unpacked(one: Any) -> Any:
    """A number of numpy or torch in a list as a number of Python; a row that is an array as a list."""
    if isinstance(one, list | tuple):
        return [_unpacked(each) for each in one]
    return one.tolist() if hasattr(one, "tolist") else one


def _by_to_numpy(values: Any) -> Any:
    """Convert columns of pandas, polars and Arrow; to a list if numpy is missing."""
    if not hasattr(values, "to_numpy"):
        return None
    try:
        try:
            return values.to_numpy()
        except (TypeError, ValueError):
            # Arrow copies what has another layout only when it is told that it may.
            return values.to_numpy(zero_copy_only=False)
    except ImportError:
        way = getattr(values, "to_list", None) or getattr(values, "to_pylist", None)
        return None if way is None else way()


def _by_array(values: Any) -> Any:
    if hasattr(values, "tolist") and hasattr(values, "shape"):  # numpy itself
        return values
    return values.__array__() if hasattr(values, "__array__") else None


def _by_capsule(values: Any) -> Any:
    """Convert any other object that exports Arrow arrays."""
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return None
    import pyarrow as pa  # only for what speaks Arrow itself

    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values).to_numpy(zero_copy_only=False)
    return pa.chunked_array(values).to_numpy()


@dataclass(frozen=True, slots=True)
class Column:
    """One value per sample: ``values`` is a list or an array of numpy."""

    name: str
    values: Any

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> list[Any]:
        """Some of the values as a list."""
        return _as_list(self.values[start:stop])

    @property
    def cells(self) -> int:
        """Number of values."""
        return len(self)


@dataclass(frozen=True, slots=True)
class Rows:
    """Several numbers per sample: an array of numpy, n x K, or a list of columns, or a list of rows."""

    name: str
    values: Any
    width: int
    by_column: bool = False

    def __len__(self) -> int:
        return len(self.values[0]) if self.by_column else len(self.values)

    def part(self, start: int, stop: int) -> list[list[Any]]:
        """Some of the rows as lists."""
        if self.by_column:
            parts = [_as_list(one[start:stop]) for one in self.values]
            return [list(row) for row in zip(*parts, strict=True)]
        return _as_list(self.values[start:stop])

    def column(self, place: int, start: int, stop: int) -> Any:
        """A part of one column, as an array where there is one."""
        if self.by_column:
            return self.values[place][start:stop]
        if isinstance(self.values, list):
            return [row[place] for row in self.values[start:stop]]
        return self.values[start:stop, place]

    @property
    def cells(self) -> int:
        """Number of values in all columns."""
        return len(self) * self.width


Data = Column | Rows


def label_name(label: Any) -> str:
    """The name that the service gives a label: a whole number has one, however it is written."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _as_list(values: Any) -> list[Any]:
    found: list[Any] = values if isinstance(values, list) else values.tolist()
    return found


def column(values: Any, name: str) -> Column:
    """One value per sample.

    Raises:
        InvalidInput: it has rows of several.
    """
    found = plain(values, name)
    shape = getattr(found, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        found = found[:, 0]
    elif shape is not None and len(shape) != 1:
        hint = ": several numbers per sample are `probabilities` or `scores`" if name == "y_pred" else ""
        raise InvalidInput(f"{name}: expected one value per sample, got the shape {shape}{hint}", code="array_shape")
    return Column(name, found)


def rows(values: Any, name: str) -> tuple[Rows, list[str] | None]:
    """Several numbers per sample; and the names of the columns, of a table that has them.

    Raises:
        InvalidInput: it has one number per sample, or rows of several lengths.
    """
    names = table_columns(values)
    if names is not None:
        columns = [plain(values[one], f"{name}[{one!r}]") for one in names]
        return Rows(name, columns, len(columns), by_column=True), [str(one) for one in names]
    found = plain(values, name)
    if isinstance(found, list):
        widths = {len(row) if isinstance(row, Sequence) and not isinstance(row, str) else 0 for row in found}
        if len(widths) != 1 or 0 in widths:
            raise InvalidInput(f"{name}: expected rows of one length, a number for every class", code="array_shape")
        return Rows(name, found, widths.pop()), None
    if len(found.shape) != 2:
        raise InvalidInput(
            f"{name}: expected two dimensions, samples x classes, got the shape {found.shape}. Of two classes give "
            "both probabilities, or the scores of the positive one as `scores`",
            code="array_shape",
        )
    return Rows(name, found, found.shape[1]), None


def table_columns(values: Any) -> list[Any] | None:
    """The names of the columns of a table of pandas, polars or Arrow; None of anything else.

    Raises:
        InvalidInput: it is a table that has no data yet.
    """
    if hasattr(values, "collect_schema") and not hasattr(values, "to_numpy"):
        raise InvalidInput(f"expected data, got a {type(values).__name__}: collect it first", code="array_type")
    if isinstance(values, list | tuple) or not hasattr(values, "__getitem__"):
        return None
    for attribute in ("column_names", "columns"):
        names = getattr(values, attribute, None)
        if names is not None and not callable(names) and all(isinstance(one, str | int) for one in names):
            return list(names)
    return None


def listed(values: Any, name: str) -> tuple[list[Any], list[str] | None]:
    """An array of any library as a list; and the names of the columns, of a table that has them."""
    if table_columns(values) is not None:
        found, names = rows(values, name)
        return found.part(0, len(found)), names
    return _as_list(plain(values, name)), None


def has_rows(values: Any) -> bool:
    """Does it have several values per sample?"""
    names = table_columns(values)
    if names is not None:
        return len(names) > 1
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) == 2:
        return bool(shape[1] > 1)
    may_be = isinstance(values, list | tuple) or _kind(values).startswith(_KINDS_OF_ROWS)
    first = next(iter(values), None) if may_be else None
    return hasattr(first, "__len__") and not isinstance(first, str | bytes)
