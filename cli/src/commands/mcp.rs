//! `wattle mcp`: lists, checks and approves the MCP servers whose tools programs may call.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_mcp::{
    Change, Gateway, Pin, Server, Servers, SignIn, SignInLink, ToolDefinition, read_upstream,
};

use crate::args::{McpArgs, McpCommand};
use crate::config::{Config, Layer};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::gateway::LocalDeployment;
use crate::output::{self, BAD, DIM, GOOD, NAME, WARN, paint, visible};
use crate::progress::counted;
use crate::setup::{self, Setup};
use crate::walls::Needs;
use crate::{ask, input, stdin, threads, trust};

/// Runs an `mcp` command.
pub(crate) fn mcp(args: McpArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let mut config = trust::gather(flags)?;
    let McpArgs { upstream, expose, command } = args;
    let Some(command) = command else {
        for file in &upstream {
            add_upstream(&mut config, file)?;
        }
        confine(&config, &Needs { trusted: config.exec.value, ..Needs::default() })?;
        return threads::run(serve(config, expose));
    };
    let listens = matches!(command, McpCommand::Login { .. });
    confine(&config, &Needs { workdir_stays: true, listens, ..Needs::default() })?;
    threads::run(manage(command, config))
}

/// Adds the servers in another client's configuration to the settings.
fn add_upstream(config: &mut Config, file: &Path) -> Result<(), Fault> {
    let wrong = |why: &str| Fault::configuration(format!("`{}`: {why}", file.display()));
    let servers = read_upstream(&input::text(file)?).map_err(|error| wrong(&error.to_string()))?;
    for (name, settings) in servers {
        if config.mcp.value.0.insert(name.clone(), settings).is_some() {
            return Err(wrong(&format!("the settings declare the server `{name}`, too")));
        }
    }
    Ok(())
}

/// Serves one client over standard input and output until it leaves.
async fn serve(config: Config, expose: Vec<String>) -> Result<Exit, Fault> {
    let setup = Setup::new(config)?.with_new_servers().await;
    let catalog = setup.host.catalog();
    if let Some(unknown) = expose.iter().find(|name| catalog.get(name).is_none()) {
        return Err(super::no_program(&catalog, unknown, "", super::LIST));
    }
    if stdin::is_interactive() {
        output::aside(
            "waiting for an MCP client on standard input; clients start this command themselves. \
             Ctrl-C ends it",
        );
    }
    let gateway = Gateway::new(Arc::new(LocalDeployment::new(setup, expose)?));
    let failed = |why: String| Fault::failed(format!("the MCP client cannot be served: {why}"));
    let cancel = setup::interrupt();
    let served = gateway.serve_stdio(cancel.cancelled_owned()).await;
    served.map(|()| Exit::Done).map_err(failed)
}

async fn manage(command: McpCommand, config: Config) -> Result<Exit, Fault> {
    let egress =
        Egress::new(Policy { allow: config.allow_host.value.clone(), ..Policy::default() });
    let servers = setup::servers::configured(&config, &egress);
    match command {
        McpCommand::List { json } => list(&servers, json),
        McpCommand::Show { server, json } => show(find(&servers, &server)?, json),
        McpCommand::Check { servers: names, json } => {
            names.iter().try_for_each(|name| find(&servers, name).map(drop))?;
            check(&servers.among(&names), json).await
        }
        McpCommand::Approve { server, yes } => approve(find(&servers, &server)?, yes).await,
        McpCommand::Login { server, scope, port } => {
            login(find(&servers, &server)?, &scope, port).await
        }
        McpCommand::Logout { server } => logout(find(&servers, &server)?).await,
    }
}

/// Returns the configured server with this name.
///
/// # Errors
/// If there is none.
pub(crate) fn find<'a>(servers: &'a Servers, name: &str) -> Result<&'a Server, Fault> {
    servers.get(name).map(AsRef::as_ref).ok_or_else(|| {
        let known: Vec<String> = servers.iter().map(|one| format!("`{}`", one.name())).collect();
        let hint = if known.is_empty() {
            format!("`[mcp.{name}]` in the settings declares it: `wattle config edit`")
        } else {
            format!("there is {}", known.join(", "))
        };
        Fault::usage(format!("no MCP server `{name}` is configured")).hint(hint)
    })
}

/// Prints the servers.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn list(servers: &Servers, json: bool) -> Result<Exit, Fault> {
    if json {
        let lines: Vec<Json> = servers.iter().map(|server| status(server)).collect();
        output::json(&lines)?;
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        output::note("no MCP server is configured; `[mcp.NAME]` in the settings declares one");
    }
    for server in servers.iter() {
        let status = server.status();
        let state = match &status.protocol {
            None => paint(WARN, "not yet accepted"),
            Some(_) => counted(status.tools, "tool"),
        };
        let version = status.version.map(|version| format!(" {version}")).unwrap_or_default();
        output::styled(&format!(
            "{}  {state}{}  {}",
            paint(NAME, &status.name),
            visible(&version),
            paint(DIM, &visible(&status.identity))
        ))?;
    }
    Ok(Exit::Done)
}

fn status(server: &Server) -> Json {
    let status = server.status();
    let problems: Vec<String> = status.problems.iter().map(ToString::to_string).collect();
    json!({
        "name": status.name,
        "server": status.identity,
        "protocol": status.protocol,
        "version": status.version,
        "tools": status.tools,
        "problems": problems,
    })
}

/// Prints the accepted tools of a server as functions.
///
/// # Errors
/// If they have not been accepted yet, or stdout cannot be written.
pub(crate) fn show(server: &Server, json: bool) -> Result<Exit, Fault> {
    let pin = server.pin().ok_or_else(|| {
        let name = server.name();
        Fault::failed(format!("the tools of the MCP server `{name}` are not known yet"))
            .hint(format!("`wattle mcp approve {name}` starts it and accepts its tools"))
    })?;
    if json {
        output::json(&pin)?;
        return Ok(Exit::Done);
    }
    for entry in server.programs() {
        output::styled(&paint(NAME, &visible(&entry.usage())))?;
        let about = visible(&entry.meta().description);
        if !about.is_empty() {
            output::styled(&format!("  {about}"))?;
        }
    }
    server.status().problems.iter().for_each(|problem| output::warn(&problem.to_string()));
    Ok(Exit::Done)
}

async fn check(servers: &Servers, json: bool) -> Result<Exit, Fault> {
    let mut exit = Exit::Done;
    let mut lines: Vec<Json> = Vec::new();
    for (server, now) in servers.look().await {
        let name = server.name();
        let (verdict, line) = match now {
            Err(error) => {
                (paint(BAD, &visible(&error.to_string())), json!({"error": error.to_string()}))
            }
            Ok(now) => {
                let changes = server.pin().map(|pin| pin.changes(&now.tools));
                let words: Option<Vec<String>> =
                    changes.map(|changes| changes.iter().map(ToString::to_string).collect());
                let line = json!({
                    "protocol": now.protocol, "version": now.version,
                    "tools": now.tools.len(), "changes": words,
                });
                let verdict = match &words {
                    None => format!(
                        "{} (`wattle mcp approve {name}` accepts them)",
                        paint(
                            WARN,
                            &format!("{} not yet accepted", counted(now.tools.len(), "tool"))
                        )
                    ),
                    Some(words) if words.is_empty() => {
                        format!("{} {}", paint(GOOD, "ok"), counted(now.tools.len(), "tool"))
                    }
                    Some(words) => format!(
                        "{} (`wattle mcp approve {name}` shows the difference)",
                        paint(BAD, &visible(&words.join(", ")))
                    ),
                };
                (verdict, line)
            }
        };
        let is_good =
            line.get("changes").is_some_and(|it| it.as_array().is_some_and(Vec::is_empty));
        if !is_good {
            exit = Exit::Failed;
        }
        if json {
            let mut line = line;
            super::extend(&mut line, json!({"name": name}));
            lines.push(line);
        } else {
            output::styled(&format!("{}  {verdict}", paint(NAME, name)))?;
        }
    }
    if json {
        output::json(&lines)?;
    }
    Ok(exit)
}

async fn approve(server: &Server, yes: bool) -> Result<Exit, Fault> {
    let name = server.name();
    let pins = setup::servers::pins()
        .ok_or_else(|| Fault::configuration("there is no home directory to keep the tools in"))?;
    let now = server.look().await.map_err(|error| Fault::failed(error.to_string()))?;
    match server.pin() {
        None => now.tools.iter().for_each(|tool| print_tool(GOOD, "+", tool)),
        Some(pin) => {
            let changes = pin.changes(&now.tools);
            if changes.is_empty() {
                output::note(&format!("the tools of `{name}` have not changed"));
                return Ok(Exit::Done);
            }
            changes.iter().for_each(print_change);
        }
    }
    let question = format!("accept these tools of `{name}`?");
    if !yes && !ask::is_terminal() {
        return Err(Fault::usage("nobody can be asked, because this is no terminal")
            .hint(format!("read the difference, then `wattle mcp approve {name} --yes`")));
    }
    if !yes && !ask::confirm(&question) {
        output::note("nothing was changed");
        return Ok(Exit::Denied);
    }
    keep(&pins, name, &now)?;
    output::note(&format!(
        "{} {} of `{name}`",
        paint(GOOD, "accepted"),
        counted(now.tools.len(), "tool")
    ));
    Ok(Exit::Done)
}

/// Lets the user sign in, in a browser. The link is printed and not opened, because this process
/// starts no others.
async fn login(server: &Server, scopes: &[String], port: u16) -> Result<Exit, Fault> {
    let name = server.name();
    if !ask::is_terminal() {
        return Err(Fault::usage("nobody can sign in, because this is no terminal").hint(format!(
            "run `wattle mcp login {name}` in a terminal; a fixed token goes into `headers` of \
             [mcp.{name}]"
        )));
    }
    let show = |link: &SignInLink| {
        let issuer = paint(NAME, &visible(&link.issuer));
        output::note(&format!("open this link in a browser to sign in to `{name}` at {issuer}:"));
        output::note(&visible(&link.url));
        if let Some(host) = &link.other_host {
            output::warn(&format!(
                "the page is at {host}: go on only if that is where you sign in to this server"
            ));
        }
        output::aside("waiting for the browser, at most five minutes …");
    };
    let sign_in = SignIn { scopes, port, show: &show };
    let cancel = setup::interrupt();
    let signed_in = tokio::select! {
        signed_in = server.sign_in(&sign_in) => signed_in.map_err(|error| Fault::failed(error.to_string()))?,
        () = cancel.cancelled_owned() => return Ok(Exit::Interrupted),
    };
    let scopes = match signed_in.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", with {}", visible(&scopes.join(" "))),
    };
    output::note(&format!("{} to `{name}`{scopes}", paint(GOOD, "signed in")));
    if server.pin().is_none() {
        output::note(&format!("`wattle mcp approve {name}` accepts its tools"));
    }
    Ok(Exit::Done)
}

async fn logout(server: &Server) -> Result<Exit, Fault> {
    let name = server.name();
    let was_in = server.sign_out().await.map_err(|error| Fault::failed(error.to_string()))?;
    output::note(&match was_in {
        true => format!("{} of `{name}`", paint(GOOD, "signed out")),
        false => format!("nobody is signed in to `{name}`"),
    });
    Ok(Exit::Done)
}

fn keep(pins: &wattle_mcp::Pins, name: &str, pin: &Pin) -> Result<(), Fault> {
    pins.save(name, pin)
        .map_err(|error| Fault::failed(format!("failed to keep the tools: {error}")))
}

fn print_change(change: &Change) {
    match change {
        Change::Added(tool) => print_tool(GOOD, "+", tool),
        Change::Removed(name) => output::note(&paint(BAD, &visible(&format!("- {name}")))),
        Change::Changed { was, is } => {
            output::note(&paint(NAME, &visible(&format!("~ {}", is.name))));
            let (was, is) = (lines(was), lines(is));
            was.iter().filter(|line| !is.contains(line)).for_each(|line| {
                output::note(&paint(BAD, &visible(&format!("  - {line}"))));
            });
            is.iter().filter(|line| !was.contains(line)).for_each(|line| {
                output::note(&paint(GOOD, &visible(&format!("  + {line}"))));
            });
        }
    }
}

fn print_tool(style: anstyle::Style, sign: &str, tool: &ToolDefinition) {
    output::note(&paint(style, &visible(&format!("{sign} {}", tool.name))));
    lines(tool).iter().for_each(|line| output::note(&format!("    {}", visible(line))));
}

/// Returns all that a model and the policy see of a tool, line by line.
fn lines(tool: &ToolDefinition) -> Vec<String> {
    let mut lines: Vec<String> = tool.description.lines().map(str::to_owned).collect();
    lines.push(format!("input: {}", tool.input_schema));
    lines.extend(tool.output_schema.iter().map(|schema| format!("output: {schema}")));
    lines.extend(tool.read_only.map(|it| format!("only reads: {it}")));
    lines.extend(tool.destructive.map(|it| format!("may destroy: {it}")));
    lines
}
