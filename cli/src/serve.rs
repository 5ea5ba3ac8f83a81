//! `wattle serve`: the HTTP server.

use std::io::{ErrorKind, IsTerminal as _, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_agent::host::Timeout;
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest, Timeouts};
use wattle_server::{
    App, Limits, OpenTenant, Operator, Server, ServerSettings, SettingLine, TenantParts, Token,
    TokenError,
};

use crate::args::ServeArgs;
use crate::config::{Config, Layer, Origin, Places, Value as _};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, paint};
use crate::setup::{self, EXEC_VARIABLE, Setup, TOKEN_VARIABLE, trusted, variable};
use crate::walls::Needs;
use crate::{threads, trust};

/// Maximum size of a store that is checked before the server starts, in bytes. That takes less than
/// a second.
const CHECKED_AT_START: u64 = 256 << 20;
/// Default maximum number of steps per message.
const STEPS: u32 = 10;

/// Serves requests until an interrupt or a termination signal arrives, then waits for the current
/// runs to end. A second signal ends the process immediately.
pub(crate) fn serve(args: ServeArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather(flags)?.for_server();
    // Runs can read the workdir only if the operator sets it explicitly.
    let workdir = match config.root.origin {
        Origin::Default => None,
        _ => Some(config.root.value.clone()),
    };
    let config = trust::with_content_of(config, workdir.as_deref())?;
    let needs =
        Needs { trusted: may_exec()?, listens: true, saves_programs: true, ..Needs::default() };
    confine(&config, &needs)?;
    threads::run(listen(args, config))
}

async fn listen(args: ServeArgs, mut config: Config) -> Result<Exit, Fault> {
    // No person in this terminal waits for the runs.
    config.retry_for.value.get_or_insert(Timeout(Timeouts::default().retry_for));
    let setup = Setup::new(config)?.with_new_servers().await;
    let (model, problem) = model(&setup)?;
    if problem.is_none() {
        setup.note_default_model(&*model);
    }
    let listen = resolve(&args.listen).await?;
    let ServerToken { token, in_link } = token(listen)?;
    let link = in_link.then(|| format!("#token={}", token.reveal()));
    setup::warnings(&setup.config).iter().for_each(|warning| output::warn(warning));
    let limits = within_open_files(limits(&setup.config))?;
    ignore_signals()?;

    let host = setup.host.clone();
    tokio::spawn(async move { host.warm().await });
    let settings = setup.run_settings(STEPS, &model)?;
    let store = setup::store(&setup.config)?;
    // A database that is down may come back. A URL that cannot work does not.
    store.check().await.or_else(|cause| if cause.is_outage() { Ok(()) } else { Err(cause) })?;
    setup::check_keys(&setup.config, store.file(), None).await?;
    let own = parts(&setup)?;
    // The store remembers the keys that were created just now.
    setup::check_keys(&setup.config, store.file(), Some(store.tenant())).await?;
    // The server itself checks a larger file while it runs.
    own.store.file().check_structure(CHECKED_AT_START).await?;
    let models = setup.models(Arc::clone(&model));
    let app = App::new(setup.host.clone(), model, settings, own)
        .with_agents(setup.agents.clone())
        .with_models(models)
        .with_model_problem(problem)
        .with_tenants(tenants(&setup))
        .with_host_files(setup::host_files(&setup.config))
        .with_policy(setup::with_hints(&setup.config, &setup.servers))
        .with_max_steps(setup.config.max_steps.value)
        .with_embed_model(setup.config.embed_model.value.clone())
        .with_operator(operator(&setup.config));
    // Runs can read the workdir only if the operator sets it explicitly.
    let app = match setup.config.root.origin {
        Origin::Default => app,
        _ => app.with_base(setup.config.root.value.clone()),
    };
    let settings = ServerSettings {
        allowed_hosts: args.allow_name,
        allowed_origins: args.allow_origin,
        limits,
        ..ServerSettings::new(listen, token)
    };
    let hint = "name another address with `--listen ADDRESS:PORT`; port 0 takes a free one";
    let server =
        Server::bind(settings, app).await.map_err(|error| Fault::failed(error).hint(hint))?;
    let address = format!("http://{}", server.local_addr());
    if let Some(link) = link {
        output::note(&format!("page: {address}/{link}"));
    }
    output::note(&format!("listening on {address}"));

    let stop = CancellationToken::new();
    let signals = async {
        signal().await;
        stop.cancel();
        output::note("stopping after the current runs have ended … (again to stop at once)");
        signal().await;
    };
    let exit = tokio::select! {
        biased;
        () = server.run(stop.clone()) => Exit::Done,
        () = signals => Exit::Interrupted,
    };
    setup.flush().await;
    Ok(exit)
}

/// Returns the model. If no setting names one, returns a model that answers no request, and the
/// reason, so that the page can be used before a model is set up.
fn model(setup: &Setup) -> Result<(Arc<dyn Model>, Option<String>), Fault> {
    let Config { cassette, provider, base_url, model, .. } = &setup.config;
    let is_set = cassette.value.is_some()
        || [provider, base_url, model].iter().any(|setting| setting.value.is_some());
    match setup.model() {
        Err(fault) if !is_set => {
            let reason = fault.sentence();
            output::warn(&format!("{reason}.\nUntil then, runs fail"));
            Ok((Arc::new(MissingModel(reason.clone())), Some(reason)))
        }
        model => Ok((model?, None)),
    }
}

/// The model of a server for which none is set up. Each request fails for this reason.
struct MissingModel(String);

impl Model for MissingModel {
    fn name(&self) -> &str {
        "none"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(std::future::ready(Err(ModelError::application(&*self.0))))
    }
}

/// Returns the server's limits.
fn limits(config: &Config) -> Limits {
    let number = |limit: std::num::NonZeroU32| usize::try_from(limit.get()).unwrap_or(usize::MAX);
    Limits {
        runs: number(config.serve_runs.value),
        runs_per_tenant: config.serve_tenant.value.map(number),
        queued: number(config.serve_queue.value),
        ..Limits::default()
    }
}

/// Number of files that the server itself opens, such as those of the store.
const OWN_FILES: usize = 64;
/// Number of files that a run opens at most: connections, and files of the workdir and of its trace.
const FILES_OF_RUN: usize = 8;

/// Raises the limit on open files as far as the system allows, and lowers the limits of the server so
/// that it stays below: connections and runs are refused or wait then, and none fails halfway.
///
/// # Errors
/// If the limit is too low for a server.
fn within_open_files(limits: Limits) -> Result<Limits, Fault> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const RAISE: &str = "raise it with `ulimit -n`, with `LimitNOFILE=` of the unit, or with the \
                         option `--ulimit` of the container";
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, the current one applies.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let Some(files) = (if raised.is_ok() { maximum } else { current }) else { return Ok(limits) };
    let Some(rest) = usize::try_from(files).unwrap_or(usize::MAX).checked_sub(OWN_FILES) else {
        let message = format!("the process may open {files} files, too few for a server");
        return Err(Fault::configuration(message).hint(RAISE));
    };
    let half = rest / 2;
    let (connections, runs) = (limits.connections, limits.runs);
    let limits = Limits {
        connections: connections.min(Limits::connections_within(half)).max(1),
        runs: runs.min(half / FILES_OF_RUN).max(1),
        ..limits
    };
    if limits.connections < connections || limits.runs < runs {
        output::warn(&format!(
            "the process may open {files} files, which is enough for {} connections and {} runs: \
             {RAISE}",
            limits.connections, limits.runs
        ));
    }
    Ok(limits)
}

/// Keeps the process alive when it receives a signal that ends other programs by default. There is
/// nothing to reload: programs and agents are read again when their files change.
///
/// # Errors
/// If the system does not deliver signals to the process.
fn ignore_signals() -> Result<(), Fault> {
    use tokio::signal::unix::{SignalKind, signal};
    let ignored = [
        ("SIGHUP", SignalKind::hangup()),
        ("SIGUSR1", SignalKind::user_defined1()),
        ("SIGUSR2", SignalKind::user_defined2()),
    ];
    for (name, kind) in ignored {
        let mut received = signal(kind).map_err(Fault::failed)?;
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                output::note(&format!(
                    "{name} changes nothing: programs and agents are read again when their files \
                     change, and settings when the server starts"
                ));
            }
        });
    }
    Ok(())
}

/// Returns the data that the settings page shows: the settings, and the folders of the catalog.
fn operator(config: &Config) -> Operator {
    let line = |row: crate::config::Row| SettingLine {
        key: row.name.to_owned(),
        value: row.value,
        origin: row.origin.to_string(),
    };
    Operator {
        settings: config.rows().into_iter().map(line).collect(),
        programs: config.catalog.value.clone(),
    }
}

/// Opens the configured tenant's store and returns it with the folder of the tenant's traces, its
/// signing key, its secrets and its trusted capabilities.
fn parts(setup: &Setup) -> Result<TenantParts, Fault> {
    let (config, root) = (&setup.config, &setup.config.root.value);
    let trusted = if may_exec()? { Some((setup.trusted()?, root.clone())) } else { None };
    Ok(TenantParts {
        store: setup::store(config)?,
        trace_dir: setup::trace_dir(config, root),
        signer: setup.signer()?,
        secrets: Some(trusted::secrets(config)?),
        tools: setup.tools(),
        trusted,
    })
}

/// Returns a function that opens the store and the other components of another tenant. Runs of
/// other tenants are never trusted, because trusted runs commit from the workdir of the operator,
/// and have only those of the operator's secrets that are shared.
fn tenants(setup: &Setup) -> OpenTenant {
    let setup = setup.clone();
    Arc::new(move |tenant| {
        let parts = parts(&setup.for_tenant(tenant)).map_err(|fault| fault.to_string())?;
        Ok(TenantParts { trusted: None, ..parts })
    })
}

/// Returns true if clients may request trusted runs. Only an environment variable that the operator
/// sets can allow this.
fn may_exec() -> Result<bool, Fault> {
    let Some(text) = variable(EXEC_VARIABLE).filter(|text| !text.trim().is_empty()) else {
        return Ok(false);
    };
    bool::from_text(&text)
        .map_err(|why| Fault::configuration(format!("the variable `{EXEC_VARIABLE}`: {why}")))
}

/// Resolves an address such as `127.0.0.1:8787` or `localhost:8787`.
async fn resolve(text: &str) -> Result<SocketAddr, Fault> {
    let wrong = |why: &str| {
        Fault::usage(format!("cannot listen on `{text}`: {why}"))
            .hint("give an address and a port: `127.0.0.1:8787`")
    };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found =
        tokio::net::lookup_host(text).await.map_err(|error| wrong(&error.to_string()))?;
    found.next().ok_or_else(|| wrong("the name has no address"))
}

/// The operator's token.
struct ServerToken {
    token: Token,
    /// If true, the printed link to the page contains the token.
    in_link: bool,
}

/// Returns the operator's token. If none is set, and only this machine can reach the server, a
/// token is generated at the first start and reused afterwards.
fn token(listen: SocketAddr) -> Result<ServerToken, Fault> {
    let wrong = |error: TokenError| {
        Fault::configuration(format!("the variable `{TOKEN_VARIABLE}`: {error}"))
    };
    let own = variable(TOKEN_VARIABLE)
        .filter(|text| !text.is_empty())
        .map(|text| Token::new(&text).map_err(wrong));
    match own {
        Some(token) => {
            let token = token?;
            if !listen.ip().is_loopback() {
                if token.reveal().len() < setup::LONG_TOKEN {
                    return Err(Fault::configuration(format!(
                        "the token in `{TOKEN_VARIABLE}` can be guessed, and other machines can reach \
                         the server"
                    ))
                    .hint("use one of `openssl rand -hex 32`, or listen on 127.0.0.1"));
                }
                output::warn(
                    "the connection is not encrypted: let others connect through a proxy that \
                     adds TLS",
                );
            }
            Ok(ServerToken { token, in_link: false })
        }
        None if listen.ip().is_loopback() => kept(),
        None => Err(Fault::configuration(format!(
            "a server that other machines can reach needs your own token: {listen}"
        ))
        .hint(format!("set `{TOKEN_VARIABLE}`, or listen on 127.0.0.1"))),
    }
}

/// Returns the token that an earlier start saved. If there is none, generates and prints a new
/// token, and saves it if the user has a state folder. A later start shows the token only on a
/// terminal, because logs are kept and read by others.
fn kept() -> Result<ServerToken, Fault> {
    let Some(path) = Places::of_user().state.map(|folder| folder.join("token")) else {
        let token = Token::generate().map_err(Fault::failed)?;
        output::note(&format!("token: {} {}", token.reveal(), paint(DIM, "(for this start only)")));
        return Ok(ServerToken { token, in_link: true });
    };
    let failed = |what: &str, why: &str| {
        Fault::configuration(format!("failed to {what} the token `{}`: {why}", path.display()))
            .hint(format!("set `{TOKEN_VARIABLE}`, or remove that file to have a new token made"))
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            output::aside(&format!("token: as in {}", path.display()));
            let token = Token::new(&text).map_err(|error| failed("use", &error.to_string()))?;
            // The token may have been replaced by one that is not valid in an address.
            let is_plain = token.reveal().bytes().all(|byte| byte.is_ascii_alphanumeric());
            let in_link = is_plain && std::io::stderr().is_terminal();
            return Ok(ServerToken { token, in_link });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", &error.to_string())),
    }
    let token = Token::generate().map_err(Fault::failed)?;
    create_private(&path, token.reveal()).map_err(|error| {
        // Another start would refuse a file without a whole token, for example after a full disk.
        if error.kind() != ErrorKind::AlreadyExists {
            drop(std::fs::remove_file(&path));
        }
        failed("write", &error.to_string())
    })?;
    output::note(&format!(
        "token: {} {}",
        token.reveal(),
        paint(DIM, &format!("(saved in {})", path.display()))
    ));
    Ok(ServerToken { token, in_link: true })
}

/// Writes a file that only the user can read.
fn create_private(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        wattle_agent::host::create_folder(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Waits for an interrupt or a termination signal. Waits forever if the process cannot receive
/// these signals.
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        },
        _ => std::future::pending().await,
    }
}
