"""The command `prevail`."""

import sys
from collections.abc import Sequence

from prevail.command.main import main


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command and end the process with its exit code; the entry point of the console script."""
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


__all__ = ["main", "run"]
