"""The JSON of a request, and JSON Schemas of its parameters. An error names the wrong one, and says what to give: the
`description` of its schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

# Codes of JSON-RPC, and one of this server: the session or the store does not do it.
NO_JSON, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
NOT_DONE = -32000

MOST = 2**53  # every JSON reader keeps integers up to this exactly

Schema = dict[str, Any]


class RequestError(Exception):
    """A request that is not carried out: `code` is for programs, the text for people."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


TEXT: Schema = {"type": "string", "description": "a text"}
NAME: Schema = {"type": "string", "description": "a text that is not empty", "minLength": 1}
FLAG: Schema = {"type": "boolean", "description": "true or false"}
FLAG_OR_TEXT: Schema = {"anyOf": [FLAG, TEXT], "description": "true, false or a text"}
LINE: Schema = {"type": "integer", "description": "a whole number from 0 up", "minimum": 0}
STATUS: Schema = {"type": "integer", "description": "a whole number"}
SECONDS: Schema = {"type": "number", "description": "a number of seconds above 0", "exclusiveMinimum": 0}
OBJECT: Schema = {"type": "object", "description": "an object"}
IDS: Schema = {"type": "array", "description": "a list of texts", "items": TEXT}
COUNT_OR_IDS: Schema = {"anyOf": [LINE, IDS], "description": "a whole number from 0 up, or a list of texts"}
MESSAGES: Schema = {"type": "array", "description": "a list of objects", "items": OBJECT}
NAMES: Schema = {"type": "object", "description": "an object with texts", "additionalProperties": TEXT}
ID: Schema = {"anyOf": [TEXT, STATUS | {"maximum": 2**64}], "description": "a text or a whole number"}
VERSION: Schema = {"type": "string", "description": "the text 2.0", "enum": ["2.0"]}

_TYPES: Mapping[str, Any] = {"string": str, "boolean": bool, "integer": int, "object": dict, "array": list}


def record(properties: Mapping[str, Schema], *required: str) -> Schema:
    """Return the schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def checked(of: str, given: object, schema: Schema, code: int = INVALID_PARAMS) -> dict[str, Any]:
    """Return the properties of an object without the null ones, except `exit_code`, where null means unknown. Raise
    RequestError for what the schema does not allow."""
    if not isinstance(given, dict):
        raise RequestError(code, f"{of} is not an object")
    properties: dict[str, Schema] = schema["properties"]
    for name, value in given.items():
        if name not in properties:
            raise RequestError(code, f"{of} has no field {name!r}: give {', '.join(properties) or 'none'}")
        if value is not None and not _fits(value, properties[name]):
            what = properties[name].get("description", "an object")
            raise RequestError(code, f"{of}: {name} is not {what}: give one, or leave it out")
    values = {name: value for name, value in given.items() if value is not None or name == "exit_code"}
    if missing := [name for name in schema["required"] if name not in values]:
        raise RequestError(code, f"{of} needs {' and '.join(sorted(missing))}")
    return values


def _fits(value: Any, schema: Schema) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, each) for each in schema["anyOf"])
    if type(value) not in ((int, float) if schema["type"] == "number" else (_TYPES[schema["type"]],)):
        return False
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and value in schema.get("enum", [value])
    if isinstance(value, list | dict):  # `checked` checks the properties of a `record`
        inner = schema.get("items") or schema.get("additionalProperties")
        return not inner or all(_fits(each, inner) for each in (value.values() if isinstance(value, dict) else value))
    least, most = schema.get("minimum", -MOST), schema.get("maximum", MOST)
    return bool(least <= value <= most and value > schema.get("exclusiveMinimum", -math.inf))


def strict_json(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError if it is not JSON (NaN is not), or if a number does not fit a
    float."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _finite(number: str) -> float:
    if math.isinf(found := float(number)):
        raise ValueError(f"{number} does not fit a float")
    return found
