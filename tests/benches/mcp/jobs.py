"""Twenty jobs, each as a client with all tools listed does it, and as programs for the gateway.

A job has the words of the user, the searches that its client makes, the programs that it sends, and
a function that makes the calls. `await turn(call, …)` makes the calls of one turn of the client and
returns their results. The function returns the answer, which the last program must print, too.
"""


def job(prompt, searches, *programs):
    def keep(function):
        JOBS.append((prompt, searches, programs, function))

    return keep


JOBS = []


@job("How many open issues does each repository have?", ["list issues"],
     """(each $repo (list "core" "web" "docs")
  (out $repo (len (json (issues.list_issues repo: $repo state: "open")))))""")
async def _(turn):
    found = await turn(*(("issues", "list_issues", {"repo": r, "state": "open"}) for r in ["core", "web", "docs"]))
    return [f"{r} {len(i)}" for r, i in zip(["core", "web", "docs"], found)]


@job("Which open bug of the repository web has the most comments?", ["list issues"],
     """(let $bugs (json (issues.list_issues repo: "web" state: "open" label: "bug")))
(let $top (first (sort $bugs desc by "comments")))
(out $top.number $top.title)""")
async def _(turn):
    [bugs] = await turn(("issues", "list_issues", {"repo": "web", "state": "open", "label": "bug"}))
    top = max(bugs, key=lambda one: one["comments"])
    return [f"{top['number']} {top['title']}"]


@job("Assign each open issue of core without an assignee to eva.", ["list issues, assign issue"],
     """(let $done 0)
(each $issue (json (issues.list_issues repo: "core" state: "open"))
  (when (= $issue.assignee null)
    (issues.assign_issue number: $issue.number assignee: "eva")
    (+= $done 1)))
(out "assigned" $done)""")
async def _(turn):
    [found] = await turn(("issues", "list_issues", {"repo": "core", "state": "open"}))
    free = [one["number"] for one in found if one["assignee"] is None]
    await turn(*(("issues", "assign_issue", {"number": n, "assignee": "eva"}) for n in free))
    return [f"assigned {len(free)}"]


@job("Read the bodies of all urgent open issues. Which builds were affected?", ["list issues, get issue"],
     """(let $builds (list))
(each $repo (list "core" "web" "docs")
  (each $issue (json (issues.list_issues repo: $repo state: "open" label: "urgent"))
    (let $whole (json (issues.get_issue number: $issue.number)))
    (match $whole.body r"build (\\d+)" ($b) (push $builds (int $b)))))
(out (join (sort $builds) ", "))""")
async def _(turn):
    repos = ["core", "web", "docs"]
    found = await turn(*(("issues", "list_issues", {"repo": r, "state": "open", "label": "urgent"}) for r in repos))
    whole = await turn(*(("issues", "get_issue", {"number": one["number"]}) for list in found for one in list))
    builds = sorted(int(one["body"].split("build ")[1].split(".")[0]) for one in whole)
    return [", ".join(map(str, builds))]


@job("Close all issues of docs that have no comments, as not planned. How many were it?", ["list issues, close issue"],
     """(let $closed 0)
(each $issue (json (issues.list_issues repo: "docs" state: "open"))
  (when (= $issue.comments 0)
    (issues.close_issue number: $issue.number reason: "not_planned")
    (+= $closed 1)))
(out "closed" $closed)""")
async def _(turn):
    [found] = await turn(("issues", "list_issues", {"repo": "docs", "state": "open"}))
    silent = [one["number"] for one in found if one["comments"] == 0]
    await turn(*(("issues", "close_issue", {"number": n, "reason": "not_planned"}) for n in silent))
    return [f"closed {len(silent)}"]


@job("What is the sum of the amounts in my unread messages about invoices?", ["list messages, get message"],
     """(let $sum 0)
(each $m (json (mail.list_messages folder: "inbox" unread: true))
  (when (has $m.subject "Invoice")
    (let $whole (json (mail.get_message id: $m.id)))
    (match $whole.body r"(\\d+) EUR" ($eur) (+= $sum (int $eur)))))
(out $sum "EUR")""")
async def _(turn):
    [unread] = await turn(("mail", "list_messages", {"folder": "inbox", "unread": True}))
    wanted = [m["id"] for m in unread if "Invoice" in m["subject"]]
    whole = await turn(*(("mail", "get_message", {"id": id}) for id in wanted))
    return [f"{sum(int(m['body'].split('is ')[1].split(' EUR')[0]) for m in whole)} EUR"]


@job("Who wrote me the most messages that are still in the inbox?", ["list messages"],
     """(let $by (count (json (mail.list_messages folder: "inbox")) by "from"))
(let $best "")
(let $most 0)
(each $who $n $by (when (> $n $most) (set $best $who) (set $most $n)))
(out $best $most)""")
async def _(turn):
    [inbox] = await turn(("mail", "list_messages", {"folder": "inbox"}))
    counts = {}
    for m in inbox:
        counts[m["from"]] = counts.get(m["from"], 0) + 1
    best = max(counts, key=counts.get)
    return [f"{best} {counts[best]}"]


@job("Move all reports of before the 10th of November to the archive.", ["list messages, move message"],
     """(let $moved 0)
(each $m (json (mail.list_messages folder: "inbox"))
  (when (and (has $m.subject "Report") (< $m.date "2026-11-10"))
    (mail.move_message id: $m.id folder: "archive")
    (+= $moved 1)))
(out "moved" $moved)""")
async def _(turn):
    [inbox] = await turn(("mail", "list_messages", {"folder": "inbox"}))
    old = [m["id"] for m in inbox if "Report" in m["subject"] and m["date"] < "2026-11-10"]
    await turn(*(("mail", "move_message", {"id": id, "folder": "archive"}) for id in old))
    return [f"moved {len(old)}"]


@job("Save all attachments of cleo's messages to the folder cleo.", ["list messages, save attachment"],
     """(let $saved 0)
(each $m (json (mail.list_messages folder: "inbox" from: "cleo@a.example"))
  (each $name $m.attachments
    (mail.save_attachment id: $m.id name: $name path: (str "cleo/" $name))
    (+= $saved 1)))
(out "saved" $saved)""")
async def _(turn):
    [found] = await turn(("mail", "list_messages", {"folder": "inbox", "from": "cleo@a.example"}))
    names = [(m["id"], name) for m in found for name in m["attachments"]]
    if names:
        await turn(*(("mail", "save_attachment", {"id": i, "name": n, "path": f"cleo/{n}"}) for i, n in names))
    return [f"saved {len(names)}"]


@job("How many minutes of work meetings has each person from the 1st to the 7th of December?", ["list events, list members"],
     """(let $minutes (obj))
(each $e (json (calendar.list_events calendar: "work" from: "2026-12-01" to: "2026-12-07"))
  (each $who $e.attendees
    (put $minutes $who (+ (default (at $minutes $who) 0) $e.minutes))))
(each $who (sort (keys $minutes)) (out $who (at $minutes $who)))""")
async def _(turn):
    [events] = await turn(("calendar", "list_events", {"calendar": "work", "from": "2026-12-01", "to": "2026-12-07"}))
    minutes = {}
    for e in events:
        for who in e["attendees"]:
            minutes[who] = minutes.get(who, 0) + e["minutes"]
    return [f"{who} {minutes[who]}" for who in sorted(minutes)]


@job("Find a time on 2026-12-03 at which ada, ben and cleo are free, and plan a review of an hour.", ["free slots, create event"],
     """(let $people (list "ada" "ben" "cleo"))
(let $free (json (calendar.free_slots user: "ada" day: "2026-12-03")))
(each $who (list "ben" "cleo")
  (let $theirs (json (calendar.free_slots user: $who day: "2026-12-03")))
  (set $free (filter $free (fn ($hour) (has $theirs $hour)))))
(let $start (str "2026-12-03T" (first $free)))
(calendar.create_event title: "Review" start: $start minutes: 60 attendees: $people)
(out $start)""")
async def _(turn):
    slots = await turn(*(("calendar", "free_slots", {"user": u, "day": "2026-12-03"}) for u in ["ada", "ben", "cleo"]))
    start = "2026-12-03T" + next(at for at in slots[0] if all(at in one for one in slots))
    await turn(("calendar", "create_event", {"title": "Review", "start": start, "minutes": 60, "attendees": ["ada", "ben", "cleo"]}))
    return [start]


@job("Are there work events that use the same room at the same time? List them.", ["list events"],
     """(let $seen (obj))
(let $found 0)
(each $e (json (calendar.list_events calendar: "work"))
  (let $key (str $e.start " " $e.room))
  (when (has $seen $key) (out $key) (+= $found 1))
  (put $seen $key $e.id))
(out $found "conflicts")""")
async def _(turn):
    [events] = await turn(("calendar", "list_events", {"calendar": "work"}))
    seen, lines = set(), []
    for e in events:
        key = f"{e['start']} {e['room']}"
        if key in seen:
            lines.append(key)
        seen.add(key)
    return [*lines, f"{len(lines)} conflicts"]


@job("Cancel all standups in December and tell me how many there were.", ["search events, cancel event"],
     """(let $done 0)
(each $e (json (calendar.search_events query: "Standup"))
  (calendar.cancel_event id: $e.id reason: "holidays")
  (+= $done 1))
(out "cancelled" $done)""")
async def _(turn):
    [found] = await turn(("calendar", "search_events", {"query": "Standup"}))
    await turn(*(("calendar", "cancel_event", {"id": e["id"], "reason": "holidays"}) for e in found))
    return [f"cancelled {len(found)}"]


@job("What is the average score of each person over all reports?", ["list files, read file"],
     """(let $rows (list))
(each $file (json (files.list_files folder: "reports"))
  (let $file (json (files.read_file path: $file.path)))
  (each $row (csv $file.text) (push $rows $row)))
(let $by (group $rows by "name"))
(each $who (sort (keys $by))
  (out "{} {.2}" $who (avg (at $by $who) by (fn ($r) (float $r.score)))))""")
async def _(turn):
    [list] = await turn(("files", "list_files", {"folder": "reports"}))
    texts = await turn(*(("files", "read_file", {"path": one["path"]}) for one in list))
    scores = {}
    for one in texts:
        for line in one["text"].splitlines()[1:]:
            who, score = line.split(",")
            scores.setdefault(who, []).append(int(score))
    return [f"{who} {sum(s) / len(s):.2f}" for who, s in sorted(scores.items())]


@job("Merge all reports into one file reports/all.csv with one header.", ["list files, read file, write file"],
     """(let $lines (list "name,score"))
(each $file (json (files.list_files folder: "reports"))
  (let $file (json (files.read_file path: $file.path)))
  (each $line (slice (str.split (str.trim $file.text) "\\n") 1 99) (push $lines $line)))
(let $written (json (files.write_file path: "reports/all.csv" text: (str (join $lines "\\n") "\\n"))))
(out (len $lines) "lines," $written.bytes "bytes")""")
async def _(turn):
    [found] = await turn(("files", "list_files", {"folder": "reports"}))
    texts = await turn(*(("files", "read_file", {"path": one["path"]}) for one in found))
    lines = ["name,score"] + [line for one in texts for line in one["text"].strip().split("\n")[1:]]
    text = "\n".join(lines) + "\n"
    [written] = await turn(("files", "write_file", {"path": "reports/all.csv", "text": text}))
    return [f"{len(lines)} lines, {written['bytes']} bytes"]


@job("Which report has the highest single score?", ["list files, read file"],
     """(let $best -1)
(let $where "")
(each $file (json (files.list_files folder: "reports"))
  (let $file (json (files.read_file path: $file.path)))
  (let $top (max (csv $file.text) by (fn ($r) (int $r.score))))
  (when (> (int $top.score) $best) (set $best (int $top.score)) (set $where $file.path)))
(out $where $best)""")
async def _(turn):
    [found] = await turn(("files", "list_files", {"folder": "reports"}))
    texts = await turn(*(("files", "read_file", {"path": one["path"]}) for one in found))
    tops = [(max(int(l.split(",")[1]) for l in one["text"].splitlines()[1:]), one["path"]) for one in texts]
    best = max(top for top, _ in tops)
    return [f"{next(path for top, path in tops if top == best)} {best}"]


@job("Open an issue in docs for each task in notes/todo.md that is not done.", ["read file, create issue"],
     """(let $file (json (files.read_file path: "notes/todo.md")))
(let $made 0)
(each $line (str.split $file.text "\\n")
  (match $line r"- \\[ \\] (.+)" ($task)
    (issues.create_issue repo: "docs" title: $task)
    (+= $made 1)))
(out "created" $made)""")
async def _(turn):
    [file] = await turn(("files", "read_file", {"path": "notes/todo.md"}))
    tasks = [line[6:] for line in file["text"].split("\n") if line.startswith("- [ ] ")]
    await turn(*(("issues", "create_issue", {"repo": "docs", "title": task}) for task in tasks))
    return [f"created {len(tasks)}"]


@job("Send each person one mail with the numbers of the open issues of core that are assigned to them.", ["list issues, send message, list contacts"],
     """(let $open (json (issues.list_issues repo: "core" state: "open")))
(let $sent 0)
(each $c (json (mail.list_contacts))
  (let $theirs (filter $open (fn ($i) (= $i.assignee $c.name))))
  (when (> (len $theirs) 0)
    (let $numbers (join (map $theirs (fn ($i) (str $i.number))) ", "))
    (mail.send_message to: (list $c.address) subject: "Your issues" body: $numbers)
    (+= $sent 1)))
(out "sent" $sent)""")
async def _(turn):
    found, contacts = await turn(("issues", "list_issues", {"repo": "core", "state": "open"}), ("mail", "list_contacts", {}))
    mails = []
    for c in contacts:
        numbers = ", ".join(str(i["number"]) for i in found if i["assignee"] == c["name"])
        if numbers:
            mails.append({"to": [c["address"]], "subject": "Your issues", "body": numbers})
    await turn(*(("mail", "send_message", one) for one in mails))
    return [f"sent {len(mails)}"]


@job("Which people have a work event on 2026-12-04 and an urgent open issue?", ["list events, list issues"],
     """(let $busy (obj))
(each $e (json (calendar.list_events calendar: "work" from: "2026-12-04" to: "2026-12-04"))
  (each $who $e.attendees (put $busy $who true)))
(let $both (obj))
(each $repo (list "core" "web" "docs")
  (each $i (json (issues.list_issues repo: $repo state: "open" label: "urgent"))
    (when (and (!= $i.assignee null) (has $busy (default $i.assignee ""))) (put $both $i.assignee true))))
(out "people:" (join (sort (keys $both)) ", "))""")
async def _(turn):
    repos = ["core", "web", "docs"]
    events, *found = await turn(
        ("calendar", "list_events", {"calendar": "work", "from": "2026-12-04", "to": "2026-12-04"}),
        *(("issues", "list_issues", {"repo": r, "state": "open", "label": "urgent"}) for r in repos))
    busy = {who for e in events for who in e["attendees"]}
    both = {i["assignee"] for list in found for i in list if i["assignee"] in busy}
    return [("people: " + ", ".join(sorted(both))).strip()]


@job("Write a summary of the week to notes/week.md: open issues, unread mail and work events from the 1st to the 7th of December.",
     ["list issues, list messages, list events, write file"],
     """(let $open 0)
(each $repo (list "core" "web" "docs")
  (+= $open (len (json (issues.list_issues repo: $repo state: "open")))))
(let $unread (len (json (mail.list_messages folder: "inbox" unread: true))))
(let $events (len (json (calendar.list_events calendar: "work" from: "2026-12-01" to: "2026-12-07"))))
(let $text (fmt "{} open issues, {} unread messages, {} events" $open $unread $events))
(files.write_file path: "notes/week.md" text: $text)
(out $text)""")
async def _(turn):
    *found, mail, events = await turn(
        *(("issues", "list_issues", {"repo": r, "state": "open"}) for r in ["core", "web", "docs"]),
        ("mail", "list_messages", {"folder": "inbox", "unread": True}),
        ("calendar", "list_events", {"calendar": "work", "from": "2026-12-01", "to": "2026-12-07"}))
    text = f"{sum(map(len, found))} open issues, {len(mail)} unread messages, {len(events)} events"
    await turn(("files", "write_file", {"path": "notes/week.md", "text": text}))
    return [text]
