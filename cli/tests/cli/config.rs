//! Tests of the sources of settings, and of the errors for invalid settings.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::{Value as Json, json};

use crate::place::{Call, Place};

fn user_file(place: &Place, content: &str) {
    let folder = place.home().join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wattle.toml"), content).unwrap();
}

fn shown(call: Call) -> Json {
    serde_json::from_str(&call.run().code(0).stdout).unwrap()
}

#[test]
fn the_first_layer_with_a_value_decides() {
    let place = Place::new();
    let show = ["config", "show", "--origin", "--json"];
    let model = |call: Call| {
        let setting = shown(call)["model"].clone();
        (
            setting["value"].as_str().unwrap_or("-").to_owned(),
            setting["origin"].as_str().unwrap().to_owned(),
        )
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(model(place.wattle(show)), pair("-", "default"));
    user_file(&place, "model = \"of-user\"\nmax_steps = 3\n");
    assert_eq!(model(place.wattle(show)), pair("of-user", "user"));
    place.write("wattle.toml", "model = \"of-project\"\n");
    place.wattle(["trust"]).run().code(0);
    assert_eq!(model(place.wattle(show)), pair("of-project", "project"));
    assert_eq!(
        model(place.wattle(show).env("WATTLE_MODEL", "of-env")),
        pair("of-env", "environment")
    );
    let flag =
        place.wattle(show.iter().chain(&["--model", "of-flag"])).env("WATTLE_MODEL", "of-env");
    assert_eq!(model(flag), pair("of-flag", "flag"));
    assert_eq!(
        model(place.wattle(["--model", "outer"].iter().chain(&show))),
        pair("outer", "flag")
    );
    assert_eq!(model(place.wattle(show).env("WATTLE_MODEL", "")), pair("of-project", "project"));
    assert_eq!(shown(place.wattle(show))["max_steps"]["value"], 3);
}

#[test]
fn every_kind_of_value_is_read_from_every_layer() {
    let place = Place::new();
    user_file(
        &place,
        "timeout = \"90s\"\nwrite = true\nallow_host = [\"localhost:80\", \"[::1]\"]\ncatalog = \
         [\"tools\"]\nstore = \"~/s.db\"\n",
    );
    let show = ["config", "show", "--json"];
    let settings = shown(place.wattle(show));
    let home = place.home();
    assert_eq!((&settings["timeout"], &settings["write"]), (&json!("90s"), &json!(true)));
    assert_eq!(settings["allow_host"], json!(["localhost:80", "[::1]"]));
    assert_eq!(settings["catalog"], json!([home.join(".config/wattle/tools").to_str().unwrap()]));
    // If the tests use PostgreSQL, an environment variable sets the store.
    if !wattle_cases::postgres::is_switched() {
        assert_eq!(settings["store"], json!(home.join("s.db").to_str().unwrap()));
    }
    let of_environment = place
        .wattle(show)
        .env("WATTLE_TIMEOUT", "2m")
        .env("WATTLE_WRITE", "0")
        .env("WATTLE_ALLOW_HOST", "a.example, b.example:81")
        .env("WATTLE_CATALOG", "x,y");
    let settings = shown(of_environment);
    assert_eq!((&settings["timeout"], &settings["write"]), (&json!("2m"), &json!(false)));
    assert_eq!(
        (&settings["allow_host"], &settings["catalog"]),
        (&json!(["a.example", "b.example:81"]), &json!(["x", "y"]))
    );
    let text = place.wattle(["config", "show"]).run().code(0).stdout;
    assert!(
        text.contains("timeout = \"90s\"\n") && text.contains("# model is not set\n"),
        "{text}"
    );
}

#[test]
fn a_table_of_a_file_is_the_prefix_of_a_key() {
    let place = Place::new();
    user_file(&place, "tenant = \"acme\"\n[ai]\ncalls = 7\nembed_model = \"e\"\n");
    let settings = shown(place.wattle(["config", "show", "--json"]).env("WATTLE_AI_TOKENS", "9"));
    assert_eq!(settings["tenant"], "acme");
    assert_eq!(
        [&settings["ai.calls"], &settings["ai.tokens"], &settings["ai.embed_model"]],
        [&json!(7), &json!(9), &json!("e")]
    );
    let settings =
        shown(place.wattle(["config", "show", "--json", "--ai-calls", "8", "--tenant", "other"]));
    assert_eq!((&settings["ai.calls"], &settings["tenant"]), (&json!(8), &json!("other")));
    // The output is a valid settings file.
    let text = place.wattle(["config", "show"]).run().code(0).stdout;
    assert!(text.contains("\nai.calls = 7\n"), "{text}");
    let shown_keys: String = text
        .lines()
        .filter(|line| line.starts_with("ai."))
        .map(|line| format!("{line}\n"))
        .collect();
    user_file(&place, &shown_keys);
    assert_eq!(shown(place.wattle(["config", "show", "--json"]))["ai.calls"], 7);
}

#[test]
fn the_search_engine_is_set_like_other_settings() {
    let place = Place::new();
    user_file(&place, "search = { engine = \"brave\", key_env = \"MY_KEY\" }\n");
    let settings =
        shown(place.wattle(["config", "show", "--json", "--search-url", "https://s.example"]));
    let keys = ["search.engine", "search.url", "search.key_env"];
    assert_eq!(
        keys.map(|key| settings[key].clone()),
        ["brave", "https://s.example", "MY_KEY"].map(Json::from)
    );
    let doctor = || place.wattle(["doctor", "--json"]);
    let found = |call: Call| {
        let json: Json = serde_json::from_str(&call.run().code(1).stdout).unwrap();
        json["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == "search")
            .unwrap()
            .clone()
    };
    assert!(found(doctor())["found"].as_str().unwrap().contains("the variable `MY_KEY` is empty"));
    let with_key = found(doctor().env("MY_KEY", "brave-secret"));
    assert!(with_key["ok"] == true && !with_key.to_string().contains("brave-secret"), "{with_key}");
    place
        .wattle(["exec", "web_search", "cats"])
        .run()
        .code(1)
        .reports(&["the variable `MY_KEY` is empty"]);
    let warned = place.wattle(["doctor", "--json"]).env("WATTLE_MODLE", "m");
    let warned: Json =
        serde_json::from_str(&warned.env("WATTLE_TOKEN", "abcde").run().stdout).unwrap();
    let checks = warned["checks"].as_array().unwrap().clone();
    let warnings = checks.into_iter().find(|check| check["name"] == "warnings").unwrap();
    let found = warnings["found"].as_str().unwrap();
    assert!(found.contains("`WATTLE_MODLE`") && found.contains("`WATTLE_MODEL`?"), "{found}");
    assert!(found.contains("has 5 characters") && !found.contains("abcde"), "{found}");
    assert!(!found.contains("MY_KEY"), "{found}");
    let bare = Place::new();
    let engine = |call: Call| {
        let json: Json = serde_json::from_str(&call.run().code(1).stdout).unwrap();
        let checks = json["checks"].as_array().unwrap().clone();
        let search = checks.into_iter().find(|check| check["name"] == "search").unwrap();
        search["found"].as_str().unwrap().to_owned()
    };
    let default = engine(bare.wattle(["doctor", "--json"]));
    assert!(
        default.starts_with("page at https://") && default.contains("`search.engine = \"off\"`")
    );
    let off = engine(bare.wattle(["doctor", "--json", "--search-engine", "off"]));
    assert!(off.contains("`off`"), "{off}");
    bare.wattle(["exec", "web_search", "cats", "--search-engine", "off"])
        .run()
        .code(1)
        .reports(&["`search.engine`", "searxng"]);
}

#[test]
fn the_web_is_searched_without_any_set_up() {
    let page = r#"<div class="result"><a class="result__a" href="https://cats.example/">Cats &amp; co</a>
        <a class="result__snippet">All about cats</a></div>"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        lines.find(|line| line.as_ref().unwrap().is_empty());
        let length = page.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{page}"
        )
        .unwrap();
        first
    });
    let place = Place::new();
    let url = format!("http://{address}/html/");
    let found = place.wattle(["exec", "web_search", "big cats"]).env("WATTLE_SEARCH_URL", &url);
    let found = found.run().code(0).stdout;
    assert!(found.contains("Cats & co") && found.contains("https://cats.example/"), "{found}");
    assert_eq!(served.join().unwrap(), "GET /html/?q=big+cats HTTP/1.1");
}

#[test]
fn an_invalid_setting_is_an_error_that_names_its_source() {
    for (file, words) in [
        (
            "modle = \"x\"",
            &["unknown key `modle`", "wattle.toml`, line 1", "did you mean `model`?"][..],
        ),
        ("base-url = \"x\"", &["`base-url`", "`base_url`"]),
        ("zzz = 1", &["`zzz`", "docs/configuration.md lists the keys"]),
        ("model = 3", &["`model`", "a text in quotes", "3"]),
        ("max_steps = -1", &["`max_steps`", "from 0 on"]),
        ("on_max_steps = \"wait\"", &["`on_max_steps`", "`answer`, `stop` or `latest`"]),
        ("max_steps = \"3\"", &["`max_steps`"]),
        ("timeout = 90", &["`timeout`", "`90s`"]),
        ("timeout = \"soon\"", &["`timeout`", "`90s`"]),
        ("write = \"yes\"", &["`write`", "true or false"]),
        ("allow_host = [\"http://x\"]", &["`allow_host`"]),
        ("catalog = \"tools\"", &["`catalog`", "a list"]),
        ("model = ", &["wattle.toml", "line 1"]),
        (
            "search = { engine = \"gogle\" }",
            &["`search.engine`", "`page`, `searxng`, `brave` or `off`"],
        ),
        (
            "[search]\nkey_env = \"sk-not a name\"",
            &["`search.key_env`", "not the name of a variable"],
        ),
        ("[search]\nurl = \"https://me:pw@s.example\"", &["`search.url`", "--search-key-env"]),
        ("trusted = [\"/\"]", &["`trusted`", "not a setting any more", "wattle trust DIR"]),
        ("sandbox = \"maybe\"", &["`sandbox`", "`on` or `off`"]),
        ("[ai]\ncals = 1", &["unknown key `ai.cals`", "line 2", "did you mean `ai.calls`?"]),
        ("[policy]\ndeny = [\"*\"]", &["unknown key `policy.deny`", "did you mean `deny`?"]),
        ("[ai]\ncalls = 0", &["`ai.calls`", "from 1 on"]),
        ("ai = 3", &["unknown key `ai`"]),
        ("[model]\nname = \"x\"", &["`model`", "a text in quotes"]),
    ] {
        let place = Place::new();
        user_file(&place, file);
        place.wattle(["config", "show"]).run().code(3).reports(words);
    }
    for (name, value) in [
        ("WATTLE_TIMEOUT", "soon"),
        ("WATTLE_WRITE", "maybe"),
        ("WATTLE_MAX_STEPS", "-1"),
        ("WATTLE_ALLOW_HOST", "*.x"),
    ] {
        Place::new().wattle(["config", "show"]).env(name, value).run().code(3).reports(&[name]);
    }
    for args in [["--timeout", "soon"], ["--max-steps", "few"], ["--allow-host", "http://x/"]] {
        Place::new()
            .wattle(["config", "show"].iter().chain(&args))
            .run()
            .code(2)
            .reports(&[args[0]]);
    }
}

#[test]
fn the_project_file_is_that_of_the_root() {
    let place = Place::new();
    place.write("sub/wattle.toml", "model = \"of-sub\"\ncatalog = [\"tools\"]\n");
    let show = ["config", "show", "--json"];
    assert_eq!(shown(place.wattle(show))["model"], Json::Null);
    place.wattle(["trust", "sub"]).run().code(0);
    let settings = shown(place.wattle(show.iter().chain(&["--root", "sub"])));
    assert_eq!(
        (&settings["model"], &settings["catalog"]),
        (&json!("of-sub"), &json!(["sub/tools"]))
    );
    assert_eq!(shown(place.wattle(show).env("WATTLE_ROOT", "sub"))["model"], "of-sub");
}

#[test]
fn a_secret_instead_of_its_name_is_rejected_and_not_repeated() {
    let place = Place::new();
    for args in
        [["--api-key-env", "sk-0123-secret"], ["--base-url", "https://me:secret@host.example/v1"]]
    {
        for command in [&["config", "show"][..], &["doctor"], &["run", "x"]] {
            let done = place.wattle(command.iter().chain(&args)).run().code(3);
            assert!(
                !done.stderr.contains("secret") && !done.stdout.contains("secret"),
                "{}",
                done.stderr
            );
        }
    }
    place.wattle(["config", "show", "--api-key-env", "MY_KEY_2"]).run().code(0);
}
