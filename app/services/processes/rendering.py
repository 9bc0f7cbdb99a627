"""Pictures of figures: Vega-Lite specifications as SVG and PNG, drawn by a process that is there for nothing else.

The library brings a JavaScript engine of a few hundred megabytes. It is an extra, and its process is started when the
first picture is asked for: a service that never draws is not heavier for it.
"""

import re
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import Final

from app.domain.errors import NotInstalled
from app.services.processes.compute import ComputePool
from app.services.processes.worker import Limits

# The engine reserves far more than it uses, and grows with its first picture.
MEMORY_BYTES: Final = 4 << 30
GROWTH_BYTES: Final = 1 << 30
# Pixels of a PNG for each of the specification, for screens that have two.
SCALE: Final = 2.0
VEGA_LITE: Final = "6.1"


class PictureFormat(StrEnum):
    """The formats of pictures."""

    SVG = "svg"
    PNG = "png"


class Renderer:
    """Draws pictures, one after the other."""

    def __init__(self, seconds: float, *, wait_seconds: float) -> None:
        """A picture may take so many seconds, and wait so many for those before it."""
        limits = Limits(seconds, MEMORY_BYTES, GROWTH_BYTES)
        self._pool = ComputePool(1, limits, wait_seconds=wait_seconds)

    @property
    def is_installed(self) -> bool:
        """Is the library there that draws?"""
        return find_spec("vl_convert") is not None

    async def picture(self, specification: bytes, form: PictureFormat) -> bytes:
        """A specification as a picture.

        Raises:
            NotInstalled: there is nothing that draws.
            Overloaded, DeadlinePassed, NotEnoughMemory, ProcessLost: as `ComputePool.run` says.
        """
        if not self.is_installed:
            raise NotInstalled(
                "this service was installed without the extra `figures`, so it draws no pictures; the specification "
                "(.json) can be drawn by whatever knows Vega-Lite"
            )
        return await self._pool.run(partial(drawn, specification, form))

    def close(self) -> None:
        """End the process, if there is one."""
        self._pool.close()


# Vega looks texts up in objects of JavaScript, and takes what every object has for what it has put there itself.
_OF_OBJECTS: Final = re.compile(
    r'"(constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__\w+__)"'
)
# Keeps such a text apart, and is not seen.
_UNSEEN: Final = "\N{WORD JOINER}"
# Vega goes on counting through all pictures of its process.
_CLIPS: Final = re.compile(r'(?<=<clipPath id="clip)\d+|(?<=url\(#clip)\d+')


def drawn(specification: bytes, form: PictureFormat) -> bytes:
    """A specification as a picture, by the library, which may load nothing."""
    import vl_convert

    spared = _OF_OBJECTS.sub(rf'"\1{_UNSEEN}"', specification.decode())
    if form is PictureFormat.SVG:
        svg: str = vl_convert.vegalite_to_svg(spared, vl_version=VEGA_LITE, allowed_base_urls=[])
        places: dict[str, int] = {}
        svg = _CLIPS.sub(lambda found: str(places.setdefault(found[0], len(places))), svg)
        return svg.replace(_UNSEEN, "").encode()
    png: bytes = vl_convert.vegalite_to_png(spared, vl_version=VEGA_LITE, scale=SCALE, allowed_base_urls=[])
    return png
