"""JSON Schemas of Python types, and values that match them."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import pathlib
import re
import types
import typing
import uuid
from typing import Any, Union

from wattle._errors import SettingsError

_Schema = dict[str, Any]

_PLAIN: dict[Any, _Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"type": "string"},
    pathlib.Path: {"type": "string"},
}

_LISTS = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.abc.Set,
)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_ANY = (Any, object, inspect.Parameter.empty)


def _is_model(kind: Any) -> bool:
    """Returns true for a class of pydantic."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema")


def _is_typed_dict(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def hints_of(owner: Any) -> dict[str, Any]:
    """Returns the annotations of a function or a class, without quotes."""
    names: dict[str, Any] = {}
    function = inspect.unwrap(getattr(owner, "__func__", owner))
    if inspect.isfunction(function):
        names = dict(inspect.getclosurevars(function).nonlocals)
    elif not isinstance(owner, type):
        owner = type(owner).__call__
    try:
        return typing.get_type_hints(owner, localns=names or None, include_extras=True)
    except NameError as error:
        name = getattr(owner, "__qualname__", owner)
        raise SettingsError(
            f"an annotation of `{name}` cannot be read: {error}; define the type at the top of its "
            "module"
        ) from error


def schema_of(kind: Any) -> _Schema:
    """Returns the schema of a type, with the definitions that it refers to."""
    definitions: dict[str, _Schema] = {}
    schema = _schema(kind, definitions)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = dict(definitions[reference.removeprefix("#/$defs/")])
    if definitions:
        schema["$defs"] = definitions
    return schema


def object_schema(properties: dict[str, tuple[Any, str, Any]]) -> _Schema:
    """Returns the schema of an object, of the type, the description and the default of each
    property. A property is required if its default is ``inspect.Parameter.empty``."""
    definitions: dict[str, _Schema] = {}
    fields = {
        name: _described(_schema(kind, definitions), about, default)
        for name, (kind, about, default) in properties.items()
    }
    required = [
        name for name, (_, _, default) in properties.items() if default is inspect.Parameter.empty
    ]
    schema: _Schema = {"type": "object", "properties": fields, "required": required}
    if definitions:
        schema["$defs"] = definitions
    return schema


def _described(schema: _Schema, about: str, default: Any) -> _Schema:
    schema = dict(schema)
    if about:
        schema["description"] = about
    if default is not inspect.Parameter.empty and default is not None:
        schema["default"] = json.loads(encode(default))
    return schema


def _schema(kind: Any, definitions: dict[str, _Schema]) -> _Schema:
    if any(kind is one for one in _ANY) or isinstance(kind, typing.TypeVar):
        return {}
    if kind is None:
        return dict(_PLAIN[type(None)])
    try:
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
    except TypeError:
        pass
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        about = [one for one in args[1:] if isinstance(one, str)]
        about += [
            one.description
            for one in args[1:]
            if isinstance(getattr(one, "description", None), str)
        ]
        return _described(_schema(args[0], definitions), " ".join(about), inspect.Parameter.empty)
    if origin is typing.Literal:
        return _choices(list(args))
    if origin in (Union, types.UnionType):
        return _union([_schema(arg, definitions) for arg in args])
    if origin is tuple or kind is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": _schema(args[0], definitions)}
        if not args:
            return {"type": "array"}
        items = [_schema(arg, definitions) for arg in args]
        return {
            "type": "array",
            "prefixItems": items,
            "minItems": len(items),
            "maxItems": len(items),
        }
    if origin in _LISTS or kind in _LISTS:
        schema: _Schema = {"type": "array"}
        return schema | {"items": _schema(args[0], definitions)} if args else schema
    if origin in _MAPS or kind in _MAPS:
        schema = {"type": "object"}
        return schema | {"additionalProperties": _schema(args[1], definitions)} if args else schema
    supertype = getattr(kind, "__supertype__", None)
    if supertype is not None:
        return _schema(supertype, definitions)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _choices([member.value for member in kind])
    if _is_model(kind) or dataclasses.is_dataclass(kind) or _is_typed_dict(kind):
        return _reference(kind, definitions)
    raise SettingsError(
        f"the type `{_name(kind)}` has no JSON form; use plain types, lists, dicts, `Literal`, "
        "dataclasses, `TypedDict` or models of pydantic"
    )


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))


def _choices(values: list[Any]) -> _Schema:
    kinds = {type(value) for value in values}
    schema: _Schema = {"enum": values}
    if len(kinds) == 1 and (kind := kinds.pop()) in _PLAIN:
        schema["type"] = _PLAIN[kind]["type"]
    return schema


def _union(parts: list[_Schema]) -> _Schema:
    null = _PLAIN[type(None)]
    others = [part for part in parts if part != null]
    if len(others) == 1 and set(others[0]) == {"type"} and len(parts) == 2:
        return {"type": [others[0]["type"], "null"]}
    return {"anyOf": parts} if len(parts) > 1 else parts[0]


def _reference(kind: Any, definitions: dict[str, _Schema]) -> _Schema:
    name = kind.__name__
    reference = {"$ref": f"#/$defs/{name}"}
    if name in definitions:
        return reference
    if _is_model(kind):
        own = kind.model_json_schema()
        definitions.update(own.pop("$defs", {}))
        definitions[name] = own
        return reference
    # A type may refer to itself.
    definitions[name] = {}
    about = inspect.getdoc(kind) or ""
    fields = _fields(kind)
    properties = {
        field: _described(_schema(own, definitions), "", default)
        for field, (own, default, _) in fields.items()
    }
    schema: _Schema = {
        "type": "object",
        "properties": properties,
        "required": [field for field, (_, _, required) in fields.items() if required],
    }
    is_default = dataclasses.is_dataclass(kind) and about.startswith(f"{name}(")
    if about and not is_default and about != inspect.getdoc(dict):
        schema["description"] = about
    definitions[name] = schema
    return reference


def _fields(kind: Any) -> dict[str, tuple[Any, Any, bool]]:
    """Returns the type and the default of each field, and whether it is required."""
    hints = hints_of(kind)
    empty = inspect.Parameter.empty
    if not dataclasses.is_dataclass(kind):
        required = kind.__required_keys__
        plain = {name: _without_mark(own) for name, own in hints.items()}
        return {name: (own, empty, name in required) for name, own in plain.items()}
    fields = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = empty if field.default is dataclasses.MISSING else field.default
        required = default is empty and field.default_factory is dataclasses.MISSING
        fields[field.name] = (hints[field.name], default, required)
    return fields


def _without_mark(kind: Any) -> Any:
    """Removes `Required` and `NotRequired`."""
    mark = getattr(typing.get_origin(kind), "_name", None)
    return typing.get_args(kind)[0] if mark in ("Required", "NotRequired") else kind


def convert(kind: Any, value: Any) -> Any:
    """Converts a JSON value that matches the schema of a type to a value of the type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return convert(args[0], value)
    if origin in (Union, types.UnionType):
        return _convert_union(args, value)
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(convert(own, one) for own, one in zip(kinds, value))
    if origin in _LISTS or kind in (set, frozenset, tuple):
        items = [convert(args[0], one) for one in value] if args else value
        made = origin or kind
        return made(items) if made in (set, frozenset, tuple) else items
    if origin in _MAPS and args:
        return {key: convert(args[1], one) for key, one in value.items()}
    supertype = getattr(kind, "__supertype__", None)
    if supertype is not None:
        return convert(supertype, value)
    if not isinstance(kind, type):
        return value
    if _is_model(kind):
        return kind.model_validate(value)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(kind):
        fields = _fields(kind)
        return kind(
            **{name: convert(fields[name][0], one) for name, one in value.items() if name in fields}
        )
    if _is_typed_dict(kind):
        fields = _fields(kind)
        return {
            name: convert(fields[name][0], one) if name in fields else one
            for name, one in value.items()
        }
    if issubclass(kind, enum.Enum):
        return kind(value)
    if kind in (datetime.datetime, datetime.date, datetime.time):
        text = str(value)
        # Before 3.11, Python does not read the letter that stands for UTC.
        text = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
        return kind.fromisoformat(text)
    if kind in (uuid.UUID, decimal.Decimal, pathlib.Path):
        return kind(value)
    return float(value) if kind is float and isinstance(value, int) else value


def _convert_union(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None:
        return None
    problem: Exception | None = None
    for kind in kinds:
        if kind is type(None):
            continue
        plain = _PLAIN.get(kind) if isinstance(kind, type) else None
        if plain is not None and "format" not in plain and kind is not decimal.Decimal:
            if type(value) is kind or (kind is float and type(value) is int):
                return convert(kind, value)
            continue
        try:
            return convert(kind, value)
        except Exception as error:  # Another part of the union may fit.
            problem = error
    if problem is not None:
        raise problem
    return value


def encode(value: Any) -> str:
    """Returns a value as a JSON text.

    Raises:
        TypeError: If the value has no JSON form.
    """
    return json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset, collections.abc.KeysView, collections.abc.ValuesView)):
        return list(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
        return str(value)
    raise TypeError(f"a value of the type `{_name(type(value))}` has no JSON form")


_SECTION = re.compile(
    r"^(args|arguments|parameters|returns?|yields?|raises|examples?|notes?):?\s*$", re.I
)
#: An argument in the style of Google: ``name (type): description``.
_ARGUMENT = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
#: An argument in the style of NumPy, whose description is on the next lines: ``name : type``.
_NUMPY_ARGUMENT = re.compile(r"^\*{0,2}(\w+)()\s*(?::.*)?$")
_FIELD = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_OTHER_FIELD = re.compile(r"^:(returns?|rtype|raises|type)\b")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Returns the description in a docstring, and the descriptions of the arguments: those of a
    section ``Args:`` (Google), of a section ``Parameters`` (NumPy), or of fields ``:param
    NAME:``."""
    about: list[str] = []
    arguments: dict[str, str] = {}
    section, current, base, pattern = "", "", -1, _ARGUMENT
    for line in inspect.cleandoc(text).splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if field := _FIELD.match(stripped):
            section, current = "fields", field[1]
            arguments[current] = field[2]
        elif _OTHER_FIELD.match(stripped):
            section, current = "fields", ""
        elif indent == 0 and (heading := _SECTION.match(stripped)):
            section, current, base, pattern = heading[1].lower(), "", -1, _ARGUMENT
        elif not section:
            about.append(line)
        elif not stripped:
            continue
        elif set(stripped) == {"-"}:
            pattern = _NUMPY_ARGUMENT
        elif section == "fields":
            if current:
                arguments[current] = f"{arguments[current]} {stripped}".strip()
        elif section in ("args", "arguments", "parameters"):
            base = indent if base < 0 else base
            if indent <= base and (argument := pattern.match(stripped)):
                current = argument[1]
                arguments[current] = argument[2]
            elif current:
                arguments[current] = f"{arguments[current]} {stripped}".strip()
    return "\n".join(about).strip(), arguments
