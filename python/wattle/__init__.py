"""Programs in a sandbox, and agents that write them.

Run a program with Python functions as its tools::

    import wattle

    def weather(city: str) -> dict[str, str]:
        "Returns the weather in a city."
        return {"city": city, "sky": "rain"}

    print(wattle.run('(let $w (weather "Oslo")) (out $w.sky)', tools=[weather]).text)

Let a model write the programs::

    agent = wattle.Agent("openai:gpt-5", tools=[weather])
    print(agent.run("How is the weather in Oslo?").output)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wattle._agent import Agent, AgentRun, Event, Report
    from wattle._errors import (
        Cancelled,
        Denied,
        Error,
        HostError,
        InvalidProgram,
        Parked,
        ProgramFailed,
        RunFailed,
        SettingsError,
    )
    from wattle._native import Outcome, __version__
    from wattle._program import (
        Catalog,
        CatalogProgram,
        Checked,
        Diagnostic,
        Program,
        arun,
        check,
        run,
    )
    from wattle._run import Answer, ApprovalRequest, Approver, Question
    from wattle._scope import FolderGrant, Grants
    from wattle._tools import Tool, tool

__all__ = [
    "Agent",
    "AgentRun",
    "Answer",
    "ApprovalRequest",
    "Approver",
    "Cancelled",
    "Catalog",
    "CatalogProgram",
    "Checked",
    "Denied",
    "Diagnostic",
    "Error",
    "Event",
    "FolderGrant",
    "Grants",
    "HostError",
    "InvalidProgram",
    "Outcome",
    "Parked",
    "Program",
    "ProgramFailed",
    "Question",
    "Report",
    "RunFailed",
    "SettingsError",
    "Tool",
    "__version__",
    "arun",
    "check",
    "run",
    "tool",
]

#: The modules of the names. They are imported when a name is first used, so that the command starts
#: without them.
_MODULES = {
    "_agent": ("Agent", "AgentRun", "Event", "Report"),
    "_errors": (
        "Cancelled",
        "Denied",
        "Error",
        "HostError",
        "InvalidProgram",
        "Parked",
        "ProgramFailed",
        "RunFailed",
        "SettingsError",
    ),
    "_native": ("Outcome", "__version__"),
    "_program": (
        "Catalog",
        "CatalogProgram",
        "Checked",
        "Diagnostic",
        "Program",
        "arun",
        "check",
        "run",
    ),
    "_run": ("Answer", "ApprovalRequest", "Approver", "Question"),
    "_scope": ("FolderGrant", "Grants"),
    "_tools": ("Tool", "tool"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import importlib

        for module, names in _MODULES.items():
            if name in names:
                value = getattr(importlib.import_module(f"wattle.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'wattle' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)
