"""Write docs/openapi.json from the application; with --check, fail when the committed file differs."""

import sys
from pathlib import Path

import orjson

from app.main import create_app
from app.settings import Settings
from scripts.written import write_or_check

TARGET = Path(__file__).parents[1] / "docs" / "openapi.json"


def render() -> str:
    """Return the OpenAPI document as sorted, indented JSON. Needs no database: nothing is started."""
    document = create_app(Settings()).openapi()
    return orjson.dumps(
        document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    ).decode()


def main() -> int:
    """Write or check the file; returns the exit code."""
    return write_or_check(__doc__, TARGET, render(), f"{TARGET.name} is not current: run `make openapi`")


if __name__ == "__main__":
    sys.exit(main())
