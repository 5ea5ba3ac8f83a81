"""The official Python client against `wattle mcp` and the route `/mcp`, with the handshake and
without it.

Arguments: the binary, the upstream file, a recording of a model, an empty folder, and the URL and the
token of a server whose settings have the same upstream servers.
"""

import sys
import time

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

binary, upstream, cassette, folder, url, token = sys.argv[1:]
PROGRAM = """(let $sum (every.get_sum a: 20 b: 22))
(out (every.echo message: "hello") $sum)
(let $time (time.get_current_time timezone: "Asia/Tokyo"))
(out $time.timezone)
(fs.write "note.txt" "kept")"""
# The server works for a minute.
SLOW = "(out (every.trigger_long_running_operation duration: 60 steps: 60))"
ASKED = '(kv.set "a" "b")\n(out "set")'


def server(*options):
    args = ["mcp", "--upstream", upstream, *options]
    env = {"HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return StdioServerParameters(command=binary, args=args, env=env, cwd=folder)


async def call(client, name, arguments, failed=False, **options):
    result = await client.call_tool(name, arguments, **options)
    text = "\n".join(block.text for block in result.content)
    assert bool(result.is_error) == failed, text
    return text


async def use(mode):
    async with Client(server("--cassette", cassette, "--expose", "file_read"), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = {"run_program", "check_program", "search_tools", "run_task", "file_read"}
        assert set(tools) == expected, set(tools)
        assert tools["check_program"].annotations.read_only_hint

        text = await call(client, "run_program", {"program": PROGRAM})
        assert "hello" in text and "20 and 22 is 42" in text and "Asia/Tokyo" in text, text
        text = await call(client, "run_program", {"program": '(out (fs.read "note.txt") (arg 0))', "args": ["x"]})
        assert text.strip() == "kept x", text
        assert "kept" in await call(client, "file_read", {"path": "note.txt"})
        text = await call(client, "run_program", {"program": "(out (every.get_sum a: 1))"}, failed=True)
        assert "get_sum" in text, text
        text = await call(client, "run_program", {"program": ""}, failed=True)
        assert "`program` is empty" in text, text

        text = await call(client, "check_program", {"program": '(http.get "https://a.example/x")'})
        assert "a.example" in text, text
        text = await call(client, "check_program", {"program": "(out (frobnicate 1))"}, failed=True)
        assert "frobnicate" in text, text
        text = await call(client, "search_tools", {"query": "time in a zone"})
        assert "time.get_current_time(timezone" in text, text

        steps = []

        async def progress(done, total, message):
            steps.append((done, message))

        text = await call(client, "run_task", {"prompt": "Add 1 and 2."}, progress_callback=progress)
        assert "The sum is" in text, text
        assert steps and steps[0][0] == 1 and "step 1" in steps[0][1], steps

        begin = time.monotonic()
        with anyio.move_on_after(0.5) as scope:
            await call(client, "run_program", {"program": SLOW})
        assert scope.cancelled_caught
        assert (await call(client, "run_program", {"program": "(out (+ 1 2))"})).strip() == "3"
        assert time.monotonic() - begin < 10, "the cancelled call held the next one"

        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        assert uris == ["wattle://language", "wattle://functions"], uris
        page = (await client.read_resource("wattle://functions")).contents[0].text
        assert "time.get_current_time" in page and "fs.read" in page
        prompt = (await client.list_prompts()).prompts[0]
        got = await client.get_prompt(prompt.name, {"task": "Count the files."})
        assert "Count the files." in got.messages[0].content.text


async def approve(mode, action):
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action=action, content={"approve": True} if action == "accept" else None)

    client = Client(server("--ask", "kv.set"), mode=mode, elicitation_callback=elicit)
    async with client:
        text = await call(client, "run_program", {"program": ASKED}, failed=action != "accept")
        assert ("set" in text.split()) == (action == "accept"), text
    assert len(asked) == 1 and "kv.set" in asked[0], asked


async def cannot_ask(mode):
    async with Client(server("--ask", "kv.set"), mode=mode) as client:
        text = await call(client, "run_program", {"program": ASKED}, failed=True)
        assert "cannot ask its user" in text and "--allow" in text, text


async def use_http(mode):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"run_program", "check_program", "search_tools", "run_task"}, names
            text = await call(client, "run_program", {"program": "(out (every.get_sum a: 20 b: 22))"})
            assert "42" in text, text
            text = await call(client, "search_tools", {"query": "time in a zone"})
            assert "time.get_current_time(timezone" in text, text
            steps = []

            async def progress(done, total, message):
                steps.append(message)

            text = await call(client, "run_task", {"prompt": "Add."}, progress_callback=progress)
            assert "The sum is" in text and "step 1" in steps[0], (text, steps)
            assert "every.echo" in (await client.read_resource("wattle://functions")).contents[0].text


async def main():
    for mode in ["legacy", "auto"]:
        await use(mode)
        for action in ["accept", "decline", "cancel"]:
            await approve(mode, action)
        await cannot_ask(mode)
        await use_http(mode)
        print(f"Python client ({mode}): ok", flush=True)


anyio.run(main)
