"""A request in two parts: `evaluation`, the JSON without its arrays, and `data`, a file that has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from shutil import copyfileobj
from typing import Any, BinaryIO, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from app.api.bodies.files.table import Mapped
from app.api.bodies.parsing import as_utf8, parse_value, refuse_repeated_members
from app.api.bodies.uploads import distribute, read_columns, read_folds
from app.api.problems import MalformedRequest, UnreadableBody
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import declared_label

Model = TypeVar("Model", bound=BaseModel)
MEDIA_TYPE = "multipart/form-data"
_LARGEST_JSON = 1024 * 1024
_PARTS = ("evaluation", "data")


def is_multipart(request: Request) -> bool:
    """Is the body announced as a form with parts?"""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


@dataclass(frozen=True, slots=True)
class Upload:
    """The two parts of a request; the data is a file."""

    evaluation: bytes
    data: BinaryIO


def parse_upload(evaluation: bytes, data: BinaryIO, model: type[Model]) -> Model:
    """The request as if its arrays stood in the JSON; takes a while.

    Raises:
        MalformedRequest: the JSON is none, or of another form.
        InvalidInput: the file cannot be read.
    """
    try:
        request = orjson.loads(evaluation)
    except orjson.JSONDecodeError as error:
        raise UnreadableBody.at("/evaluation", "invalid_json", f"expected JSON: {error}") from None
    refuse_repeated_members(evaluation)
    source = request.get("input") if isinstance(request, dict) else None
    if not isinstance(source, dict) or not isinstance(source.get("kind"), str):
        # Said in the words that a body without a file gets.
        return parse_value(request, model)
    fill = _with_folds if source["kind"] == "folds" else _with_columns
    return parse_value({**request, "input": fill(source, data)}, model)


def write_upload(upload: Upload, file: BinaryIO) -> str:
    """Write a request in two parts into a file; returns its media type. Takes a while."""
    boundary = token_hex(16)
    names = {"evaluation": 'name="evaluation"', "data": 'name="data"; filename="data"'}
    starts = {
        part: f"\r\n--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n".encode()
        for part, name in names.items()
    }
    file.write(starts["evaluation"][2:] + upload.evaluation + starts["data"])
    upload.data.seek(0)
    copyfileobj(upload.data, file)
    file.write(f"\r\n--{boundary}--\r\n".encode())
    file.flush()
    return f"{MEDIA_TYPE}; boundary={boundary}"


def _with_columns(source: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    names, attributes, source = _names(source)
    columns = read_columns(file, source["kind"], _labels(source), names, attributes)
    _refuse_given_twice(columns, source, "/input")
    return {**columns, **source}


def _with_folds(source: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """Folds by the column `fold`; the member of that name, if any, holds what they share."""
    _refuse_given_twice(("folds",), source, "/input")
    names, attributes, source = _names(source)
    shared = source.get("fold", {})
    if not isinstance(shared, dict):
        raise MalformedRequest.at("/input/fold", "wrong_type", "expected an object")
    kind = shared.get("kind")
    if not isinstance(kind, str | None):
        raise MalformedRequest.at("/input/fold/kind", "wrong_type", "expected a string")
    kind, columns, folds = read_folds(file, kind, _labels(shared), names, attributes)
    _refuse_given_twice(columns, shared, "/input/fold")
    own = {name: value for name, value in source.items() if name != "fold"}
    return {**own, "folds": distribute(columns, folds, {**shared, "kind": kind})}


def _names(source: dict[str, Any]) -> tuple[Mapped | None, Mapping[str, str], dict[str, Any]]:
    """Names of the columns in the file, those of attributes, and the input without them."""
    given = source.get("columns")
    if given is None:
        return None, {}, source
    try:
        attributes = _ATTRIBUTES.validate_python(given.pop("attributes", {}) if isinstance(given, dict) else {})
        names = _NAMES.validate_python(given) if given or not attributes else None
    except ValidationError:
        detail = (
            "expected an object of the service's names, each with the name of a column or a list of them, and "
            "attributes with an object of names of columns"
        )
        raise MalformedRequest.at("/input/columns", "column_names", detail) from None
    return names, attributes, {name: value for name, value in source.items() if name != "columns"}


_NAMES: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(
    dict[str, str | list[str]], config=ConfigDict(strict=True)
)


_ATTRIBUTES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))


def _refuse_given_twice(names: Iterable[str], members: Mapping[str, Any], pointer: str) -> None:
    twice = [name for name in names if name in members and name != "labels"]
    if twice:
        raise InvalidInput.at(f"{pointer}/{twice[0]}", "given_twice", "expected it in the file only, or here only")


def _labels(source: dict[str, Any]) -> list[str] | None:
    labels = source.get("labels")
    if not isinstance(labels, list):
        return None
    texts = [text for text in map(declared_label, labels) if text is not None]
    return texts if len(texts) == len(labels) else None


async def read_upload(request: Request) -> Upload:
    """The parts of a form.

    Raises:
        MalformedRequest: a part is missing, or is not what it should be.
        UnreadableBody: the form cannot be parsed.
    """
    try:
        form = await request.form(max_files=2, max_fields=2, max_part_size=_LARGEST_JSON)
    except HTTPException as error:
        detail = f"expected a form with one part evaluation and one part data: {error.detail}"
        raise UnreadableBody.at("", "invalid_form", detail) from None
    names = [name for name, _ in form.multi_items()]
    for name in _PARTS:
        if names.count(name) > 1:
            raise MalformedRequest.at(f"/{name}", "repeated_part", "expected it once")
    given, data = form.get("evaluation"), form.get("data")
    evaluation = given.encode() if isinstance(given, str) else None
    if isinstance(given, UploadFile):
        if (given.size or 0) > _LARGEST_JSON:
            raise MalformedRequest.at("/evaluation", "wrong_length", f"expected at most {_LARGEST_JSON} bytes")
        evaluation = await given.read()
    if evaluation is None:
        raise MalformedRequest.at("/evaluation", "missing_field", "expected a part evaluation with the JSON")
    if not isinstance(data, UploadFile):
        raise MalformedRequest.at("/data", "missing_field", "expected a part data with a file, which has a filename")
    return Upload(bytes(as_utf8(bytearray(evaluation))), data.file)
