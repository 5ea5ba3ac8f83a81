"""The official example servers, and servers of the newest version, called from programs of
`wattle exec`.

Arguments: the binary, the folder of the Python commands, the folder of the Node packages, and an
empty folder.
"""

import functools
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

binary, commands, modules, folder = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
started = []


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listening(command, port, **env):
    """Starts a server and waits until it listens."""
    log = open(f"{folder}/{port}.log", "w")
    started.append(subprocess.Popen(command, env={**os.environ, **env}, stdout=log, stderr=log))
    for _ in range(200):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return f"http://127.0.0.1:{port}/mcp"
        time.sleep(0.05)
    raise AssertionError(open(log.name).read())


class Page(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


# Each server with its settings, a program, and words of its output.
os.makedirs(f"{folder}/pages")
os.makedirs(f"{folder}/files")
os.makedirs(f"{folder}/home/.config/wattle")
with open(f"{folder}/pages/index.html", "w") as file:
    file.write("<html><body><h1>A page</h1><p>It has forty words.</p></body></html>")
with open(f"{folder}/files/a.txt", "w") as file:
    file.write("first\nsecond\n")
pages = functools.partial(Page, directory=f"{folder}/pages")
page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), pages)
threading.Thread(target=page.serve_forever, daemon=True).start()
git = ["git", "-C", f"{folder}/files", "-c", "user.name=a", "-c", "user.email=a@a.example"]
subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
subprocess.run([*git, "add", "."], check=True)
subprocess.run([*git, "commit", "-q", "-m", "The first commit"], check=True)

every, typescript, python = free_port(), free_port(), free_port()
bin = f"{modules}/.bin"
SERVERS = {
    "fetch": (
        {"command": f"{commands}/mcp-server-fetch", "args": ["--ignore-robots-txt", "--allow-private-ips"]},
        f'(out (fetch.fetch url: "http://127.0.0.1:{page.server_port}/index.html"))',
        ["A page", "forty words"],
    ),
    # The host functions have the name `git`.
    "git": (
        {"command": f"{commands}/mcp-server-git", "args": ["--repository", f"{folder}/files"]},
        f'(out (mcp_git.git_log repo_path: "{folder}/files"))\n'
        f'(out (mcp_git.git_status repo_path: "{folder}/files"))',
        ["The first commit", "nothing to commit"],
    ),
    "time": (
        {"command": f"{commands}/mcp-server-time"},
        '(let $t (time.convert_time source_timezone: "UTC" time: "12:00" '
        'target_timezone: "Asia/Tokyo"))\n(out $t.time_difference $t.target.timezone)',
        ["+9.0h", "Asia/Tokyo"],
    ),
    "everything": (
        {"command": f"{bin}/mcp-server-everything", "args": ["stdio"]},
        '(out (everything.echo message: "hi") (everything.get_sum a: 1 b: 2))\n'
        '(let $w (everything.get_structured_content location: "Chicago"))\n(out $w.conditions)\n'
        "(out (everything.get_tiny_image))\n"
        "(out (everything.trigger_long_running_operation duration: 1 steps: 2))",
        ["Echo: hi", "1 and 2 is 3", "rain", "[image image/png", "Long running operation completed"],
    ),
    "everything_http": (
        {"url": f"http://127.0.0.1:{every}/mcp"},
        '(out (everything_http.echo message: "hi"))\n'
        "(out (everything_http.trigger_long_running_operation duration: 1 steps: 2))",
        ["Echo: hi", "Long running operation completed"],
    ),
    "files": (
        {"command": f"{bin}/mcp-server-filesystem", "args": [f"{folder}/files"]},
        f'(let $r (files.read_text_file path: "{folder}/files/a.txt"))\n(out $r.content)\n'
        f'(out (default (files.read_text_file path: "/etc/passwd") "denied"))',
        ["first", "second", "denied"],
    ),
    "graph": (
        {"command": f"{bin}/mcp-server-memory", "env": {"MEMORY_FILE_PATH": f"{folder}/graph.json"}},
        '(graph.create_entities entities: (list (obj "name" "Ada" "entityType" "person" '
        '"observations" (list "wrote programs"))))\n'
        "(let $g (graph.read_graph))\n(out $g.entities.0.name)",
        ["Ada"],
    ),
    "typescript": (
        {"url": f"http://127.0.0.1:{typescript}/mcp"},
        '(let $r (typescript.add a: 20 b: 22))\n(out $r.sum)\n'
        '(out (default (typescript.add a: "x" b: 1) "invalid"))',
        ["42", "invalid"],
    ),
    "python": (
        {"url": f"http://127.0.0.1:{python}/mcp"},
        "(let $r (python.add a: 20 b: 22))\n(out $r.result)\n"
        "(out (python.slow steps: 3))",
        ["42", "3 steps"],
    ),
}


def wattle(*args, **options):
    env = {"HOME": f"{folder}/home", "PATH": os.environ["PATH"]}
    done = subprocess.run([binary, *args], env=env, cwd=f"{folder}/home", text=True,
                          capture_output=True, **options)
    assert done.returncode == 0, f"{args}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


try:
    listening(["node", f"{bin}/mcp-server-everything", "streamableHttp"], every, PORT=str(every))
    listening(["node", f"{here}/mcp_server.mjs", str(typescript)], typescript)
    listening([f"{commands}/python", f"{here}/mcp_server.py", str(python)], python)
    with open(f"{folder}/home/.config/wattle/wattle.toml", "w") as file:
        for name, (settings, _, _) in SERVERS.items():
            file.write(f"[mcp.{name}]\n")
            for key, value in settings.items():
                if isinstance(value, dict):
                    value = "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + "}"
                else:
                    value = json.dumps(value)
                file.write(f"{key} = {value}\n")
    for name, (_, program, words) in SERVERS.items():
        output = wattle("exec", "-", input=program)
        missing = [word for word in words if word not in output]
        assert not missing, f"{name}: {missing} are missing in:\n{output}"
    versions = {one["name"]: one for one in json.loads(wattle("mcp", "list", "--json"))}
    for name, one in versions.items():
        assert one["problems"] == [], one
        print(f"{name}: ok ({one['version']}, {one['protocol']}, {one['tools']} tools)", flush=True)
    for name in ["typescript", "python"]:
        assert versions[name]["protocol"] == "2026-07-28", versions[name]
finally:
    for process in started:
        process.terminate()
