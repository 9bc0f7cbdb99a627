"""Bodies of requests that may be large: bytes when they are few, a file without a name otherwise."""

import asyncio
import errno
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.api.bodies.keyed import received
from app.api.bodies.multipart import Upload, is_multipart, parse_upload, read_upload, write_upload
from app.api.bodies.parsing import Body, Made, Model, as_utf8, check_media_type, parse_body, parse_large_body
from app.domain.errors import StoreFullError
from app.services.processes.compute import ComputePool

# From here on a body lies in a file and is read by a process of its own.
HEAVY_BYTES = 256 * 1024
# While it is read JSON takes up to fifteen times its size in memory, files of columns twice.
MOST_JSON_BYTES = 64 * 1024 * 1024

# Makes a model of a file.
Reader = Callable[[BinaryIO, type[Any]], Any]


@dataclass(frozen=True, slots=True)
class LargeBody:
    """A body in a file, and the function that makes a model of it. Both can be sent to another process."""

    file: BinaryIO
    read: Reader

    async def apart(self, compute: ComputePool, model: type[Model], make: Callable[[Model], Made]) -> Made:
        """Read it, and return what a function makes of it, in a process of its own."""
        return await compute.run(partial(_made, make, self.read, model), self.file)


@asynccontextmanager
async def receive(
    request: Request, *, forms: bool = False, parse: Callable[[bytes, type[Any]], Any] = parse_large_body
) -> AsyncIterator[Body | LargeBody]:
    """A body as long as it is needed; ``parse`` makes a model of a large one.

    Forms with a file are taken where ``forms`` says so.

    Raises:
        HTTPException: 415 when the body says it is something else, 413 when it is larger than JSON may be.
        StoreFullError: there is no room to put it down.
        MalformedRequest: a form without its parts.
        Replay, DomainError: as `received`, for a request with an Idempotency-Key.
    """
    if forms and is_multipart(request):
        upload = await _received_form(request)
        yield LargeBody(upload.data, partial(_parse_upload, upload.evaluation))
        return
    check_media_type(request)
    async with put_down(request) as body:
        yield body if isinstance(body, bytearray) else LargeBody(body, partial(_parse_file, parse))


@asynccontextmanager
async def put_down(request: Request) -> AsyncIterator[bytearray | BinaryIO]:
    """The bytes of JSON as they are: in memory when they are few, in a file without a name otherwise.

    Raises:
        HTTPException: 413 when it is larger than JSON may be.
        StoreFullError: there is no room to put it down.
        MalformedRequest: it is in another encoding than UTF-8.
        Replay, DomainError: as `received`.
    """
    held = bytearray()
    chunks = request.stream()
    async for chunk in chunks:
        held += chunk
        if len(held) > HEAVY_BYTES:
            break
    else:
        as_utf8(held)
        await received(request, held)
        yield held
        return
    as_utf8(held)
    with _room(), tempfile.TemporaryFile(prefix="prevail-") as file:
        file.write(held)
        held.clear()
        async for chunk in chunks:
            file.write(chunk)
            if file.tell() > MOST_JSON_BYTES:
                raise HTTPException(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"expected JSON of at most {MOST_JSON_BYTES} bytes; send more as a file of Arrow or Parquet",
                    headers={"Connection": "close"},
                )
        file.flush()
        await received(request, file)
        yield file


@asynccontextmanager
async def put_down_form(request: Request) -> AsyncIterator[tuple[str, BinaryIO]]:
    """A form in a file without a name, with the media type that says how to read it. Its parts are as they were sent;
    whatever else stood in it is left out.

    Raises:
        StoreFullError: there is no room to put it down.
        MalformedRequest: a form without its parts.
        Replay, DomainError: as `received`.
    """
    upload = await _received_form(request)
    with _room(), tempfile.TemporaryFile(prefix="prevail-") as file:
        yield await asyncio.to_thread(write_upload, upload, file), file


async def _received_form(request: Request) -> Upload:
    with _room():
        upload = await read_upload(request)
    # Of the parts: two forms that say the same have different boundaries.
    await received(request, upload.evaluation, upload.data)
    return upload


@contextmanager
def _room() -> Iterator[None]:
    """Say so where there is no room to put something down."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreFullError("there is no space left in the folder for temporary files; nothing was saved") from error


async def answered_apart(
    request: Request, compute: ComputePool, model: type[Any], answer: Callable[[Any], bytes]
) -> Response:
    """Answer with the JSON that a function makes of a body, in a process of its own, which also reads a large body.

    Raises:
        HTTPException, MalformedRequest, DomainError: as `receive`, the reading of a body and `answer` do.
    """
    async with receive(request) as body:
        content = await computed_apart(body, compute, model, answer)
    return Response(content, media_type="application/json")


async def computed_apart(
    body: Body | LargeBody, compute: ComputePool, model: type[Any], answer: Callable[[Any], bytes]
) -> bytes:
    """Return the bytes that a function makes of a body that was received. Raises as `answered_apart`."""
    if isinstance(body, LargeBody):
        return await body.apart(compute, model, answer)
    return await compute.run(partial(answer, parse_body(body, model)))


def _made(
    make: Callable[[Any], Made], read: Callable[[BinaryIO, type[Any]], Any], model: type[Any], file: BinaryIO
) -> Made:
    return make(read(file, model))


def _parse_file(parse: Callable[[bytes, type[Model]], Model], file: BinaryIO, model: type[Model]) -> Model:
    # The two ends of a file that was sent have one position.
    file.seek(0)
    return parse(file.read(), model)


def _parse_upload(evaluation: bytes, file: BinaryIO, model: type[Model]) -> Model:
    file.seek(0)
    return parse_upload(evaluation, file, model)
