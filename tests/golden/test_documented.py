"""The recorded answers have the shapes that the OpenAPI document shows, and no member that it does not."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from tests.bank import each
from tests.golden import mistakes
from tests.golden.playing import read_answers
from tests.golden.requests import GROUPS
from tests.golden.requests.mistaking import MISTAKES
from tests.openapi import DOCUMENT


def closed(schema: Any) -> Any:
    """A schema whose objects have the members that are named and no others."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    members = {name: closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **members} if "properties" in members else members


COMPONENTS = closed(DOCUMENT["components"])


@cache
def operations() -> list[tuple[re.Pattern[str], str]]:
    """Paths as patterns, those without parameters first."""
    paths = sorted(DOCUMENT["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\{[a-z]+\}", "[^/]+", path)), path) for path in paths]


@cache
def validator(method: str, path: str, status: int) -> Draft202012Validator:
    documented = DOCUMENT["paths"][path][method]["responses"]
    assert str(status) in documented, f"{method} {path} answers {status}, which the document does not say"
    contents = documented[str(status)]["content"]
    # Beside JSON there may be texts, which have no schema.
    (content,) = (contents[media] for media in contents if media.endswith("json"))
    return Draft202012Validator({**content["schema"], "components": COMPONENTS})


def shapes(schema: Any) -> list[Any]:
    """References to the schemas that an answer may have: one, or several."""
    return [schema] if "$ref" in schema else list(schema.get("anyOf", ()))


@cache
def of_schema(name: str) -> Draft202012Validator:
    """Validates the members of one schema of the components, and no others."""
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": COMPONENTS})


def answered(group: str) -> Iterator[tuple[str, str, str, int, Any]]:
    """Name, method, path in the document, status and body of what was asked at an address and answered with a body."""
    answers = read_answers(group)
    for call in GROUPS[group]:
        method, address = call.method.lower(), call.path.partition("?")[0]
        path = next((path for pattern, path in operations() if pattern.fullmatch(address)), None)
        answer = answers[call.name]
        # Pages are texts, which have no schema.
        is_json = answer.get("body") is not None and not isinstance(answer["body"], str)
        if path is not None and method in DOCUMENT["paths"][path] and is_json:
            yield call.name, method, path, answer["status"], answer["body"]


@each("group", GROUPS)
def test_answers_are_documented_to_the_last_member(group: str) -> None:
    looked_at = 0
    for name, method, path, status, body in answered(group):
        errors = [
            f"{error.instance_path}: {error.message[:200]}"
            for error in validator(method, path, status).iter_errors(body)
        ]
        assert not errors, f"{group}/{name}: {errors[:3]}"
        looked_at += 1
    assert looked_at


def test_every_schema_has_a_name_of_its_own() -> None:
    """Two dataclasses of one name would be told apart by their modules."""
    assert [name for name in DOCUMENT["components"]["schemas"] if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == []


def test_examples_are_recorded_answers() -> None:
    from tests.golden.examples import TARGET, render

    assert TARGET.read_text() == render(), "python -m tests.golden.examples"


def test_every_answer_in_json_has_an_example_of_its_shape() -> None:
    shown = DOCUMENT["components"]["examples"]
    for name, example in shown.items():
        errors = [error.message for error in of_schema(name).iter_errors(example["value"])]
        assert not errors, (name, errors[:3])
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                answered_shapes = shapes(response.get("content", {}).get("application/json", {}).get("schema", {}))
                if status < "300" and answered_shapes:
                    assert any(one["$ref"].rpartition("/")[2] in shown for one in answered_shapes), operation[
                        "operationId"
                    ]


def test_mistakes_are_refused_with_their_place() -> None:
    answers = read_answers("mistakes")
    assert len(MISTAKES) == 88
    for mistake in MISTAKES:
        answer = answers[mistake.call.name]
        body = answer["body"]
        assert 400 <= answer["status"] < 500, mistake.what
        # What is not there at all, or the wrong thing to ask of it, has no place in the request.
        assert "errors" in body or body["code"] in ("not_found", "needs_scores"), mistake.what
        if "misspelt" in mistake.what and body["code"] != "not_found":
            assert any("suggestions" in one or "it takes" in one["detail"] for one in body["errors"]), mistake.what


def test_the_page_of_errors_is_what_was_recorded() -> None:
    assert mistakes.TARGET.read_text() == mistakes.render(), "python -m tests.golden.mistakes"
