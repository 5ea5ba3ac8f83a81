"""Python functions as tools of programs and models."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, overload

from wattle import _schema
from wattle._errors import SettingsError

#: The kinds of parameters that can be properties of a JSON object.
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Tool:
    """A Python function that programs and models call.

    The JSON Schema of its arguments comes from its signature, and the descriptions from its
    docstring. A function whose result is annotated with another type than ``str`` returns a value
    to programs, and otherwise a string. A function may be async. If it raises, the program sees the
    error EREMOTE with the text of the exception.

    Args:
        function: The function.
        name: Another name than the function's own.
        description: Another description than that of the docstring.
        timeout: Maximum duration of a call, in seconds.
        schema: A JSON Schema of the arguments that replaces the signature. The function then gets
        the
            arguments as JSON values, and its results are strings unless there is a `result_schema`.
        result_schema: A JSON Schema of the results that replaces the annotation.
    """

    #: The name by which programs and models call the tool.
    name: str
    #: The description that models read.
    description: str
    #: The JSON Schema of the arguments.
    schema: dict[str, Any]
    #: The JSON Schema of the results, or `None` if they are strings.
    result_schema: dict[str, Any] | None
    #: Maximum duration of a call, in seconds. `None` for 60 seconds.
    timeout: float | None
    #: If true, the function returns something that must be awaited.
    is_async: bool

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        schema: dict[str, Any] | None = None,
        result_schema: dict[str, Any] | None = None,
    ) -> None:
        self._function = function
        own = getattr(function, "__name__", type(function).__name__)
        self.name = own if name is None else name
        about, arguments = _schema.read_docstring(inspect.getdoc(function) or "")
        self.description = about if description is None else description
        self.timeout = timeout
        called = function if inspect.isroutine(function) else type(function).__call__
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(called))
        self._hints: dict[str, Any] = {}
        self.result_schema = result_schema
        if schema is not None:
            self.schema = schema
            return
        hints = _schema.hints_of(function)
        self.schema = self._schema(hints, arguments)
        if result_schema is not None:
            return
        result = hints.get("return", inspect.Parameter.empty)
        is_text = result in (str, inspect.Parameter.empty, type(None), Any)
        try:
            self.result_schema = None if is_text else _schema.schema_of(result)
        except SettingsError as error:
            raise self._invalid(str(error), "its result") from error

    def _schema(self, hints: dict[str, Any], about: dict[str, str]) -> dict[str, Any]:
        properties = {}
        for name, parameter in inspect.signature(self._function).parameters.items():
            if parameter.kind not in _NAMED:
                raise self._invalid(
                    "it has no name in a call; give it one", f"the parameter `{parameter}`"
                )
            kind = hints.get(name, Any)
            try:
                _schema.schema_of(kind)
            except SettingsError as error:
                raise self._invalid(str(error), f"the parameter `{name}`") from error
            self._hints[name] = kind
            properties[name] = (kind, about.get(name, ""), parameter.default)
        return _schema.object_schema(properties)

    def _invalid(self, why: str, part: str) -> SettingsError:
        return SettingsError(f"the function `{self.name}` cannot be a tool: {part}: {why}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def call(self, arguments: str) -> Any:
        """Calls the function with the arguments of a JSON text."""
        given = json.loads(arguments)
        typed = {
            name: _schema.convert(self._hints.get(name, Any), value)
            for name, value in given.items()
        }
        return self._function(**typed)

    def parts(self) -> tuple[str, str, str, str | None, float | None]:
        """Returns what the native module needs to know."""
        result = None if self.result_schema is None else json.dumps(self.result_schema)
        return self.name, self.description, json.dumps(self.schema), result, self.timeout


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a :class:`Tool` of a function, with another name, description or timeout than its
    own."""

    def decorate(function: Callable[..., Any]) -> Tool:
        return Tool(function, name=name, description=description, timeout=timeout)

    return decorate if function is None else decorate(function)


def tools_of(functions: Iterable[Callable[..., Any]]) -> dict[str, Tool]:
    """Returns tools by their names."""
    tools: dict[str, Tool] = {}
    for function in functions:
        made = function if isinstance(function, Tool) else Tool(function)
        if made.name in tools:
            raise SettingsError(f"two tools are named `{made.name}`; rename one")
        tools[made.name] = made
    return tools
