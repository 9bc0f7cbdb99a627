"""What figures are drawn of, and the schema that every specification has to keep to."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema_rs
import numpy as np

from tests.api.answers import Json, create, evaluation, matrix_input

# Names that would do something if anybody took them for more than names.
HOSTILE = ["<script>alert(1)</script>", "'><img src=x onerror=alert(1)>", "{{ 7*7 }}", "datum.x'); alert(1); ('"]


@cache
def validator() -> Any:
    """The published JSON schema of Vega-Lite."""
    text = files("altair").joinpath("vegalite/v6/schema/vega-lite-schema.json").read_text()
    return jsonschema_rs.validator_for(json.loads(text, object_hook=_addressed))


def _addressed(members: Json) -> Json:
    """Names of the definitions have signs that addresses have not."""
    if isinstance(members.get("$ref"), str):
        members["$ref"] = quote(members["$ref"], safe="#/")
    return members


def check_specification(reply: httpx.Response) -> Json:
    """A figure as it has to be: right by the schema, with words for those who do not see it, and all data inside."""
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    specification: Json = reply.json()
    errors = [error.message[:200] for error in validator().iter_errors(specification)]
    assert not errors, errors
    assert 20 < len(specification["description"]) < 4000
    assert specification["title"]["text"]
    assert "NaN" not in reply.text
    assert not values_of(specification, "url"), "a figure that loads something"
    check_what_is_drawn(specification)
    return specification


def check_what_is_drawn(specification: Json) -> None:
    """What the schema takes and a picture would not show."""
    for axis in values_of(specification, "axis"):
        # The theme asks for three ticks, and thins out listed ones to as many.
        assert axis is None or len(axis.get("values", [])) <= axis.get("tickCount", 0) or "values" not in axis, axis
        assert axis is None or "g" not in axis.get("format", ""), "10 would be written as 1e+1"
    styles = specification["config"]["style"]
    for mark in values_of(specification, "mark"):
        if "style" in mark:
            # What the theme says of all lines comes before what it says of a style.
            assert styles[mark["style"]].keys() <= mark.keys(), mark
    names = [one for one in values_of(specification, "name") if isinstance(one, str)]
    assert len(names) == len(set(names)), "layers of one name share their data"


def values_of(value: Any, name: str) -> list[Any]:
    """All members of that name, wherever they are."""
    if isinstance(value, dict):
        return [*([value[name]] if name in value else []), *(f for one in value.values() for f in values_of(one, name))]
    return [found for one in value for found in values_of(one, name)] if isinstance(value, list) else []


def layer(specification: Json, name: str) -> Json:
    """The layer of a figure that is called so."""
    return next(one for one in specification["layer"] if re.sub(r"_\d+$", "", one.get("name", "")) == name)


def confused(classes: int, seed: int = 0) -> list[list[int]]:
    """A matrix in which neighbours are taken for each other."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 400, classes)
    matrix = np.zeros((classes, classes), dtype=int)
    for place, size in enumerate(sizes):
        wrong = rng.binomial(size, rng.uniform(0.02, 0.5))
        matrix[place, place] = size - wrong
        matrix[place, (place + 1) % classes] += wrong - wrong // 4
        matrix[place, rng.integers(classes)] += wrong // 4
    return matrix.tolist()


def keep_matrix(client: httpx.Client, classes: int, **members: Any) -> str:
    """The id of an evaluation with so many classes."""
    labels = members.pop("labels", [f"class {place}" for place in range(classes)])
    body = evaluation(input=matrix_input(confused(classes), labels=labels), **members)
    return str(create(client, body)["id"])
