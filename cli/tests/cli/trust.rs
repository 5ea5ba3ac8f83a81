//! Tests of trusted runs and of secrets that an operator configured.

use std::process::Command;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Call, Place};

fn user_file(place: &Place, text: &str) {
    let folder = place.home().join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wattle.toml"), text).unwrap();
}

#[test]
fn without_exec_the_three_programs_are_not_permitted() {
    for args in [&["git", "a message"][..], &["publish"], &["image", "a lighthouse", "a.png"]] {
        let place = Place::new();
        let words = format!("{} not permitted (no exec capability)", args[0]);
        let call = ["exec"].iter().chain(args);
        place.wattle(call.clone()).run().code(6).reports(&[&words]);
        place.wattle(call.clone().chain(&["--write"])).run().code(6).reports(&[&words]);
        let json = place.wattle(call.chain(&["--json"])).run().code(6).json_lines().remove(0);
        assert_eq!((&json["code"], &json["error"]["message"]), (&"EACCESS".into(), &words.into()));
    }
}

#[test]
fn with_exec_missing_settings_are_reported() {
    for (args, words) in [
        (&["git", "a message"][..], "`git.remote`"),
        (&["publish"], "`publish.root`"),
        (&["image", "a lighthouse", "a.png"], "`image.base_url`"),
    ] {
        Place::new()
            .wattle(["exec", "--exec"].iter().chain(args))
            .run()
            .code(1)
            .reports(&["EACCESS", words]);
    }
}

#[test]
fn with_exec_the_workdir_is_committed_pushed_and_published() {
    let place = Place::new();
    let (remote, public) = (place.home().join("remote.git"), place.home().join("public"));
    std::fs::create_dir(&public).unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(place.home()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q", "--bare", "remote.git"]);
    user_file(
        &place,
        &format!("[git]\nremote = {remote:?}\nbranch = \"site\"\n[publish]\nroot = {public:?}\n"),
    );
    place.write("blog/a.md", "hello");
    let done =
        place.wattle(["exec", "--exec", "--tenant", "acme", "git", "add a page"]).run().code(0);
    assert!(
        done.stdout.starts_with("committed 1 file as ")
            && done.stdout.ends_with(" and pushed to site\n"),
        "{}",
        done.stdout
    );
    assert_eq!(
        git(&["--git-dir", "remote.git", "log", "--format=%an %ae %s", "site"]),
        "acme acme@wattle.invalid add a page\n"
    );
    place.wattle(["exec", "--exec", "publish"]).run().code(0);
    assert_eq!(std::fs::read_to_string(public.join("blog/a.md")).unwrap(), "hello");
}

#[test]
fn unusable_settings_of_trust_are_errors() {
    let long = "s3cr3t-value";
    for (text, words) in [
        ("git.remote = \"ext::sh -c evil\"", "a remote must not contain whitespace"),
        ("git.remote = \"https://me:s3cr3t-value@example.com/a.git\"", "git.token_env"),
        ("git.branch = \"-f\"", "is not a branch name"),
        ("git.token_env = \"sk-s3cr3t-value\"", "is not the name of a variable"),
        (
            "image.base_url = \"https://me:s3cr3t-value@example.com/v1\"",
            "contains a user name or password",
        ),
        ("[secrets.a]\nenv = \"K\"", "the secret `a`: expected"),
        ("[secrets.a]\nenv = \"K\"\nhosts = [\"*\"]", "the secret `a`: invalid"),
    ] {
        let place = Place::new();
        user_file(&place, text);
        let done = place.wattle(["config", "show"]).run().code(3).reports(&[words]);
        assert!(!done.stderr.contains(long), "{}", done.stderr);
    }
}

#[test]
fn secrets_are_shown_by_reference_and_short_ones_are_rejected() {
    let place = Place::new();
    user_file(&place, "[secrets.api]\nenv = \"API\"\nhosts = [\"api.example.com\"]\n");
    let shown = place.wattle(["config", "show"]).env("API", "s3cr3t-value").run().code(0);
    assert!(
        shown.stdout.contains("api.example.com") && !shown.stdout.contains("s3cr3t"),
        "{}",
        shown.stdout
    );
    let program =
        r#"(ret (http.request? "GET" "https://other.example/" "{\"x\":\"${secret:api}\"}" ""))"#;
    let exec = || place.wattle(["exec", "-"]).stdin(program);
    exec()
        .env("API", "s3cr3t-value")
        .run()
        .code(1)
        .reports(&["EACCESS", "the secret `api` is not for other.example"]);
    exec().env("API", "short").run().code(3).reports(&["`API`", "fewer than 8 characters"]);
    let program = r#"(ret (http.post? "https://api.example.com/" "${secret:api}" ""))"#;
    place
        .wattle(["exec", "-"])
        .stdin(program)
        .run()
        .code(1)
        .reports(&["EACCESS", "the variable `API`"]);
}

#[test]
fn short_keys_and_secrets_are_reported_by_doctor() {
    let place = Place::new();
    user_file(
        &place,
        "[search]\nengine = \"brave\"\nkey_env = \"SEARCH\"\n[image]\nbase_url = \
         \"https://images.example/v1\"\napi_key_env = \"IMAGES\"\n[secrets.api]\nenv = \
         \"API\"\nhosts = [\"api.example.com\"]\n",
    );
    let doctor = |api: &str, key: &str| {
        let call = place.wattle(["doctor", "--json"]).env("API", api);
        let done = call.env("SEARCH", key).env("IMAGES", key).run();
        let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let of = |name: &str| {
            let mut checks = found["checks"].as_array().unwrap().iter();
            checks.find(|check| check["name"] == name).unwrap().clone()
        };
        (of("secrets"), of("search")["found"].as_str().unwrap().to_owned(), done)
    };
    let (secrets, search, _) = doctor("s3cr3t-value", "0123456789");
    assert_eq!(secrets["ok"], true);
    assert_eq!(secrets["found"], "`api` from `API`\n`image.api_key_env` from `IMAGES`");
    assert!(search.ends_with(", key from `SEARCH`"), "{search}");

    let (secrets, search, done) = doctor("s3cr3t-value", "tiny");
    let found = secrets["found"].as_str().unwrap();
    assert!(found.contains("`IMAGES`: it has fewer than 8 characters"), "{found}");
    assert!(search.contains("`SEARCH`, it has fewer than 8 characters"), "{search}");
    for variable in ["SEARCH", "IMAGES"] {
        let warning = format!("warning: the key in `{variable}`: it has fewer than 8 characters");
        assert_eq!(done.stderr.matches(&warning).count(), 1, "{}", done.stderr);
    }

    let (secrets, _, done) = doctor("tiny", "0123456789");
    let found = secrets["found"].as_str().unwrap();
    assert!(secrets["ok"] == false && done.code == 1, "{secrets}");
    assert!(found.contains("`API`") && found.contains("fewer than 8 characters"), "{found}");
    assert!(!done.stdout.contains("tiny"), "{}", done.stdout);
}

#[test]
fn doctor_names_the_proxy_of_the_endpoint() {
    let place = Place::new();
    let proxy = Provider::start([Answer::body("[]")]);
    let address = format!("http://me:word@{}", proxy.host());
    let args = ["doctor", "--json", "--base-url", "http://model.example/v1", "--model", "m"];
    let found = |call: Call| {
        let json: Json = serde_json::from_str(&call.run().stdout).unwrap();
        let checks = json["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "endpoint").unwrap()
    };
    let check = found(place.wattle(args).env("http_proxy", &address));
    let expected = format!("answers through http://{} (http_proxy)", proxy.host());
    assert!(check["found"].as_str().unwrap().contains(&expected), "{check}");
    let check = found(place.wattle(args).env("ALL_PROXY", "nonsense://x"));
    assert!(check["found"].as_str().unwrap().contains("`ALL_PROXY`"), "{check}");
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let url = format!("http://{address}/a");
    let place = Place::new();
    let mut call = place.wattle(["exec", "http_get", &url, "--allow-host", &address]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        call = call.env(name, "http://user:word@127.0.0.1:1");
    }
    assert_eq!(call.run().code(0).stdout, "hello\n");
    let request = served.join().unwrap();
    assert!(
        request.starts_with("GET /a HTTP/1.1\r\n")
            && !request.to_lowercase().contains("authorization"),
        "{request}"
    );
}

const SECRET: &str = "s3cret-0123456789-value";

#[test]
fn a_stored_secret_is_sent_only_to_its_host_and_is_in_no_file() {
    let place = Place::new();
    let page = Provider::start([Answer::body(format!("you sent {SECRET}")), Answer::body("again")]);
    let host = page.host();
    place
        .wattle(["vars", "set", "api", SECRET, "--secret", "--host", &host])
        .run()
        .code(2)
        .reports(&["from stdin"]);
    place
        .wattle(["vars", "set", "api", "-", "--secret", "--host", &host])
        .stdin("short")
        .run()
        .code(2);
    let set = ["vars", "set", "api", "-", "--secret", "--host", &host];
    place.wattle(set).stdin(format!("{SECRET}\n")).run().code(0);
    let listed = place.wattle(["vars", "list", "--secret"]).run().code(0).stdout;
    assert_eq!(listed, format!("api [\"{host}\"]\n"));

    let request = format!(
        "ToolCall::Wat(```wat\n(ret (http.request? \"GET\" \"{}\" \
         \"{{\\\"authorization\\\":\\\"Bearer ${{secret:api}}\\\"}}\" \"\"))\n```)",
        page.base_url()
    );
    let lines = [
        serde_json::json!({"wattle_cassette": 1, "model": "recorded"}),
        serde_json::json!({"reply": request}),
        serde_json::json!({"reply": "ToolCall::Response(\"done\")"}),
    ];
    place.write("run.jsonl", lines.map(|line| format!("{line}\n")).concat());
    let run =
        ["run", "go", "--cassette", "run.jsonl", "--allow-host", &host, "--json", "--session", "s"];
    let done = place.wattle(run).run().code(0);
    assert_eq!(page.requests()[0].header("authorization"), Some(&*format!("Bearer {SECRET}")));
    assert!(
        done.stdout.contains("you sent ${secret:api}") && !done.stdout.contains(SECRET),
        "{}",
        done.stdout
    );
    for (path, content) in place.files() {
        let found = content.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes());
        assert!(!found, "the secret is in {}", path.display());
    }

    // A message is recorded before its run begins.
    let lines = [
        serde_json::json!({"wattle_cassette": 1, "model": "recorded"}),
        serde_json::json!({"reply": "ToolCall::Response(\"done\")"}),
    ];
    place.write("said.jsonl", lines.map(|line| format!("{line}\n")).concat());
    let message = format!("repeat {SECRET}");
    let run = ["run", &message, "--cassette", "said.jsonl", "--session", "t"];
    place.wattle(run).run().code(0);
    for (path, content) in place.files() {
        let found = content.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes());
        assert!(!found, "the secret of a message is in {}", path.display());
    }

    place.write(
        "other.wat",
        format!("(ret (http.request? \"POST\" \"{}\" 0 \"${{secret:nothing}}\"))", page.base_url()),
    );
    place
        .wattle(["exec", "other.wat", "--allow-host", &host])
        .run()
        .code(1)
        .reports(&["there is no secret `nothing`"]);
    place.wattle(["vars", "rm", "api", "--secret"]).run().code(0);
    place
        .wattle(["vars", "rm", "api", "--secret"])
        .run()
        .code(1)
        .reports(&["there is no secret `api`"]);
}

#[test]
fn a_file_with_a_fault_leaves_the_commands_that_find_it() {
    let place = Place::new();
    place.write("tools/add.wat", ";;; name = \"add\"\n;;; description = \"Add\"\n(ret 2)\n");
    for (text, words) in [
        ("modle = \"x\"\n", &["unknown key `modle`"][..]),
        ("catalog = [\"tools\"]\nmodel = \"m\"\n", &["is not trusted", "wattle trust"]),
    ] {
        place.write("wattle.toml", text);
        place.wattle(["vars", "list"]).run().code(3).reports(words);
        let shown = place.wattle(["config", "show"]).run().code(3).reports(words).stdout;
        assert!(shown.contains("max_steps"), "{shown}");
        place.wattle(["session", "list"]).run().code(0).reports(&words[..1]);
        place.wattle(["catalog", "list"]).run().code(0).reports(&words[..1]);
        place.wattle(["catalog", "test", "tools"]).run().code(0).reports(&words[..1]);
        let found = place.wattle(["doctor"]).run().code(1).stdout;
        assert!(found.contains("settings") && found.contains(words[0]), "{found}");
    }
}
