"""Pieces of the OpenAPI document that routes share. Bodies are read by hand, so their schemas are named here."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.access import ADMINISTRATION, IDEMPOTENCY_KEY, LONGEST_KEY, SECURITY_SCHEME, keeps, needed_scope
from app.api.answers import Documented, answer_model, answer_models, answers
from app.api.problems import ProblemValue
from app.domain.inputs.kind import LABEL_SCHEMA


def header(description: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    """A header of an answer, a text where the schema says nothing else."""
    return {
        "description": description,
        **({"required": True} if required else {}),
        "schema": {"type": "string", **schema},
    }


_RETRY_AFTER = header("Seconds to wait before trying again.", type="integer", minimum=0)
_ETAG = header("Changes whenever the answer does; for `If-None-Match`.", required=True)
_RATE_LIMITS = {
    "RateLimit": header('What is left, and for how long: `"key";r=0;t=7`.'),
    "RateLimit-Policy": header('The rate that is in force: `"key";q=100;w=60`.'),
}
_HEADERS = {
    "X-Request-ID": header(
        "The id of the request in the log: the caller's own where it sent a valid one.", required=True
    ),
    **_RATE_LIMITS,
    "Content-Encoding": header("`gzip` where `Accept-Encoding` names it, from 16 KiB on.", enum=["gzip"]),
    "Vary": header("The headers of the request that the form of the answer depends on."),
}


# Answered before anybody has looked at the key, or since it is not good.
_BEFORE_KEYS = frozenset({"401", "403", "408", "431"})


def problem(description: str, headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An answer with a problem."""
    return {
        "description": description,
        **({"headers": dict(headers)} if headers else {}),
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemValue"}}},
    }


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: problem("The body is not JSON, or the request no HTTP."),
    401: problem(
        "A valid API key is needed.",
        {"WWW-Authenticate": header("Says that a bearer key is wanted.", required=True)},
    ),
    403: problem("The key is valid, but may not do this; or a page of another site asks, or under an unknown `Host`."),
    404: problem("There is no such thing."),
    406: problem("`Accept` allows none of the media types that the answer can be written in."),
    408: problem("The rest of the request did not come in time."),
    413: problem("The body is larger than the limit."),
    415: problem("The `Content-Type` is not JSON, or the `Content-Encoding` is not known."),
    422: problem("The request has a fault; `errors` points at it."),
    429: problem(
        "The key has used up its rate or its quota, or the project its quota; nothing was saved.",
        {"Retry-After": _RETRY_AFTER, **_RATE_LIMITS},
    ),
    431: problem("The headers are too large."),
    503: problem("Overloaded, or the database does not answer; see `Retry-After`.", {"Retry-After": _RETRY_AFTER}),
    504: problem("Computing it took longer than is allowed and was ended; nothing was saved."),
    507: problem(
        "No space left where the database keeps its files, or the project has used up its quota of bytes; nothing was "
        "saved, see `Retry-After`.",
        {"Retry-After": _RETRY_AFTER},
    ),
}


_IDEMPOTENCY_KEY = {
    "name": IDEMPOTENCY_KEY,
    "in": "header",
    "description": "Made up by the client for this request, such as a UUID. A request that comes again with the "
    "same key is not done again: the answer is what it made the first time. Remembered for a day.",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}
_REPLAYED = header("A request with this `Idempotency-Key` was done before, and this is what it made.", const="true")
_OF_KEYS = {
    "409": problem(
        "A request with this `Idempotency-Key` is under way, or its answer had a secret that is shown only once.",
        {"Retry-After": _RETRY_AFTER},
    ),
    "410": problem("What the first request with this `Idempotency-Key` made was deleted since."),
}
_PRECONDITIONS = [
    {"name": name, "in": "header", "required": False, **header(description)}
    for name, description in (
        ("If-Match", "The `ETag` of what is to be changed, or `*` for anything: else 412, and nothing changes."),
        ("If-None-Match", "`*`: only where nothing is yet; else 412, and nothing changes."),
    )
]
_NOT_AS_EXPECTED = problem("What is there is not what `If-Match` or `If-None-Match` says.")
# Of routes that need the samples of an evaluation.
NO_SAMPLES: dict[int | str, dict[str, Any]] = {409: problem("The samples of the evaluation are not known.")}


# Of routes that draw.
NOT_INSTALLED: dict[int | str, dict[str, Any]] = {
    501: problem("The service was installed without the extra that draws pictures.")
}


def fixed_headers(values: Mapping[str, str], *, required: bool = True) -> dict[str, Any]:
    """Headers that always say the same, as an answer of the document has them; not all of its forms may."""
    return {
        name: {"required": required, "schema": {"type": "string", "const": value}} for name, value in values.items()
    }


def address(description: str) -> dict[str, Any]:
    """The header `Location` of an answer."""
    return header(description, required=True, format="uri-reference")


def made(
    shape: Any, uses: Sequence[str], values: Mapping[str, str], description: str = "", *, once: str | None = None
) -> Documented:
    """The member ``responses`` of a route that makes something and tells its address.

    ``uses`` are the operations that it can be given to, and ``values`` where the values of their parameters stand;
    ``once`` says what is shown in this answer alone.
    """
    documented = answers(shape, status=HTTPStatus.CREATED, description=description)
    kept = {} if once is None else {"Cache-Control": header(f"`no-store`: {once}", required=True)}
    documented[HTTPStatus.CREATED.value] |= {
        "headers": {"Location": address("The address of what was made."), **kept},
        "links": {use: {"operationId": use, "parameters": dict(values)} for use in uses},
    }
    return documented


_WITHOUT_ARRAYS = (
    "The JSON, its `input` without the arrays. For folds that is `kind` and, where they have something in common such "
    "as labels or a threshold, a member `fold` with it. `columns` of the `input` says what columns are called in the "
    'file, where not as here: `{"y_true": "label", "probabilities": ["p0", "p1"]}`; all others are left aside then.'
)


# The models of all bodies, as `body_schema` has come across them.
_BODIES: dict[str, type[BaseModel]] = {}


def body_schema(
    model: type[BaseModel], *, with_file: bool = False, otherwise: type[BaseModel] | None = None
) -> dict[str, Any]:
    """The request body of a route: its model; ``with_file`` also as a form with a file, and ``otherwise`` another model
    that it may have. Its examples stand in `requests.json`, by operation.
    """
    models = [model] if otherwise is None else [model, otherwise]
    _BODIES.update({one.__name__: one for one in models})
    shapes = [{"$ref": f"#/components/schemas/{one.__name__}"} for one in models]
    content: dict[str, Any] = {"application/json": {"schema": shapes[0] if len(shapes) == 1 else {"anyOf": shapes}}}
    if with_file:
        content["multipart/form-data"] = {
            "schema": {
                "type": "object",
                "required": ["evaluation", "data"],
                "properties": {
                    "evaluation": {"type": "string", "description": _WITHOUT_ARRAYS},
                    "data": {
                        "type": "string",
                        "format": "binary",
                        "description": "Parquet, Arrow IPC, CSV or NPZ with `y_true` and either `y_pred`, `score` "
                        "or one column per label; optionally `sample_id`, `group_id` and `sample_weight`; with an "
                        "`input` of the kind `folds` a column `fold` of integers or texts.",
                    },
                },
            }
        }
    return {"requestBody": {"required": True, "content": content}}


def install(app: FastAPI) -> None:
    """Serve an OpenAPI document that has the hand-read request models too."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
                license_info=app.license_info,
            )
            components = schema.setdefault("components", {}).setdefault("schemas", {})
            components.update(_schemas(answer_models(), "serialization"))
            components.update(_schemas([*_BODIES.values(), answer_model(ProblemValue)], "validation"))
            for name in ("HTTPValidationError", "ValidationError"):
                components.pop(name, None)
            schema["components"]["securitySchemes"] = SECURITY_SCHEME
            for path, methods in schema["paths"].items():
                for method, operation in methods.items():
                    _complete(path, method, operation, components)
            for model in components.values():
                _drop_titles(model)
            _name_labels(components)
            components["Label"] = LABEL_SCHEMA
            _show_examples(schema)
            _share(schema)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the documented way to replace it


def _schemas(models: Sequence[type[BaseModel]], mode: Literal["serialization", "validation"]) -> dict[str, Any]:
    """The schemas of models by name, those of what is in them too."""
    _, definitions = models_json_schema([(one, mode) for one in models], ref_template="#/components/schemas/{model}")
    found: dict[str, Any] = definitions["$defs"]
    return found


def _say_of_keys(operation: dict[str, Any]) -> None:
    """Document the `Idempotency-Key` of an operation that makes or changes something."""
    operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            answer.setdefault("headers", {})["Idempotent-Replayed"] = _REPLAYED
    operation["responses"] |= _OF_KEYS


def _complete(path: str, method: str, operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Add the parts that all operations share: security, headers of answers, and 304."""
    answers = operation["responses"]
    versioned, keyed = path.startswith("/v1/"), operation["operationId"] in ADMINISTRATION
    if versioned and method == "get":
        answers["200"].setdefault("headers", {})["ETag"] = _ETAG
        answers["304"] = {
            "description": "`If-None-Match` names the `ETag` of what would be answered.",
            "headers": {"ETag": _ETAG},
        }
    if versioned and method in ("put", "patch", "delete"):
        operation.setdefault("parameters", []).extend(_PRECONDITIONS)
        answers["412"] = _NOT_AS_EXPECTED
        for status in {"200", "201"} & answers.keys() if method != "delete" else ():
            answers[status].setdefault("headers", {})["ETag"] = _ETAG
    if versioned or keyed:
        # Or nothing, where no key is needed.
        scope = needed_scope(operation["operationId"], method.upper())
        operation["security"] = [{"key": [scope.value]}, {}]
    if versioned and keeps(operation["operationId"], method.upper()):
        _say_of_keys(operation)
    _say_of_members(operation, schemas)
    for parameter in operation.get("parameters", ()):
        # FastAPI says it of the parameter, and once more of its schema.
        for said_again in ("description", "title"):
            parameter["schema"].pop(said_again, None)
    for status, answer in answers.items():
        names = ["X-Request-ID"]
        # Before a key is known there is nothing to be said of its rate.
        if (versioned or keyed) and status not in _BEFORE_KEYS:
            names += _RATE_LIMITS
        if "content" in answer and status.startswith("2"):
            names += ["Content-Encoding", "Vary"]
        # A new mapping: problems of one kind are one object in all operations.
        answers[status] = answer | {"headers": {name: _HEADERS[name] for name in names} | answer.get("headers", {})}


def _say_of_members(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Relax the schemas of answers with the parameter `fields`: none of their members is required, or none of those of
    the items of a list.
    """
    if not any(parameter["name"] == "fields" for parameter in operation.get("parameters", ())):
        return
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json")
        if not status.startswith("2") or status == "202" or content is None:
            continue
        for one in content["schema"].get("anyOf", [content["schema"]]):
            schema = schemas[one["$ref"].rpartition("/")[2]]
            properties = schema.get("properties", {})
            item = properties.get("items", {}).get("items", {})
            # Other answers than lists have items among their members.
            if "$ref" in item and properties.keys() <= {"items", "next_cursor", "combinations"}:
                schema = schemas[item["$ref"].rpartition("/")[2]]
            schema.pop("required", None)


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def _show_examples(document: dict[str, Any]) -> None:
    """Give every body its examples, and every answer that has a recorded one a reference to it."""
    asked, shown = (orjson.loads((Path(__file__).parent / f"{name}.json").read_bytes()) for name in _SHOWN)
    document["components"]["examples"] = {name: {"value": value} for name, value in shown.items()}
    for operation in _operations(document):
        if "requestBody" in operation:
            examples = {name: {"value": value} for name, value in asked[operation["operationId"]].items()}
            operation["requestBody"]["content"]["application/json"]["examples"] = examples
        for answer in operation["responses"].values():
            content = answer.get("content", {}).get("application/json", {})
            schema = content.get("schema", {})
            names = [one.get("$ref", "").rpartition("/")[2] for one in schema.get("anyOf", [schema])]
            found = {name: {"$ref": f"#/components/examples/{name}"} for name in names if name in shown}
            if found:
                content["examples"] = found


_SHOWN = ("requests", "examples")


def _drop_titles(schema: Any) -> None:
    """Remove the titles that pydantic makes of names: they say nothing that the names do not."""
    if isinstance(schema, list):
        for one in schema:
            _drop_titles(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for key, one in schema.items():
            # Members are by name in these, and one may be called "title".
            for part in one.values() if key in ("properties", "$defs") else (one,):
                _drop_titles(part)


def _name_labels(schema: Any) -> None:
    """Refer to the schema of a label, which many members have."""
    if not isinstance(schema, dict | list):
        return
    for key, one in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if one == LABEL_SCHEMA:
            schema[key] = {"$ref": "#/components/schemas/Label"}
        else:
            _name_labels(one)


def _share(document: dict[str, Any]) -> None:
    """Put headers, responses and parameters that several operations have into the components, each once."""
    operations = _operations(document)
    answers_of = [answer for one in operations for answer in one["responses"].values()]
    for kind, places in (
        ("headers", [(one["headers"], name) for one in answers_of for name in one["headers"]]),
        ("responses", [(one["responses"], status) for one in operations for status in one["responses"]]),
        (
            "parameters",
            [(one["parameters"], place) for one in operations for place in range(len(one.get("parameters", ())))],
        ),
    ):
        texts = [orjson.dumps(held[place], option=orjson.OPT_SORT_KEYS) for held, place in places]
        often = Counter(texts)
        names: dict[bytes, str] = {}
        for text, (held, place) in zip(texts, places, strict=True):
            if often[text] == 1:
                continue
            if text not in names:
                stem = _component_name(held[place], place)
                others = sum(re.fullmatch(rf"{stem}\d*", name) is not None for name in names.values())
                names[text] = f"{stem}{others + 1 if others else ''}"
                document["components"].setdefault(kind, {})[names[text]] = held[place]
            held[place] = {"$ref": f"#/components/{kind}/{names[text]}"}


def _component_name(shared: Mapping[str, Any], place: Any) -> str:
    """The name of a parameter or of a header, or the phrase of a status."""
    if "name" not in shared and not str(place).isdigit():
        return str(place)
    phrase = shared["name"] if "name" in shared else HTTPStatus(int(place)).phrase
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", phrase))
