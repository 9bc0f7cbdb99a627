"""A request body as a checked pydantic model, with a JSON pointer to every fault."""

import codecs
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from enum import Enum
from functools import cache
from http import HTTPStatus
from itertools import chain
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import orjson
import simdjson
from fastapi import Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from app.api.bodies.keyed import received
from app.api.problems import UNKNOWN, MalformedRequest, UnreadableBody, alternatives, code_of, near, own_name, worded
from app.domain.errors import Fault, in_pointer
from app.domain.inputs.kinds import COLUMNS, KINDS
from app.domain.inputs.labels import INEXACT
from app.domain.inputs.matrices import MOST_SAMPLES
from app.domain.wording import did_you_mean, names

Model = TypeVar("Model", bound=BaseModel)
Made = TypeVar("Made")
Body = bytes | bytearray
# The largest body of a request without columns of samples.
MOST_PLAIN_BYTES = 1024 * 1024
_MOST_FAULTS = 50
_PERCENT = 100
_LONGEST_NAME = 60
# No object of a request has half as many. Each unknown one would be a fault of its own.
_MOST_MEMBERS = 2000
# What pydantic puts into a location that is no place in the JSON: the tags of unions.
ID_TAG, REFERENCE_TAG, TEXT_TAG = "(id)", "(reference)", "(text)"


class Wire(BaseModel):
    """Base of all request models: no unknown fields, no coercion, no NaN or Infinity."""

    # Built when the first request of its kind is read.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)

    def filled(self, shape: Callable[..., Made], **others: Any) -> Made:
        """A dataclass of the domain with the members that the request has too, and with others.

        Lists are tuples there, texts of an enum are of it, and what is left out is left to the dataclass.
        """
        for name, kind in _shared(type(self), shape):
            value = getattr(self, name)
            if name not in others and value is not None:
                others[name] = kind(value)
        return shape(**others)


@cache
def _shared(model: type[BaseModel], shape: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Members that a request and a dataclass share, with what makes the one's value of the other's."""
    hints = get_type_hints(shape)
    return tuple((name, _enum_of(hints[name]) or _in_domain) for name in model.model_fields if name in hints)


def _enum_of(hint: Any) -> type[Enum] | None:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, Enum)), None)


def _in_domain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_in_domain, value))
    if isinstance(value, dict):
        return {name: _in_domain(one) for name, one in value.items()}
    return value.to_domain() if hasattr(value, "to_domain") else value


def check_media_type(request: Request) -> None:
    """Refuse what does not say that it is JSON.

    Raises:
        HTTPException: 415.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        came = f"got {media_type!r}" if media_type else "none was given"
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"expected the header Content-Type: application/json, {came} (curl: -H 'Content-Type: application/json')",
        )


async def read_body(request: Request) -> Body:
    """The bytes of a JSON body that has no columns of samples.

    Raises:
        Replay, DomainError: as `received`, for a request with an Idempotency-Key.
        HTTPException: 415 when the body says it is something else, 413 when it is larger than any such body is.
    """
    check_media_type(request)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_PLAIN_BYTES:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"expected a body of at most {MOST_PLAIN_BYTES} bytes here",
                headers={"Connection": "close"},
            )
    text = as_utf8(body)
    await received(request, text)
    return text


def as_utf8(body: bytearray) -> bytearray:
    """The body without a byte order mark.

    Raises:
        MalformedRequest: it is text of another encoding.
    """
    if body.startswith(codecs.BOM_UTF8):
        del body[:3]
    elif body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 0 in body[:4]:
        detail = "expected JSON in UTF-8, got what looks like UTF-16 or UTF-32"
        raise UnreadableBody.at("", "invalid_json", detail)
    return body


def parse_body(body: Body, model: type[Model]) -> Model:
    """The body as a model.

    Raises:
        MalformedRequest: 400 for what is no JSON, 422 for JSON of another form.
    """
    refuse_repeated_members(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise malformed(error, model, lambda: json.loads(body)) from None


def refuse_repeated_members(body: Body) -> None:
    """Refuse JSON with an object that names a member twice, since readers differ in which one they take, or has far
    more members than any may have.

    Every member has one colon, so that as many colons as members are enough. Where texts have colons too, or arrays
    have not been looked into, each object is looked at. What is no JSON is for others to say.

    Raises:
        MalformedRequest: 422.
    """
    try:
        if body.count(b":") != _count_members(orjson.loads(body)):
            json.loads(body, object_pairs_hook=_once)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return


def _count_members(value: Any) -> int:
    """Members of all objects, or fewer: of arrays only those are looked into that begin with an object."""
    kind = type(value)
    if kind is dict:
        _refuse_crowd(value)
        return len(value) + sum(_count_members(one) for one in value.values() if type(one) in (dict, list))
    if kind is list and value and type(value[0]) is dict:
        return sum(map(_count_members, value))
    return 0


def _once(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _check_names([name for name, _ in members])
    return dict(members)


def _check_names(names: Sequence[str]) -> None:
    _refuse_crowd(names)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        detail = f"expected each member once, got {twice[:60]!r} more than once"
        raise MalformedRequest.at("", "repeated_member", detail)


def _refuse_crowd(members: Sized) -> None:
    if len(members) > _MOST_MEMBERS:
        detail = f"expected objects of at most {_MOST_MEMBERS} members, got one of {len(members)}"
        raise MalformedRequest.at("", "too_many_members", detail)


# Of an array that is no column: far more than any may have, few enough to say what is wrong with them.
_MOST_ENTRIES = 4_000_000
_ATTRIBUTES = "attributes"
_CONTAINERS = (simdjson.Object, simdjson.Array)
# Texts that are used again where they come again, so that a million labels are not a million texts.
_MOST_KNOWN_TEXTS = 10_000


def parse_large_body(body: bytes, model: type[Model]) -> Model:
    """Parse a body whose columns of samples are long: those of numbers become arrays.

    Whole numbers are int64, others float64. A body that simdjson cannot read is read as a small one is, which finds the
    fault and its place.

    Raises:
        MalformedRequest: 400 for what is no JSON, 422 for JSON of another form.
    """
    try:
        value = _read_large(body)
    except (ValueError, RuntimeError):
        return parse_body(body, model)
    return parse_value(value, model)


def _read_large(body: bytes) -> Any:
    if body.startswith(codecs.BOM_UTF8):
        # simdjson passes over it; the one that may be there is left out before.
        raise ValueError("expected a value, got a byte order mark")
    document, reader = simdjson.Parser().parse(body), _LargeReader()
    value = reader.value(document)
    return value if reader.arrays == body.count(b"[") else _LargeReader(careful=True).value(document)


class _LargeReader:
    """Reader of a document of simdjson: columns of numbers become arrays, all else objects.

    Attributes:
        arrays: How many arrays were seen. simdjson takes an array among numbers for the numbers in it, so a document in
            which more brackets open may have such a one; or a text has brackets.
    """

    def __init__(self, *, careful: bool = False) -> None:
        """Make a reader; a ``careful`` one looks at every number, which takes as long again as all else."""
        self.arrays = 0
        self._careful = careful

    def value(self, found: Any, name: str = "", where: str = "", most: int = _MOST_ENTRIES) -> Any:
        """Return a value of the document.

        Args:
            found: In the document.
            name: Of the member whose value it is, if it is one.
            where: JSON pointer to it.
            most: Entries that it may have if it is an array, and no column.

        Raises:
            MalformedRequest: an object names a member twice, or has too many; an array has too many entries.
        """
        if isinstance(found, simdjson.Object):
            names = [*found]
            _check_names(names)
            # One with the character NUL is not found, and has no meaning anywhere.
            if name == _ATTRIBUTES:
                # One value per sample each, whatever they are called.
                return {own: self.value(found.get(own), "", where + pointer([own]), MOST_SAMPLES) for own in names}
            return {own: self.value(found.get(own), own, where + pointer([own])) for own in names}
        if not isinstance(found, simdjson.Array):
            return found
        self.arrays += 1
        is_column = name in COLUMNS
        most = MOST_SAMPLES if is_column else most
        if len(found) > most:
            code, what = ("too_many_samples", "samples") if is_column else ("too_large", "entries")
            raise MalformedRequest.at(where, code, f"expected at most {most} {what}, got {len(found)} or more")
        column = self._numbers(found) if is_column and len(found) else None
        if column is not None:
            return column
        known: dict[str, str] = {}
        return [
            known.setdefault(one, one)
            if type(one) is str and len(known) < _MOST_KNOWN_TEXTS
            else self.value(one, "", f"{where}/{place}", most)
            if isinstance(one, _CONTAINERS)
            else one
            for place, one in enumerate(found)
        ]

    def _numbers(self, found: simdjson.Array) -> NDArray[Any] | None:
        """Return numbers (n) or rows of them (n, K); None for anything else."""
        rows, elements = isinstance(found[0], simdjson.Array), cast(Iterable[Any], found)
        try:
            widths = {*map(len, elements)} if rows else {1}
        except TypeError:
            return None
        entries = chain.from_iterable(elements) if rows else elements
        if len(widths) > 1 or (self._careful and any(isinstance(one, simdjson.Array) for one in entries)):
            return None
        flat = _flat(found)
        if flat is None or flat.size != len(found) * max(widths):
            return None
        if not rows:
            return flat
        self.arrays += len(found)
        return flat.reshape(len(found), -1)


def _flat(found: simdjson.Array) -> NDArray[Any] | None:
    """Return all numbers of an array; None if there is anything else."""
    try:
        return np.frombuffer(found.as_buffer(of_type="i"), np.int64)
    except ValueError:
        # Beyond 64 bits. As floats they would be other numbers: ids, say, that are hashes.
        return None
    except TypeError:
        # A fraction, or no number.
        pass
    try:
        numbers = np.frombuffer(found.as_buffer(of_type="d"), np.float64)
    except TypeError:
        return None
    # Whole ones among them, such as ids, may be others as doubles.
    return None if (np.abs(numbers) >= INEXACT).any() else numbers


def parse_value(value: Any, model: type[Model]) -> Model:
    """A part of a body that is parsed already as a model."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise malformed(error, model, lambda: value) from None


def malformed(error: ValidationError, model: type[BaseModel], read: Callable[[], Any]) -> MalformedRequest:
    """Faults that pydantic found in a body, in our words where its own are for programmers; ``read`` returns its JSON,
    where it is some.
    """
    # Of many faults the values that came would take as much memory as the body.
    entries = error.errors(include_url=False, include_input=error.error_count() <= _MOST_FAULTS)
    if entries[0]["type"] == "json_invalid":
        detail = f"expected JSON: {entries[0]['ctx']['error']}"
        return UnreadableBody.at("", "invalid_json", detail)
    body = read()
    return MalformedRequest([_fault(entry, model, body) for entry in entries[:_MOST_FAULTS]])


def _fault(entry: ErrorDetails, model: type[BaseModel], body: Any) -> Fault:
    kind = str(entry["type"])
    # The tag of a union is missing or unknown: pydantic points at what holds it.
    place = pointer(_places(entry, body)) + ("/kind" if kind.startswith("union_tag") else "")
    given, context = entry.get("input"), entry.get("ctx", {})
    if kind == "too_long" and place.endswith("/matrix"):
        return Fault(place, "too_many_classes", f"expected at most {context['max_length']} classes, got more rows")
    detail = worded(kind, entry["msg"], context, entry.get("input", UNKNOWN))
    if kind == "less_than" and place.endswith("/level") and isinstance(given, int | float) and given <= _PERCENT:
        detail += f": for {given:g} % write {given / _PERCENT:g}"
    suggestions = alternatives(kind, context, given)
    if kind == "extra_forbidden":
        name, known = str(entry["loc"][-1])[:_LONGEST_NAME], _fields_at(model, entry["loc"][:-1])
        suggestions = near(name, known) or _elsewhere(name, place, model)
        kinds = [kind for kind in KINDS if name in _fields_at(model, ("input", kind))] if place[:7] == "/input/" else []
        if kinds and not suggestions:
            detail += f" of this kind: {names(kinds)} {'has' if len(kinds) == 1 else 'have'} it"
        elif known and not suggestions:
            detail += f"; known here are {', '.join(known)}"
    elif kind == "union_tag_not_found" and place.endswith("/input/kind"):
        detail += f": {', '.join(KINDS)}"
    elif kind == "model_type" and (known := _fields_at(model, entry["loc"])):
        detail += f"; its fields are {', '.join(known)}"
    return Fault(place, code_of(kind), detail + did_you_mean(suggestions), suggestions)


def _elsewhere(name: str, place: str, model: type[BaseModel]) -> tuple[str, ...]:
    """JSON pointers to the field of this name where the body, or an object in it, has one."""
    name = own_name(name)
    fields = model.model_fields.items()
    objects = [(), *((field.alias or one,) for one, field in fields if get_origin(field.annotation) is not list)]
    found = (pointer((*one, name)) for one in objects if name in _fields_at(model, one))
    return tuple(one for one in found if one != place)


def _fields_at(model: type[BaseModel], location: Sequence[int | str]) -> tuple[str, ...]:
    """Names of the fields that the object at a location of pydantic can have."""
    if not location:
        return tuple(field.alias or name for name, field in model.model_fields.items())
    schema = _schema_of(model)
    shapes = [schema]
    for part in location:
        shapes = [one for shape in shapes for one in _below(shape, part, schema["$defs"])]
    opened = [one for shape in shapes for one in _branches(shape, schema["$defs"])]
    return tuple(dict.fromkeys(name for shape in opened for name in shape.get("properties", ())))


def _below(shape: dict[str, Any], part: int | str, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Schemas of what stands at one part of a location, which may also name a branch of a union."""
    tagged = shape.get("discriminator", {}).get("mapping", {})
    if part in tagged:
        return [{"$ref": tagged[part]}]
    found = []
    for one in _branches(shape, definitions):
        inner = one.get("items") if isinstance(part, int) else one.get("properties", {}).get(part)
        found += [inner] if isinstance(inner, dict) else []
    # Else the part is a tag that the schema does not show.
    return found or [shape]


def _branches(shape: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """A schema with references and unions replaced by what they stand for."""
    if "$ref" in shape:
        return _branches(definitions[shape["$ref"].rpartition("/")[2]], definitions)
    branches = [*shape.get("anyOf", ()), *shape.get("oneOf", ())]
    return [whole for one in branches for whole in _branches(one, definitions)] if branches else [shape]


@cache
def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    return {"$defs": {}, **model.model_json_schema()}


def _places(entry: ErrorDetails, body: Any) -> Iterator[int | str]:
    """The parts of a location of pydantic that are places in the body: the others are branches of unions."""
    location = entry["loc"]
    for index, part in enumerate(location):
        # The kind of an input, which may have a member of the same name.
        if part in KINDS and (location[index - 1] == "input" or location[index - 2 : index - 1] == ("folds",)):
            continue
        is_member = isinstance(body, dict) and part in body
        if is_member or (isinstance(body, list | np.ndarray) and isinstance(part, int)):
            body = body[part]
            yield part
        elif index == len(location) - 1 and entry["type"] == "missing":
            yield part


def pointer(location: Iterable[int | str]) -> str:
    """Names and numbers as a JSON pointer (RFC 6901)."""
    return "".join("/" + in_pointer(str(part)) for part in location)
