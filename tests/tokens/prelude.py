"""Runs programs on fixtures. A JSON list of cases comes on stdin, each with the program's text, its arguments and the world that it meets; a list of what
came of them goes to stdout. What a program of the runtime gets from the host, one here gets from `case_world`; files are files, in a folder of the case's own.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit


class Failed(Exception):
    """The program ended with an error code, and a reason."""

    def __str__(self):
        return self.args[0]


def fail(code, reason=""):
    raise Failed(code, reason)


def yaml_load(file):
    """Reads the YAML of the cases, a list of flat maps. Python's library has no YAML."""
    items = []
    for line in file:
        if line.startswith("- "):
            items.append({})
        key, value = (part.strip() for part in line[2:].split(":"))
        items[-1][key] = int(value) if value.isdigit() else value
    return items


def case_world(case):
    results, state, answers = [], dict(case["kv"]), list(case["ai"])

    def out(text):
        if not isinstance(text, str):
            raise TypeError("a result is a text")
        results.append(text)

    def ask(url, method="GET"):
        if urlsplit(url).scheme not in ("http", "https"):
            fail("EPARSE")
        for answer in case["http"]:
            if answer["method"] == method and answer["url"].rstrip("/") == url.rstrip("/"):
                return answer["status"], answer["body"]
        fail("EREMOTE")

    def accepted(answer):
        if answer[0] >= 400:
            fail("EREMOTE")
        return answer[1]

    def fetched(url):
        item = {"url": url}
        try:
            answer = ask(url)
            item["status"] = answer[0]
            item["body"] = accepted(answer)
        except Failed as failed:
            item |= {"code": str(failed), "error": "it failed"}
        return item

    def ai_assist(text, instruction):
        for answer in answers:
            if isinstance(answer, str):
                answers.remove(answer)
                return answer
            if answer["when"] in text or answer["when"] in instruction:
                return answer["reply"]
        fail("EREMOTE")

    def ai_classify(text, labels):
        if not labels:
            fail("EBOUND")
        return ai_assist(text, "")

    def ai_extract(text, schema):
        if not isinstance(json.loads(schema)["type"], str):
            fail("EPARSE")
        return ai_assist(text, "")

    def kv_set(key, value):
        if not key:
            fail("EBOUND")
        state[key] = value

    def kv_incr(key, by):
        total = int(state.get(key, "0")) + by
        state[key] = str(total)
        return total

    names = {
        "args": case["args"],
        "out": out,
        "fail": fail,
        "yaml_load": yaml_load,
        "http_get": lambda url: accepted(ask(url)),
        "http_get_all": lambda urls: [fetched(url) for url in urls],
        "http_request": lambda method, url, headers, body: ask(url, method),
        "kv_set": kv_set,
        "kv_get": lambda key: state[key],
        "kv_list": lambda prefix: sorted(key for key in state if key.startswith(prefix)),
        "kv_incr": kv_incr,
        "ai_assist": ai_assist,
        "ai_classify": ai_classify,
        "ai_extract": ai_extract,
    }
    return names, results, state


def run(case):
    names, results, state = case_world(case)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path, content in case["files"].items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(content, newline="")
        failed, reason = None, ""
        try:
            exec(compile(case["text"], case["name"], "exec"), names)
        except Failed as failure:
            failed, reason = failure.args
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
        files = {}
        for path in Path(".").rglob("*"):
            if path.is_file():
                with open(path, newline="") as file:
                    files[str(path)] = file.read()
        os.chdir("/")
    return {"results": results, "failed": failed, "reason": reason, "files": files, "kv": state}


json.dump([run(case) for case in json.load(sys.stdin)], sys.stdout)
