"""zstd: of the standard library where it has it, otherwise the same from its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError

__all__ = ["DecompressionParameter", "ZstdCompressor", "ZstdDecompressor", "ZstdError"]
