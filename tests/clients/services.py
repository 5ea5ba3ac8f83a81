"""The engine of the example. For the address of a page, it calls each function of the interface `host`
instead, and answers with what they returned."""

import json

import app
import wit_world
from componentize_py_types import Err
from wit_world.imports import host
from wit_world.imports.loop import Execution_Ran


def value(requested):
    """Returns the result of a request, or the reason why there is none."""
    _spent, result = requested
    if isinstance(result, Err):
        return "stopped"
    if not isinstance(result.value, Execution_Ran):
        return f"refused: {result.value.value}"
    ran = result.value.value
    return ran.results[0] if ran.failure is None else f"failed: {ran.failure.name}: {ran.failure.reason}"


class WitWorld(app.WitWorld):
    def run(self, prompt: str, config: str) -> wit_world.Report:
        if not prompt.startswith("http://"):
            return super().run(prompt, config)
        session = host.session_info()
        begun = host.now()
        answer = {
            "agent": session.agent,
            "model": session.model,
            "granted": session.granted,
            "folder": value(host.vfs_query(host.Query_Folder("."))),
            "paths": value(host.vfs_query(host.Query_Paths("**/*.html"))),
            "text": value(host.vfs_query(host.Query_Text("notes.txt"))),
            "missing": value(host.vfs_query(host.Query_Text("missing.txt"))),
            "command": value(host.run_command("wc -w < notes.txt")),
            "page": value(host.browse_fetch(prompt)),
            "private": value(host.browse_fetch("http://127.0.0.1:1/")),
            "passes": host.now() >= begun > 0,
            "differ": host.random() != host.random(),
        }
        return wit_world.Report(wit_world.Ending_Answered(json.dumps(answer)), [])
