"""Four MCP servers with 60 tools over invented data: issues, mail, calendar, files.

The argument is the server's name. The data are the same at each start.
"""

import json
import sys

PEOPLE = ["ada", "ben", "cleo", "dan", "eva", "finn"]
LABELS = ["bug", "feature", "docs", "security", "performance"]
REPOS = ["core", "web", "docs"]


def issue(n):
    return {
        "number": n,
        "repo": REPOS[n % 3],
        "title": f"{['Crash', 'Slow page', 'Typo', 'Leak', 'Wrong total'][n % 5]} in module {n % 7}",
        "body": f"Seen on build {100 + n}. Steps: open module {n % 7}, wait, look at the log.",
        "state": "closed" if n % 4 == 0 else "open",
        "labels": [LABELS[n % 5]] + (["urgent"] if n % 6 == 0 else []),
        "assignee": PEOPLE[n % 6] if n % 5 else None,
        "comments": n % 9,
        "created": f"2026-{n % 9 + 1:02}-{n % 28 + 1:02}",
        "milestone": f"1.{n % 3}",
    }


def message(n):
    return {
        "id": f"m{n}",
        "from": f"{PEOPLE[n % 6]}@a.example",
        "to": [f"{PEOPLE[(n + 1) % 6]}@a.example"],
        "subject": ["Invoice", "Meeting", "Release", "Question", "Report"][n % 5] + f" {n}",
        "body": f"Hello, about number {n}: the amount is {n * 17 % 400} EUR. Regards, {PEOPLE[n % 6]}",
        "folder": "archive" if n % 7 == 0 else "inbox",
        "unread": n % 3 == 0,
        "date": f"2026-11-{n % 28 + 1:02}",
        "attachments": [f"invoice-{n}.pdf"] if n % 5 == 0 else [],
    }


def event(n):
    return {
        "id": f"e{n}",
        "title": ["Standup", "Review", "Planning", "Interview"][n % 4] + f" {n}",
        "start": f"2026-12-{n % 20 + 1:02}T{9 + n % 8:02}:00",
        "minutes": 30 * (n % 4 + 1),
        "attendees": sorted({PEOPLE[n % 6], PEOPLE[(n + 2) % 6]}),
        "room": f"R{n % 3}",
        "calendar": "work" if n % 5 else "private",
    }


def text(n):
    lines = [f"{PEOPLE[(n + k) % 6]},{(n * 31 + k * 7) % 90}" for k in range(12)]
    return "name,score\n" + "\n".join(lines)


ISSUES = {n: issue(n) for n in range(1, 61)}
MAIL = {f"m{n}": message(n) for n in range(1, 61)}
EVENTS = {f"e{n}": event(n) for n in range(1, 41)}
FILES = {f"reports/{n:02}.csv": text(n) for n in range(1, 13)}
FILES["notes/todo.md"] = "- [ ] call Ada\n- [x] send the report\n- [ ] book room R1\n"
COUNT = [0]


def new(kind, fields):
    COUNT[0] += 1
    return {"id": f"{kind}{COUNT[0]}", **fields}


def has(want, value):
    return want is None or want == value


def day(when):
    return when[:10]


S = {"type": "string"}
I = {"type": "integer"}
B = {"type": "boolean"}
L = {"type": "array", "items": S}


def d(schema, about, **more):
    return {**schema, "description": about, **more}


REPO = d(S, "Name of the repository", enum=REPOS)
NUMBER = d(I, "Number of the issue", minimum=1)
STATE = d(S, "State of the issues", enum=["open", "closed"])
MESSAGE = d(S, "Identifier of the message, such as m12")
EVENT = d(S, "Identifier of the event, such as e7")
PATH = d(S, "Path of the file, relative to the root, with / between folders")
DATE = d(S, "Day as YYYY-MM-DD", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")

# Each tool: name, description, properties, required names, function of its arguments.
TOOLS = {
    "issues": [
        ("list_issues", "Lists the issues of a repository. Results can be narrowed by state, label and assignee. Returns number, title, state, labels, assignee, comments, created and milestone of each issue, without bodies.",
         {"repo": REPO, "state": STATE, "label": d(S, "Only issues with this label"), "assignee": d(S, "Only issues of this user")}, ["repo"],
         lambda repo, state=None, label=None, assignee=None: [
             {k: v for k, v in i.items() if k != "body"} for i in ISSUES.values()
             if i["repo"] == repo and has(state, i["state"]) and has(assignee, i["assignee"]) and (label is None or label in i["labels"])]),
        ("get_issue", "Returns one issue with its body.", {"number": NUMBER}, ["number"], lambda number: ISSUES[number]),
        ("create_issue", "Creates an issue and returns it.", {"repo": REPO, "title": d(S, "Title of the issue"), "body": d(S, "Text of the issue in Markdown"), "labels": d(L, "Labels of the issue"), "assignee": d(S, "User who works on the issue")}, ["repo", "title"],
         lambda **f: new("issue", f)),
        ("update_issue", "Changes fields of an issue. Fields that are left out stay.", {"number": NUMBER, "title": d(S, "New title"), "body": d(S, "New text"), "state": STATE, "milestone": d(S, "New milestone")}, ["number"],
         lambda number, **f: {**ISSUES[number], **f}),
        ("close_issue", "Closes an issue.", {"number": NUMBER, "reason": d(S, "Reason", enum=["completed", "not_planned"])}, ["number"], lambda number, reason="completed": {"number": number, "state": "closed", "reason": reason}),
        ("add_labels", "Adds labels to an issue and returns all its labels.", {"number": NUMBER, "labels": d(L, "Labels to add")}, ["number", "labels"], lambda number, labels: {"number": number, "labels": ISSUES[number]["labels"] + labels}),
        ("remove_label", "Removes a label from an issue.", {"number": NUMBER, "label": d(S, "Label to remove")}, ["number", "label"], lambda number, label: {"number": number, "labels": [l for l in ISSUES[number]["labels"] if l != label]}),
        ("assign_issue", "Assigns an issue to a user.", {"number": NUMBER, "assignee": d(S, "User")}, ["number", "assignee"], lambda number, assignee: {"number": number, "assignee": assignee}),
        ("list_comments", "Lists the comments of an issue, oldest first.", {"number": NUMBER}, ["number"], lambda number: [{"by": PEOPLE[(number + k) % 6], "text": f"Comment {k} on {number}"} for k in range(ISSUES[number]["comments"])]),
        ("add_comment", "Adds a comment to an issue.", {"number": NUMBER, "text": d(S, "Text of the comment in Markdown")}, ["number", "text"], lambda number, text: {"number": number, "text": text}),
        ("search_issues", "Searches titles and bodies of all issues for words.", {"query": d(S, "Words to search for"), "state": STATE}, ["query"], lambda query, state=None: [{"number": i["number"], "repo": i["repo"], "title": i["title"], "state": i["state"]} for i in ISSUES.values() if query.lower() in (i["title"] + i["body"]).lower() and has(state, i["state"])]),
        ("list_labels", "Lists the labels of a repository.", {"repo": REPO}, ["repo"], lambda repo: LABELS + ["urgent"]),
        ("list_milestones", "Lists the milestones of a repository with their numbers of open issues.", {"repo": REPO}, ["repo"], lambda repo: [{"milestone": f"1.{m}", "open": sum(i["repo"] == repo and i["milestone"] == f"1.{m}" and i["state"] == "open" for i in ISSUES.values())} for m in range(3)]),
        ("list_members", "Lists the users that can be assigned.", {"repo": REPO}, [], lambda repo=None: PEOPLE),
        ("lock_issue", "Locks the conversation of an issue.", {"number": NUMBER, "reason": d(S, "Reason for the lock")}, ["number"], lambda number, reason="": {"number": number, "locked": True}),
    ],
    "mail": [
        ("list_messages", "Lists the messages of a folder, newest first, without their bodies. Can be narrowed to unread messages, to a sender, and to a day.",
         {"folder": d(S, "Name of the folder", enum=["inbox", "archive"]), "unread": d(B, "Only unread messages"), "from": d(S, "Only messages of this address"), "since": DATE}, ["folder"],
         lambda folder, unread=None, since=None, **f: [{k: v for k, v in m.items() if k != "body"} for m in MAIL.values() if m["folder"] == folder and (unread is None or m["unread"] == unread) and has(f.get("from"), m["from"]) and (since is None or m["date"] >= since)]),
        ("get_message", "Returns one message with its body.", {"id": MESSAGE}, ["id"], lambda id: MAIL[id]),
        ("search_messages", "Searches subjects and bodies of messages for words.", {"query": d(S, "Words to search for"), "folder": d(S, "Folder to search")}, ["query"], lambda query, folder=None: [{"id": m["id"], "from": m["from"], "subject": m["subject"], "date": m["date"]} for m in MAIL.values() if query.lower() in (m["subject"] + m["body"]).lower() and has(folder, m["folder"])]),
        ("send_message", "Sends a message.", {"to": d(L, "Addresses of the receivers"), "subject": d(S, "Subject"), "body": d(S, "Text of the message"), "cc": d(L, "Addresses of further receivers")}, ["to", "subject", "body"], lambda **f: new("sent", {"to": f["to"], "subject": f["subject"]})),
        ("reply", "Replies to a message.", {"id": MESSAGE, "body": d(S, "Text of the reply"), "all": d(B, "Reply to all receivers")}, ["id", "body"], lambda id, body, all=False: new("sent", {"to": [MAIL[id]["from"]], "subject": "Re: " + MAIL[id]["subject"]})),
        ("forward", "Forwards a message.", {"id": MESSAGE, "to": d(L, "Addresses of the receivers")}, ["id", "to"], lambda id, to: new("sent", {"to": to, "subject": "Fwd: " + MAIL[id]["subject"]})),
        ("move_message", "Moves a message to a folder.", {"id": MESSAGE, "folder": d(S, "Name of the folder")}, ["id", "folder"], lambda id, folder: {"id": id, "folder": folder}),
        ("mark_read", "Marks a message as read or unread.", {"id": MESSAGE, "read": d(B, "True for read")}, ["id"], lambda id, read=True: {"id": id, "unread": not read}),
        ("delete_message", "Deletes a message. It cannot be restored.", {"id": MESSAGE}, ["id"], lambda id: {"id": id, "deleted": True}),
        ("list_folders", "Lists the folders with their numbers of messages.", {}, [], lambda: [{"folder": f, "messages": sum(m["folder"] == f for m in MAIL.values())} for f in ["inbox", "archive"]]),
        ("create_folder", "Creates a folder.", {"name": d(S, "Name of the folder")}, ["name"], lambda name: {"folder": name}),
        ("list_attachments", "Lists the attachments of a message.", {"id": MESSAGE}, ["id"], lambda id: MAIL[id]["attachments"]),
        ("save_attachment", "Saves an attachment to a file.", {"id": MESSAGE, "name": d(S, "Name of the attachment"), "path": PATH}, ["id", "name", "path"], lambda id, name, path: {"path": path, "bytes": 1000}),
        ("list_contacts", "Lists the contacts with their addresses.", {"query": d(S, "Part of a name")}, [], lambda query="": [{"name": p, "address": f"{p}@a.example"} for p in PEOPLE if query in p]),
        ("create_draft", "Creates a draft of a message.", {"to": d(L, "Addresses of the receivers"), "subject": d(S, "Subject"), "body": d(S, "Text of the message")}, ["to", "subject"], lambda **f: new("draft", {"to": f["to"], "subject": f["subject"]})),
    ],
    "calendar": [
        ("list_events", "Lists the events of a calendar between two days, in the order of their starts.", {"calendar": d(S, "Name of the calendar", enum=["work", "private"]), "from": DATE, "to": DATE, "attendee": d(S, "Only events with this user")}, ["calendar"],
         lambda calendar, attendee=None, to=None, **f: sorted((e for e in EVENTS.values() if e["calendar"] == calendar and (attendee is None or attendee in e["attendees"]) and (f.get("from") is None or day(e["start"]) >= f["from"]) and (to is None or day(e["start"]) <= to)), key=lambda e: (e["start"], e["id"]))),
        ("get_event", "Returns one event.", {"id": EVENT}, ["id"], lambda id: EVENTS[id]),
        ("create_event", "Creates an event and invites the attendees.", {"calendar": d(S, "Name of the calendar"), "title": d(S, "Title"), "start": d(S, "Start as YYYY-MM-DDTHH:MM"), "minutes": d(I, "Duration in minutes"), "attendees": d(L, "Users to invite"), "room": d(S, "Room")}, ["title", "start", "minutes"], lambda **f: new("event", f)),
        ("update_event", "Changes fields of an event. Fields that are left out stay.", {"id": EVENT, "title": d(S, "New title"), "start": d(S, "New start"), "minutes": d(I, "New duration"), "room": d(S, "New room")}, ["id"], lambda id, **f: {**EVENTS[id], **f}),
        ("move_event", "Moves an event to another start.", {"id": EVENT, "start": d(S, "New start as YYYY-MM-DDTHH:MM")}, ["id", "start"], lambda id, start: {"id": id, "start": start}),
        ("cancel_event", "Cancels an event and tells the attendees.", {"id": EVENT, "reason": d(S, "Reason")}, ["id"], lambda id, reason="": {"id": id, "cancelled": True}),
        ("add_attendee", "Invites a user to an event.", {"id": EVENT, "user": d(S, "User")}, ["id", "user"], lambda id, user: {"id": id, "attendees": EVENTS[id]["attendees"] + [user]}),
        ("remove_attendee", "Takes a user off an event.", {"id": EVENT, "user": d(S, "User")}, ["id", "user"], lambda id, user: {"id": id, "attendees": [a for a in EVENTS[id]["attendees"] if a != user]}),
        ("respond", "Answers an invitation.", {"id": EVENT, "response": d(S, "Answer", enum=["yes", "no", "maybe"])}, ["id", "response"], lambda id, response: {"id": id, "response": response}),
        ("free_slots", "Lists the hours of a day at which a user has no event.", {"user": d(S, "User"), "day": DATE}, ["user", "day"], lambda user, day: [f"{h:02}:00" for h in range(9, 17) if not any(e["start"] == f"{day}T{h:02}:00" and user in e["attendees"] for e in EVENTS.values())]),
        ("list_rooms", "Lists the rooms with their numbers of seats.", {}, [], lambda: [{"room": f"R{n}", "seats": 4 + 4 * n} for n in range(3)]),
        ("book_room", "Books a room for an event.", {"id": EVENT, "room": d(S, "Room")}, ["id", "room"], lambda id, room: {"id": id, "room": room}),
        ("list_calendars", "Lists the calendars.", {}, [], lambda: ["work", "private"]),
        ("search_events", "Searches titles of events for words.", {"query": d(S, "Words to search for")}, ["query"], lambda query: [e for e in EVENTS.values() if query.lower() in e["title"].lower()]),
        ("set_reminder", "Sets a reminder for an event.", {"id": EVENT, "minutes": d(I, "Minutes before the start")}, ["id", "minutes"], lambda id, minutes: {"id": id, "reminder": minutes}),
    ],
    "files": [
        ("list_files", "Lists the files in a folder with their sizes.", {"folder": d(S, "Path of the folder"), "pattern": d(S, "Pattern of names, such as *.csv")}, ["folder"], lambda folder, pattern="*": [{"path": p, "bytes": len(t)} for p, t in FILES.items() if p.startswith(folder)]),
        ("read_file", "Returns the text of a file.", {"path": PATH}, ["path"], lambda path: {"path": path, "text": FILES[path]}),
        ("write_file", "Writes a file. An existing file is replaced.", {"path": PATH, "text": d(S, "Text of the file")}, ["path", "text"], lambda path, text: {"path": path, "bytes": len(text)}),
        ("append_file", "Adds text to the end of a file.", {"path": PATH, "text": d(S, "Text to add")}, ["path", "text"], lambda path, text: {"path": path, "bytes": len(FILES.get(path, "")) + len(text)}),
        ("edit_file", "Replaces a text in a file by another one.", {"path": PATH, "old": d(S, "Text to replace"), "new": d(S, "New text")}, ["path", "old", "new"], lambda path, old, new: {"path": path, "replaced": FILES[path].count(old)}),
        ("move_file", "Moves or renames a file.", {"from": PATH, "to": PATH}, ["from", "to"], lambda **f: f),
        ("copy_file", "Copies a file.", {"from": PATH, "to": PATH}, ["from", "to"], lambda **f: f),
        ("delete_file", "Deletes a file.", {"path": PATH}, ["path"], lambda path: {"path": path, "deleted": True}),
        ("file_info", "Returns size and kind of a file.", {"path": PATH}, ["path"], lambda path: {"path": path, "bytes": len(FILES[path])}),
        ("search_files", "Searches the texts of all files for words, and returns the lines.", {"query": d(S, "Words to search for"), "folder": d(S, "Folder to search")}, ["query"], lambda query, folder="": [{"path": p, "line": l} for p, t in FILES.items() if p.startswith(folder) for l in t.splitlines() if query in l]),
        ("create_folder", "Creates a folder.", {"path": PATH}, ["path"], lambda path: {"path": path}),
        ("list_versions", "Lists the earlier versions of a file.", {"path": PATH}, ["path"], lambda path: [{"version": v} for v in range(3)]),
        ("restore_version", "Restores an earlier version of a file.", {"path": PATH, "version": d(I, "Number of the version")}, ["path", "version"], lambda path, version: {"path": path, "version": version}),
        ("share_file", "Shares a file with a user.", {"path": PATH, "user": d(S, "User"), "write": d(B, "The user may change the file")}, ["path", "user"], lambda path, user, write=False: {"path": path, "user": user}),
        ("disk_usage", "Returns the used and the free space.", {}, [], lambda: {"used": sum(map(len, FILES.values())), "free": 10**9}),
    ],
}


def definitions(server):
    return [
        {"name": name, "description": about, "inputSchema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": False}}
        for name, about, properties, required, _ in TOOLS[server]
    ]


def answer(server, request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": server, "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": definitions(server)}}
    if method == "tools/call":
        function = next(tool[4] for tool in TOOLS[server] if tool[0] == params["name"])
        try:
            value, failed = function(**params.get("arguments", {})), False
        except KeyError as error:
            value, failed = f"there is no {error}", True
        return {"result": {"content": [{"type": "text", "text": json.dumps(value)}], "isError": failed}}
    return {"error": {"code": -32601, "message": f"unknown method {method}"}}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(sys.argv[1], request)}), flush=True)
