"""What the C allocator does with memory that is free again."""

import ctypes
from typing import Final

# Freed arrays and answers up to this size are used again. The allocator would give them back to the system and ask for
# them anew, page by page, each of which is a fault: a third of the time of resampling, half of that of a thousand
# reports in one batch, depending on what else happens to lie at the end of the heap.
KEPT_BYTES: Final = 64 * 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Let this process keep what it frees, up to `KEPT_BYTES`."""
    # Only glibc has it, and only glibc needs it.
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, KEPT_BYTES)
        set_option(_M_TRIM_THRESHOLD, KEPT_BYTES)
