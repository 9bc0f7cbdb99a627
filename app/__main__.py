"""`python -m app`: the same as the command `prevail`."""

import sys

from app.cli import main

# Worker processes import this file again under another name.
if __name__ == "__main__":
    sys.exit(main())
