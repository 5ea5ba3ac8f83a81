//! Tests of MCP: the tools of servers in programs, and `wattle mcp` as a server. The servers of these
//! tests are `wattle mcp` itself.

use serde_json::{Value as Json, json};

use crate::place::{Done, Place, json};

/// A user whose settings name a server: a gateway of another user, with one program as its tool.
fn place(more: &str) -> Place {
    let place = Place::new();
    let (folder, other) = (place.home().join(".config/wattle"), place.home().join("other"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir(&other).unwrap();
    let wattle = env!("CARGO_BIN_EXE_wattle");
    let settings = format!(
        "[mcp.own]\ncommand = {wattle:?}\nargs = [\"mcp\", \"--expose\", \"text_count\"]\n\
         env = {{ HOME = {other:?} }}\n{more}"
    );
    std::fs::write(folder.join("wattle.toml"), settings).unwrap();
    place
}

/// The program that calls the server's tool.
const CALL: &str = "(out (own.text_count text: \"one two\"))";

#[test]
fn tools_of_a_server_are_functions_of_programs() {
    let place = place("");
    let done = place.wattle(["exec", "-"]).stdin(CALL).run().code(0);
    assert!(done.stdout.contains("\"words\":2"), "{done:?}");
    let listed = place.wattle(["mcp", "list", "--json"]).run().code(0).stdout;
    let listed = json(&listed);
    assert_eq!(listed[0]["name"], "own");
    // Three tools of the gateway, the exposed program, and two functions for resources.
    assert_eq!(listed[0]["tools"], 6, "{listed}");
    let shown = place.wattle(["mcp", "show", "own"]).run().code(0).stdout;
    assert!(shown.contains("own.text_count(text: string)"), "{shown}");
    place.wattle(["mcp", "show", "other"]).run().code(2).reports(&["`other`", "there is `own`"]);
    let checked = json(&place.wattle(["mcp", "check", "--json"]).run().code(0).stdout);
    assert_eq!(checked[0]["changes"], json!([]));
}

/// Writes a recording in which the model calls this program and then answers.
fn record(place: &Place, program: &str) {
    let call = format!("ToolCall::Wat(```wat\n{program}\n```)");
    let lines = [
        json!({"wattle_cassette": 1, "model": "recorded"}),
        json!({"reply": call}),
        json!({"reply": "ToolCall::Response(\"two\")"}),
    ];
    let lines: Vec<String> = lines.iter().map(Json::to_string).collect();
    place.write("model.jsonl", lines.join("\n") + "\n");
}

#[test]
fn a_run_uses_the_tools_of_two_servers_in_one_program() {
    let wattle = env!("CARGO_BIN_EXE_wattle");
    // Without a home, this server has no servers of its own.
    let place = place(&format!(
        "[mcp.plain]\ncommand = {wattle:?}\nargs = [\"mcp\"]\nenv = {{ HOME = \"/absent\" }}\n"
    ));
    record(
        &place,
        "(let $n (json (own.text_count text: \"one two\")))\n\
         (out $n.words (has (own.search_tools query: \"count words\") \"text_count\"))\n\
         (out (plain.run_program program: \"(out (+ 40 2))\"))",
    );
    let done = place.wattle(["run", "how many words?", "--cassette", "model.jsonl", "--json"]);
    let done = done.run().code(0);
    assert!(done.stdout.contains("\"output\":\"2 1\\n42\""), "{done:?}");
}

/// A replay needs neither the server nor its settings, and no tools that came later.
#[test]
fn a_run_is_replayed_without_its_servers() {
    let place = place("");
    record(&place, CALL);
    let done = place.wattle(["run", "how many words?", "--cassette", "model.jsonl"]).run().code(0);
    assert_eq!(done.stdout, "two\n", "{done:?}");
    let settings = place.home().join(".config/wattle/wattle.toml");
    for text in ["", "[mcp.new]\ncommand = \"no-such-server\"\n"] {
        std::fs::write(&settings, text).unwrap();
        let replayed = place.wattle(["replay", "last"]).run().code(0).stdout;
        assert!(replayed.contains("matches its record"), "{replayed}");
    }
}

#[test]
fn rules_cover_the_tools_of_a_server() {
    let place = place("");
    for rule in ["tool:own.*", "tool:own.text_count", "tool", "egress"] {
        let done = place.wattle(["exec", "-", "--deny", rule]).stdin(CALL).run().code(1);
        done.reports(&["denied", "own.text_count"]);
    }
    let allowed = ["exec", "-", "--deny", "egress", "--allow", "tool:own.*"];
    place.wattle(allowed).stdin(CALL).run().code(0);
}

/// A server that changes the description of a tool gets no calls of it until the change is accepted.
#[test]
fn a_changed_tool_is_refused_until_it_is_accepted() {
    let place = place("");
    place.wattle(["exec", "-"]).stdin(CALL).run().code(0);
    let pin = place.home().join(".local/share/wattle/mcp/own.json");
    let text = std::fs::read_to_string(&pin).unwrap();
    let mut kept: Json = serde_json::from_str(&text).unwrap();
    let tools = kept["tools"].as_array_mut().unwrap();
    let tool = tools.iter_mut().find(|tool| tool["name"] == "text_count").unwrap();
    tool["description"] = "Deletes everything".into();
    std::fs::write(&pin, kept.to_string()).unwrap();

    let refused = place.wattle(["exec", "-"]).stdin(CALL).run().code(1);
    refused.reports(&["changed `text_count`", "wattle mcp approve own"]);
    let checked = place.wattle(["mcp", "check"]).run().code(1).stdout;
    assert!(checked.contains("changed `text_count`"), "{checked}");
    let asked = place.wattle(["mcp", "approve", "own"]).run().code(2);
    asked.reports(&["- Deletes everything", "--yes"]);
    place.wattle(["mcp", "approve", "own", "--yes"]).run().code(0);
    place.wattle(["exec", "-"]).stdin(CALL).run().code(0);
}

#[test]
fn a_server_that_cannot_be_used_is_named_and_disturbs_nothing() {
    let place = place(
        "[mcp.absent]\ncommand = \"no-such-server\"\n[mcp.loud]\ncommand = \"/bin/sh\"\n\
         args = [\"-c\", \"echo it broke >&2; exit 3\"]\n",
    );
    let done = place.wattle(["exec", "-"]).stdin(CALL).run().code(0);
    assert!(done.stdout.contains("\"words\":2"), "{done:?}");
    done.reports(&["`absent`", "`no-such-server` cannot be started", "`loud`", "it broke"]);
}

/// With walls, a server reads only what its settings name. Without Landlock, it is not started.
#[test]
fn a_server_stays_within_its_walls() {
    let place = Place::new();
    let secret = place.home().join("secret.txt");
    std::fs::write(&secret, "the secret").unwrap();
    let folder = place.home().join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    let server = |walls: &str| {
        format!(
            "[mcp.cat]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"cat {} >&2; sleep 0.2\"]\n{walls}\n",
            secret.display()
        )
    };
    let check = |walls: &str| {
        std::fs::write(folder.join("wattle.toml"), server(walls)).unwrap();
        // A server with walls may use the folder of temporary files, in which the homes of tests are.
        place.wattle(["mcp", "check"]).env("TMPDIR", place.work()).run().code(1).stdout
    };
    assert!(check("").contains("the secret"));
    let walled = check("read = []");
    assert!(!walled.contains("the secret"), "{walled}");
}

/// Serves a client that sends these requests, and returns the results by their ids.
fn serve(place: &Place, flags: &[&str], requests: &[(&str, Json)]) -> (Done, Vec<Json>) {
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
    ];
    for (id, (method, params)) in (1..).zip(requests) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        lines.push(request.to_string());
    }
    // The client leaves when it has all answers.
    let script = format!(
        "{{ cat requests; while [ $(grep -c '\"id\":' answers) -le {} ]; do sleep 0.05; done; }} | \
         wattle mcp {} > answers; cat answers",
        requests.len(),
        flags.join(" ")
    );
    place.write("requests", lines.join("\n") + "\n");
    place.write("answers", "");
    let done = place.shell(&script).run().code(0);
    let mut results = vec![Json::Null; requests.len()];
    for line in done.stdout.lines().map(json) {
        let id = line["id"].as_u64().unwrap_or(0);
        if let Some(place) = id.checked_sub(1).and_then(|at| results.get_mut(at as usize)) {
            *place = line["result"].clone();
        }
    }
    (done, results)
}

fn call(name: &str, arguments: Json) -> (&str, Json) {
    ("tools/call", json!({"name": name, "arguments": arguments}))
}

#[test]
fn a_client_runs_programs_and_each_is_a_recorded_run() {
    let place = Place::new();
    place.write("a.txt", "hello");
    let (_, results) = serve(
        &place,
        &["--expose", "text_count"],
        &[
            ("tools/list", json!({})),
            call(
                "run_program",
                json!({"program": "(out (fs.read \"a.txt\") (arg 0))", "args": ["x"]}),
            ),
            call("run_program", json!({"program": "(out (frob 1))"})),
            call("check_program", json!({"program": "(http.get \"https://a.example/\")"})),
            call("search_tools", json!({"query": "count words"})),
            call("text_count", json!({"text": "a b c"})),
            call("run_program", json!({"prog": "x"})),
            ("resources/read", json!({"uri": "wattle://language"})),
        ],
    );
    let names: Vec<&Json> =
        results[0]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["run_program", "check_program", "search_tools", "text_count"]);
    let text =
        |at: usize| results[at]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert_eq!((text(1).as_str(), &results[1]["isError"]), ("hello x", &json!(false)));
    assert!(text(2).contains("`frob`") && results[2]["isError"] == json!(true), "{}", text(2));
    assert!(text(3).contains("\"urls\":[\"https://a.example/\"]"), "{}", text(3));
    assert!(text(4).contains("text_count(text: string)"), "{}", text(4));
    assert!(text(5).contains("\"words\":3"), "{}", text(5));
    assert!(text(6).contains("`prog`") && results[6]["isError"] == json!(true), "{}", text(6));
    let page = results[7]["contents"][0]["text"].as_str().unwrap();
    assert!(page.contains("# "), "{page}");

    let runs = place.wattle(["runs", "--json"]).run().code(0).stdout;
    let runs = json(&runs);
    assert_eq!(runs.as_array().unwrap().len(), 3, "{runs}");
    place.wattle(["replay", runs[2]["run"].as_str().unwrap()]).run().code(0);
}

#[test]
fn a_clients_program_is_under_the_policy_and_its_changes_are_kept() {
    let place = Place::new();
    let (_, results) = serve(
        &place,
        &["--deny", "http", "--ask", "key:*"],
        &[
            call("run_program", json!({"program": "(http.get \"https://a.example/\")"})),
            call("run_program", json!({"program": "(kv.set \"a\" \"b\")"})),
            call("run_program", json!({"program": "(fs.write \"new.txt\" \"made\")"})),
        ],
    );
    let text =
        |at: usize| results[at]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("denied"), "{}", text(0));
    assert!(text(1).contains("cannot ask its user"), "{}", text(1));
    assert!(!place.work().join("new.txt").exists());
    let runs = place.wattle(["runs", "--json"]).run().code(0).stdout;
    let newest = json(&runs)[0]["run"].as_str().unwrap().to_owned();
    place.wattle(["apply", &newest]).run().code(0);
    assert_eq!(place.read("new.txt"), "made");
}

/// The client's own configuration names the gateway itself, which is left out.
#[test]
fn the_configuration_of_a_client_can_name_the_gateway_itself() {
    let place = Place::new();
    let wattle = env!("CARGO_BIN_EXE_wattle");
    let file = json!({"mcpServers": {
        "wattle": {"command": wattle, "args": ["mcp", "--upstream", "clients.json"]},
        "inner": {"command": "/bin/sh", "args": ["-c", format!("exec {wattle} mcp --expose text_count")]},
    }});
    place.write("clients.json", file.to_string());
    let program = json!({"program": "(out (inner.text_count text: \"a b\"))"});
    let (_, results) =
        serve(&place, &["--upstream", "clients.json"], &[call("run_program", program)]);
    let text = results[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"words\":2"), "{text}");
    place.wattle(["mcp", "--upstream", "absent.json"]).run().code(2).reports(&["absent.json"]);
}
