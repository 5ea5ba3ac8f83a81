//! Tests of the sign-in to an MCP server at a terminal.

#[path = "../../../mcp/tests/oauth/world.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod world;

use crate::terminal::{Place, Terminal};
use world::{Behaviour, World, browse};

#[test]
fn a_user_signs_in_and_out_at_a_terminal() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start(Behaviour::default()));
    let place = Place::new();
    let settings = place.home(".config/wattle/wattle.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, format!("[mcp.box]\nurl = \"{}\"\n", world.mcp)).unwrap();

    // Without a terminal, nobody can sign in.
    let output = place.command(&["mcp", "login", "box"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("run `wattle mcp login box` in a terminal"), "{stderr}");

    let mut terminal = Terminal::open(place.command(&["mcp", "login", "box"]));
    terminal.shows(&format!("sign in to `box` at {}:", world.issuer));
    terminal.shows("http");
    let link = format!("http{}", terminal.shows("\r\n"));
    let page = runtime.block_on(browse(&link));
    assert!(page.contains("return to the terminal"), "{page}");
    terminal.shows("signed in to `box`, with tools");
    assert!(terminal.ends(0).contains("`wattle mcp approve box` accepts its tools"));
    let file = std::fs::read(place.home(".local/share/wattle/mcp/box.token")).unwrap();
    assert!(!file.windows(6).any(|part| part == b"access"));

    let accepted = place.command(&["mcp", "approve", "box", "--yes"]).output().unwrap();
    assert_eq!(accepted.status.code(), Some(0), "{accepted:?}");
    assert_eq!(world.seen.lock().received.last().unwrap(), "Bearer access-token-1");

    let out = place.command(&["mcp", "logout", "box"]).output().unwrap();
    assert!(String::from_utf8(out.stderr).unwrap().contains("signed out of `box`"));
    assert!(world.seen.lock().revoked.contains("refresh-token-1"));
    let check = place.command(&["mcp", "check", "box"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    assert!(String::from_utf8(check.stdout).unwrap().contains("wattle mcp login box"));
}

#[test]
fn an_interrupt_ends_a_sign_in() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start(Behaviour::default()));
    let place = Place::new();
    let mut command = place.command(&["mcp", "login", "box"]);
    command.env("WATTLE_MCP", format!("box = {{ url = \"{}\" }}", world.mcp));
    let mut terminal = Terminal::open(command);
    terminal.shows("waiting for the browser");
    terminal.control('c');
    terminal.ends(130);
    assert!(!place.home(".local/share/wattle/mcp/box.token").exists());
}
