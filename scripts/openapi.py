"""Write docs/openapi.json from the application; with --check, fail when the committed file differs."""

import argparse
import sys
from pathlib import Path

import orjson

from app.main import create_app
from app.settings import Settings

TARGET = Path(__file__).parents[1] / "docs" / "openapi.json"


def render() -> str:
    """Return the OpenAPI document as sorted, indented JSON. Needs no database: nothing is started."""
    document = create_app(Settings()).openapi()
    return orjson.dumps(
        document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    ).decode()


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not current")
    check = parser.parse_args().check
    text = render()
    if not check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        print(f"{TARGET.name} is not current: run `make openapi`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
