"""Exceptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wattle._native import Outcome


class Error(Exception):
    """The base of all exceptions of this package."""

    #: A stable name: the error code of a program, such as ``ENOENT``, the code of a diagnostic,
    #: such as ``unknown-function``, or a word for the reason why a run stopped, such as
    #: ``timeout``.
    code: str
    #: A sentence that says what is wrong.
    reason: str
    #: A sentence that says what to do, if that is known.
    hint: str | None
    #: The line of the program, counted from 1, if the error has a position.
    line: int | None
    #: The column, in characters, counted from 1.
    column: int | None

    def __init__(
        self,
        message: str,
        *,
        code: str = "settings",
        reason: str | None = None,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = message if reason is None else reason
        self.hint = hint
        self.line = line
        self.column = column


class InvalidProgram(Error):
    """The program does not compile."""


class Denied(Error):
    """The program may not do what it needs. No instruction was executed."""


class ProgramFailed(Error):
    """The program returned an error code, or was stopped."""

    #: The full name of the host function that failed, such as ``http.get``, if one did.
    function: str | None = None
    #: What the program did before it failed.
    outcome: Outcome


class RunFailed(Error):
    """The run of an agent did not complete."""

    #: The report of the run.
    report: dict[str, Any]

    @property
    def run_id(self) -> str:
        """The id of the run, by which it can be resumed."""
        return str(self.report["run_id"])


class Parked(RunFailed):
    """The run of an agent waits for a person. ``Agent.resume`` continues it with the answers."""

    @property
    def pending(self) -> dict[str, str]:
        """The questions by the ids of the calls that wait."""
        return {one["call"]: one["question"] for one in self.report["pending"]}


class Cancelled(Error):
    """The run was cancelled."""


class SettingsError(Error, ValueError):
    """An argument or a setting is invalid."""


class HostError(Error, RuntimeError):
    """The engine failed, or the interpreter is shutting down."""


_CLASSES: dict[str, type[Error]] = {
    "invalid-program": InvalidProgram,
    "denied": Denied,
    "program-failed": ProgramFailed,
    "run-failed": RunFailed,
    "parked": Parked,
    "cancelled": Cancelled,
    "settings": SettingsError,
    "host": HostError,
}


def make(
    *,
    kind: str,
    message: str,
    function: str | None,
    outcome: Outcome | None,
    report: str | None,
    **details: Any,
) -> Error:
    """Creates the exception for an error of the native module."""
    error = _CLASSES[kind](message, **details)
    if isinstance(error, ProgramFailed) and outcome is not None:
        error.function = function
        error.outcome = outcome
    if isinstance(error, RunFailed) and report is not None:
        error.report = json.loads(report)
    return error
