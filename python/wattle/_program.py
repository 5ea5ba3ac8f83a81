"""Programs that run without a model."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from wattle import _native, _run
from wattle._native import Outcome
from wattle._scope import Grants, Scope, native_grants, scope_of, texts


class Program:
    """A program that is prepared once and runs any number of times, on any thread.

    Args:
        source: The program.
        tools: The Python functions that the program may call by name.
        folders: Folders with ``.wat`` files that the program may call, in addition to the built-in
            programs.
        grants: What the program may use of the machine.
        timeout: Maximum running time, in seconds. The default is 150.
        approve: Approves or denies what a rule of ``grants["ask"]`` asks about.

    Raises:
        InvalidProgram: If the source is not a program.
    """

    def __init__(
        self,
        source: str,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
        grants: Grants | None = None,
        timeout: float | None = None,
        approve: _run.Approver | None = None,
    ) -> None:
        scope = scope_of(tools, folders)
        self._open(scope, scope.native.prepare(source), grants, timeout, approve)

    def _open(
        self,
        scope: Scope,
        native: _native.Program,
        grants: Grants | None,
        timeout: float | None,
        approve: _run.Approver | None,
    ) -> None:
        self._tools = scope.tools
        self._native = native
        self._grants = native_grants(grants)
        self._timeout = timeout
        self._approve = approve
        self._is_alone = not native.has_tools and approve is None

    @classmethod
    def _named(
        cls, scope: Scope, name: str, grants: Grants | None, timeout: float | None
    ) -> Program:
        program = cls.__new__(cls)
        program._open(scope, scope.native.named(name), grants, timeout, None)
        return program

    @property
    def source(self) -> str:
        """The source."""
        return self._native.source

    def run(self, *args: Any) -> Outcome:
        """Runs the program with these arguments and waits for its end.

        Raises:
            ProgramFailed: If the program fails.
            Denied: If the program may not do what it needs.
        """
        if self._is_alone:
            return self._native.run(texts(args), self._grants, self._timeout)
        return _outcome(_run.wait(self._start(args, None), self._tools, self._approve))

    async def arun(self, *args: Any) -> Outcome:
        """Runs the program like :meth:`run`, on the running event loop. Cancelling the task ends
        it."""
        session = _run.Session(lambda waker: self._start(args, waker), self._tools, self._approve)
        return _outcome(await session.result())

    def _start(self, args: tuple[Any, ...], waker: _native.Waker | None) -> _native.Run:
        asks = self._approve is not None
        return self._native.start(texts(args), self._grants, self._timeout, asks, waker)

    def __repr__(self) -> str:
        return f"Program({self.source!r})"


def _outcome(result: Any) -> Outcome:
    assert isinstance(result, Outcome)
    return result


def run(
    source: str,
    args: Iterable[Any] = (),
    *,
    tools: Iterable[Callable[..., Any]] = (),
    folders: Iterable[str | os.PathLike[str]] = (),
    grants: Grants | None = None,
    timeout: float | None = None,
    approve: _run.Approver | None = None,
) -> Outcome:
    """Runs a program and waits for its end. The options are those of :class:`Program`."""
    program = Program(
        source, tools=tools, folders=folders, grants=grants, timeout=timeout, approve=approve
    )
    return program.run(*args)


async def arun(
    source: str,
    args: Iterable[Any] = (),
    *,
    tools: Iterable[Callable[..., Any]] = (),
    folders: Iterable[str | os.PathLike[str]] = (),
    grants: Grants | None = None,
    timeout: float | None = None,
    approve: _run.Approver | None = None,
) -> Outcome:
    """Runs a program like :func:`run`, on the running event loop. Cancelling the task ends it."""
    program = Program(
        source, tools=tools, folders=folders, grants=grants, timeout=timeout, approve=approve
    )
    return await program.arun(*args)


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """A finding about a program."""

    #: ``error`` or ``warning``.
    severity: str
    #: The stable code, such as ``unknown-function``.
    code: str
    #: A sentence that describes the fault.
    message: str
    #: A sentence that says what to do, if that is known.
    hint: str | None
    #: The line, counted from 1.
    line: int
    #: The column, in characters, counted from 1.
    column: int


@dataclasses.dataclass(frozen=True)
class Checked:
    """The result of checking a program."""

    #: If true, the program is valid.
    ok: bool
    #: The errors, or the warnings about a valid program.
    diagnostics: tuple[Diagnostic, ...]
    #: What the program may access outside its run: lists of ``functions``, ``reads``, ``writes``,
    #: ``urls``, ``keys``, ``programs``, ``services`` and ``unknown``. Empty for an invalid program.
    touches: dict[str, list[str]]


def check(
    source: str,
    *,
    tools: Iterable[Callable[..., Any]] = (),
    folders: Iterable[str | os.PathLike[str]] = (),
) -> Checked:
    """Checks a program without running it."""
    checked = json.loads(scope_of(tools, folders).native.check(source))
    names = [field.name for field in dataclasses.fields(Diagnostic)]
    found = [Diagnostic(**{name: one[name] for name in names}) for one in checked["diagnostics"]]
    return Checked(checked["ok"], tuple(found), checked["touches"] or {})


@dataclasses.dataclass(frozen=True)
class CatalogProgram:
    """A program of the catalog."""

    #: The name.
    name: str
    #: The description.
    description: str
    #: The name with the arguments and their types.
    usage: str
    #: The arguments: ``name``, ``type_hint``, ``format``, ``description`` and ``default`` of each.
    args: list[dict[str, Any]]
    #: A description of the results.
    returns: str | None
    #: The rest of the program's front matter.
    meta: dict[str, Any]


class Catalog:
    """The programs that programs and models call by name: the built-in ones and those in folders.

    Args:
        folders: Folders with ``.wat`` files.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]] = ()) -> None:
        self._scope = scope_of((), folders)

    def __iter__(self) -> Any:
        return iter(self.programs())

    def __len__(self) -> int:
        return len(self.programs())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._scope.native.program(name) is not None

    def programs(self) -> list[CatalogProgram]:
        """Returns all programs, sorted by name."""
        return [_program(one) for one in json.loads(self._scope.native.programs(None))]

    def search(self, words: str) -> list[CatalogProgram]:
        """Returns the programs that match some words, best first."""
        return [_program(one) for one in json.loads(self._scope.native.programs(words))]

    def __getitem__(self, name: str) -> CatalogProgram:
        found = self._scope.native.program(name)
        if found is None:
            raise KeyError(name)
        return _program(json.loads(found))

    def run(
        self, name: str, *args: Any, grants: Grants | None = None, timeout: float | None = None
    ) -> Outcome:
        """Runs a program by its name. Its arguments are checked by their declared types."""
        return Program._named(self._scope, name, grants, timeout).run(*args)


def _program(fields: dict[str, Any]) -> CatalogProgram:
    own = {field.name for field in dataclasses.fields(CatalogProgram)}
    meta = {key: value for key, value in fields.items() if key not in own}
    return CatalogProgram(meta=meta, **{key: value for key, value in fields.items() if key in own})
