"""From a request to what it asks: bodies that are too large, too slow or no JSON are refused here."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import scipy.sparse as sp
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request

from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem

FORM, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
FIELDS = 10_000  # of a form: a field is a label of a list at the most
LARGEST = 1e15  # of a feature: sums of squares of many, which learning makes, still fit into float32
LISTS = ("allow", "block")  # fields that are lists, also if they have one value
LIMIT = 10  # suggestions, where nobody says


@dataclass(frozen=True)
class Wanted:
    """Which suggestions to give for a document."""

    limit: int = LIMIT
    threshold: float = 0.0
    language: str | None = None
    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the bytes of a request."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "The body must not be compressed.")
    stated = request.headers.get("content-length", "0")
    if stated.isdigit() and int(stated) > limits.body:
        raise _too_large(limits)
    try:
        return await asyncio.wait_for(_collect(request, limits), limits.seconds)
    except asyncio.TimeoutError:
        raise Problem(408, f"The body must arrive within {limits.seconds:g} seconds.") from None
    except ClientDisconnect:
        raise Problem(400, "The body was cut off.") from None  # for the log: nobody reads it


async def _collect(request: Request, limits: Limits) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body:
            raise _too_large(limits)
    return bytes(body)


def _too_large(limits: Limits) -> Problem:
    return Problem(413, f"The body must have at most {limits.body} bytes. Send less at a time.")


async def read_json(request: Request, limits: Limits) -> Any:
    """Return the JSON of a request."""
    if _media_type(request) != JSON:
        raise Problem(415, f"The body must be {JSON}, and Content-Type must say so.")
    return parse_json(await read_body(request, limits))


def parse_json(body: bytes) -> Any:
    """Return JSON that is JSON: UTF-8, numbers finite, nesting bounded."""
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise Problem(400, "The body must be UTF-8.") from None
    except RecursionError:
        raise Problem(400, "The body is nested too deeply.") from None
    except ValueError:
        raise Problem(400, "The body must be JSON.") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


async def read_fields(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the fields of a form or of a JSON object; a field of a form that is there several times is a list."""
    kind = _media_type(request)
    if kind == JSON:
        return as_object(await read_json(request, limits), "The body")
    body = await read_body(request, limits)
    if kind == FORM:
        return _gather(_parse_form(body))
    if kind == MULTIPART:
        return _gather(await _parse_multipart(request, body, limits))
    raise Problem(415, f"The body must be {FORM}, {MULTIPART} or {JSON}, and Content-Type must say so.")


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except UnicodeError:
        raise Problem(400, "The form must be ASCII, with other characters as UTF-8 in percent signs.") from None
    except ValueError:
        raise Problem(400, f"The form must have at most {FIELDS} fields.") from None


async def _parse_multipart(request: Request, body: bytes, limits: Limits) -> list[tuple[str, str]]:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    again = Request(request.scope, receive)
    try:
        async with again.form(max_files=1, max_fields=FIELDS, max_part_size=limits.body) as form:
            return [(name, await _field_text(value)) for name, value in form.multi_items()]
    except FormParserError:  # older versions of Starlette let it through
        raise Problem(400, f"The body must be {MULTIPART}, with the boundary that Content-Type says.") from None


async def _field_text(value: str | UploadFile) -> str:
    if isinstance(value, str):
        return value
    try:
        return (await value.read()).decode()
    except UnicodeDecodeError:
        raise Problem(400, "The file must be UTF-8.") from None


def read_query(request: Request) -> dict[str, Any]:
    """Return the fields of the address, as those of a form."""
    return _gather(request.query_params.multi_items())


def _gather(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values if name in LISTS or len(values) > 1 else values[0] for name, values in fields.items()}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


# --- fields -------------------------------------------------------------------------------------------------------


def as_object(value: Any, name: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise Problem(400, f"{name} must be a JSON object. Got {kind_of(value)}.")
    return value


def as_list(value: Any, name: str) -> list[Any]:
    """Return a JSON array."""
    if not isinstance(value, list):
        raise Problem(400, f"{name} must be a JSON array. Got {kind_of(value)}.")
    return value


def as_string(value: Any, name: str, most: int = 1000) -> str:
    """Return a string that can be written as UTF-8."""
    if not isinstance(value, str):
        raise Problem(400, f"{name} must be a string. Got {kind_of(value)}.")
    if len(value) > most:
        raise Problem(400, f"{name} must have at most {most} characters. Got {len(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Problem(400, f"{name} must be Unicode. Got half of a surrogate pair.") from None
    return value


def as_integer(value: Any, name: str, low: int, high: int) -> int:
    """Return a whole number: of JSON, or as a form has it."""
    number = value
    if isinstance(value, str):
        digits = value.removeprefix("-")
        number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    elif isinstance(value, float) and value.is_integer():  # 16.0 is a whole number of JSON
        number = int(value)
    if type(number) is not int or not low <= number <= high:
        raise Problem(400, f"{name} must be a whole number from {low} to {high}. Got {brief(value)}.")
    return number


def as_number(value: Any, name: str, low: float, high: float) -> float:
    """Return a number: of JSON, or as a form has it."""
    try:
        number = float(value) if type(value) in (int, float, str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        raise Problem(400, f"{name} must be a number from {low:g} to {high:g}. Got {brief(value)}.")
    return number


def kind_of(value: Any) -> str:
    """Return what JSON calls a value."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")


def brief(value: Any) -> str:
    """Return a value as a message may quote it: never a text."""
    return (
        repr(value)
        if isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 20)
        else kind_of(value)
    )


def read_wanted(fields: Mapping[str, Any], limits: Limits) -> Wanted:
    """Return limit, threshold, language, allow and block of a form, a JSON object or a query."""
    allow, block = (_label_list(fields.get(name), name, limits) for name in LISTS)
    return Wanted(
        min(as_integer(fields.get("limit", LIMIT), "limit", 0, 2**31 - 1), limits.labels),
        as_number(fields.get("threshold", 0.0), "threshold", 0.0, 1.0),
        read_language(fields),
        allow,
        block or (),
    )


def read_language(fields: Mapping[str, Any]) -> str | None:
    """Return the language that labels are wanted in, if one is."""
    language = fields.get("language")
    return None if language in (None, "") else as_string(language, "language", 35)


def _label_list(value: Any, name: str, limits: Limits) -> tuple[str, ...] | None:
    if value is None:
        return None
    items = as_list(value, name)
    if len(items) > limits.labels:
        raise Problem(400, f"{name} must have at most {limits.labels} labels. Got {len(items)}.")
    return tuple(as_string(item, f"A label of {name}") for item in items)


def read_document(fields: Mapping[str, Any], model: Any, limits: Limits) -> Any:
    """Return a document as the model takes it: a text, or a sparse row of features."""
    given = [name for name in ("text", "features") if name in fields]
    wanted, other = ("text", "features") if model.takes_text else ("features", "text")
    if not given:
        raise Problem(400, f"{wanted} is missing.")
    if len(given) > 1:
        raise Problem(400, "Send text or features, not both.")
    if given == [other]:
        raise Problem(409, f"This model takes {wanted}, not {other}.")
    return (
        as_string(fields["text"], "text", limits.text) if model.takes_text else read_features(fields["features"], model)
    )


def read_features(given: Any, model: Any) -> sp.csr_array:
    """Return a row (1, p) from a list of p numbers, or from an object of numbers by column or by name."""
    source = model.features_ if hasattr(model.features_, "n_features_in_") else model
    p = int(source.n_features_in_)
    if isinstance(given, list):
        if len(given) != p:
            raise Problem(400, f"features must have {p} numbers. Got {len(given)}.")
        values = np.array([_feature(value) for value in given], np.float32)
        return sp.csr_array(values[None, :])
    if not isinstance(given, dict):
        raise Problem(400, f"features must be an array or an object of numbers. Got {kind_of(given)}.")
    names = {str(name): j for j, name in enumerate(getattr(source, "feature_names_in_", ()))}
    row: dict[int, float] = {}
    for name, value in given.items():
        column = names.get(name, int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1)
        if not 0 <= column < p:
            raise Problem(
                400, f"features must be named as in training, or numbered from 0 to {p - 1}. Got {name[:50]!r}."
            )
        row[column] = _feature(value)
    columns = sorted(row)
    values = np.array([row[column] for column in columns], np.float32)
    return sp.csr_array((values, np.array(columns, np.int32), np.array([0, len(columns)], np.int32)), shape=(1, p))


def _feature(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= LARGEST:
        raise Problem(400, f"Each of features must be a number of at most {LARGEST:g}. Got {brief(value)}.")
    return float(value)
