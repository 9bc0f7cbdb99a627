"""Many near-equal cases as one test: all of them are run, and those that fail are named together."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import pytest

Test = Callable[..., None]
_Param = type(pytest.param())
_SHOWN = 20


def each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Iterable[str] | Callable[[Any], str] | None = None
) -> Callable[[Test], Test]:
    """Run a test once for every case, as ``pytest.mark.parametrize`` would, but as one test.

    It takes the same arguments, and several can stand above one test. No case ends the test for those after it.
    Fixtures are those of the one test, so a case must not leave anything behind that another one would see.

    Raises:
        AssertionError: cases fail; it names them, and its cause is what the first of them raised.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    bank = [case.values if isinstance(case, _Param) else (case if len(keys) > 1 else (case,)) for case in cases]
    titles = list(_titles(keys, bank, ids))
    assert bank, "a test over no cases shows nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: dict[str, BaseException] = {}
            for title, values in zip(titles, bank, strict=True):
                try:
                    test(**fixtures, **dict(zip(keys, values, strict=True)))
                except Failures as inner:
                    failures |= {f"{title}, {name}": error for name, error in inner.failures.items()}
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases are run all the same
                    failures[title] = error
            if failures:
                raise Failures(failures) from next(iter(failures.values()))

        signature = inspect.signature(test)
        fixtures = [one.replace(kind=one.KEYWORD_ONLY) for one in signature.parameters.values() if one.name not in keys]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


class Failures(AssertionError):
    """Cases that fail, by name.

    Attributes:
        failures: What each of them raised.
    """

    def __init__(self, failures: dict[str, BaseException]) -> None:
        lines = [f"  {title}: {_first_line(error)}" for title, error in failures.items()]
        more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        super().__init__("\n".join([f"{len(failures)} cases fail:", *lines[:_SHOWN], *more]))
        self.failures = failures


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:300]


def _titles(keys: list[str], bank: list[Any], ids: Iterable[str] | Callable[[Any], str] | None) -> Iterator[str]:
    """Names of the cases, no two alike."""
    if ids is None or callable(ids):
        said = [[ids(value) if ids is not None else _title(value) for value in values] for values in bank]
        titles = [", ".join(f"{key}={one}" for key, one in zip(keys, row, strict=True)) for row in said]
    else:
        titles = [str(one) for one in ids]
    for number, title in enumerate(titles):
        yield title if titles.count(title) == 1 else f"{title} ({number})"


def _title(value: Any) -> str:
    """The key of a metric, the name of a function or of a member; else how it is written."""
    if isinstance(value, Enum):
        return str(value.value)
    name = getattr(value, "key", None) or getattr(value, "__name__", None) or getattr(value, "name", None)
    return name if isinstance(name, str) else repr(value)[:80]
