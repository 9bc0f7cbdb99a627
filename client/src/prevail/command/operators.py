"""Commands of other distributions, such as the service's `serve`: entry points of the group `prevail.commands`.

Each is a function that takes the arguments, its own name first, and returns the exit code.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from importlib.metadata import entry_points
from typing import Final

from prevail.command import codes

GROUP: Final = "prevail.commands"
_USAGE_OF_OTHERS: Final = 2
# Of the service, for who types one and does not have it.
_OF_THE_SERVICE: Final = frozenset({"serve", "worker", "migrate", "keys", "health", "export", "import", "check"})


def names() -> list[str]:
    """Return the names of the commands that other distributions add."""
    return sorted({one.name for one in entry_points(group=GROUP)})


def is_command(name: str, parser_of_client: AbstractSet[str]) -> bool:
    """Is it a command of somebody else?"""
    return name not in parser_of_client and (name in _OF_THE_SERVICE or name in names())


def run(arguments: Sequence[str]) -> int:
    """Carry out a command of another distribution; returns its exit code.

    Raises:
        UsageError: the service is not installed.
    """
    found = next(iter(entry_points(group=GROUP, name=arguments[0])), None)
    if found is None:
        raise codes.UsageError(
            f"prevail {arguments[0]} is a command of the service, which is not installed here: install prevail-server"
        )
    try:
        code: int = found.load()([*arguments])
    except SystemExit as end:
        # A typing error must not look like the verdict of a gate.
        if end.code == _USAGE_OF_OTHERS:
            return codes.USAGE
        raise
    return code
