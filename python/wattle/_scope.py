"""What programs may call and use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from wattle import _native
from wattle._tools import Tool, tools_of


class FolderGrant(TypedDict, total=False):
    """A folder that programs work on."""

    #: The folder.
    path: str | os.PathLike[str]
    #: If true, programs write to the folder directly. Otherwise, what they write stays in memory.
    write: bool


class Grants(TypedDict, total=False):
    """What programs may use. Without grants, they touch nothing of the machine: their files are in
    memory, and they reach no host."""

    #: The folder that programs read. What they write stays in memory, unless it is a `FolderGrant`
    #: with `write`.
    files: str | os.PathLike[str] | FolderGrant
    #: The hosts that programs may reach, such as ``api.example.com``, ``*.example.com``,
    #: ``127.0.0.1:8080``, or ``*`` for all public hosts.
    hosts: Sequence[str]
    #: Variables that programs read by ``(kv.get "tenant:NAME")``.
    variables: Mapping[str, str]
    #: Rules on effects that are allowed, as in the setting ``allow`` of the command.
    allow: Sequence[str]
    #: Rules on effects that need approval.
    ask: Sequence[str]
    #: Rules on effects that are denied.
    deny: Sequence[str]


def plain_grants(grants: Grants) -> dict[str, Any]:
    """Returns grants as JSON values."""

    def plain(value: Any) -> Any:
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, Mapping):
            return {key: plain(one) for key, one in value.items()}
        return value if isinstance(value, (str, bool)) else list(value)

    return {key: plain(value) for key, value in grants.items()}


def native_grants(grants: Grants | None) -> _native.Grants | None:
    """Checks grants."""
    return None if not grants else _native.Grants(json.dumps(plain_grants(grants)))


class Scope:
    """The programs and tools that programs may call by name."""

    def __init__(
        self,
        tools: Iterable[Callable[..., Any]] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.tools: dict[str, Tool] = tools_of(tools)
        folders = [os.fspath(folder) for folder in folders]
        self.native = _native.Scope(folders, [tool.parts() for tool in self.tools.values()])


_built_in: Scope | None = None


def scope_of(
    tools: Iterable[Callable[..., Any]], folders: Iterable[str | os.PathLike[str]]
) -> Scope:
    """Returns a scope. All programs without tools and folders share one."""
    global _built_in
    tools, folders = tuple(tools), tuple(folders)
    if tools or folders:
        return Scope(tools, folders)
    if _built_in is None:
        _built_in = Scope()
    return _built_in


def texts(args: Iterable[Any]) -> list[str]:
    """Converts the arguments of a program to strings: a string is not changed, and other values are
    written as JSON."""
    return [arg if isinstance(arg, str) else json.dumps(arg, allow_nan=False) for arg in args]
