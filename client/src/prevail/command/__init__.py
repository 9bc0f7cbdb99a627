"""The command `prevail`."""

import sys
from collections.abc import Sequence

from prevail.command.main import main


def run(arguments: Sequence[str] | None = None) -> None:
    """What the console script calls; ends the process."""
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


__all__ = ["main", "run"]
