"""Scripts that write one committed file each, or with `--check` say whether it is fresh."""

import argparse
import sys
from pathlib import Path


def write_or_check(about: str | None, target: Path, text: str, stale: str) -> int:
    """Write a file, or check it where the command line says so; returns the exit code.

    Args:
        about: Help of the command line.
        target: The file.
        text: What it has to hold.
        stale: What is said where it holds something else.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="only say whether the file is fresh")
    if not parser.parse_args().check:
        target.write_text(text, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        print(stale, file=sys.stderr)
        return 1
    return 0
