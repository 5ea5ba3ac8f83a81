//! Tests of several servers that share a store in PostgreSQL. At random times, servers are killed,
//! paused, stopped, drained, or cut off from the database, and the database itself is restarted or
//! crashes. Every accepted run ends exactly once, its stream contains each event once, no effect is
//! repeated, and the ledger can be verified.
//!
//! `WATTLE_TEST_RUNS` sets the number of runs, `WATTLE_TEST_MOMENTS` the number of disturbances,
//! and `WATTLE_TEST_SEED` their order.

#![allow(clippy::panic, clippy::print_stdout, reason = "the test prints its counts")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use wattle_tests::provider::{Answer, Provider, Recorded};
use wattle_tests::proxy::Proxy;

use crate::place::Place;

/// Default number of runs.
const RUNS: usize = 200;
/// Number of servers.
const SERVERS: usize = 3;
/// Default number of disturbances.
const MOMENTS: usize = 60;
/// The period over which the runs are started.
const STARTING: Duration = Duration::from_secs(60);
/// Duration for which a server is paused. It exceeds the lease, so another server can take over.
const PAUSE: Duration = Duration::from_secs(20);
/// Maximum time to wait for all runs to end.
const PATIENCE: Duration = Duration::from_secs(240);
const TOKEN: &str = "a-token-of-the-test-0123456789abcdef";

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A server in the test.
struct Replica {
    child: Child,
    port: u16,
}

/// A disturbance of a server or the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Kill,
    Pause,
    Stop,
    Drain,
    Cut,
    Stall,
    RestartDatabase,
    CrashDatabase,
}

impl Moment {
    const ALL: [Moment; 8] = [
        Moment::Kill,
        Moment::Pause,
        Moment::Stop,
        Moment::Drain,
        Moment::Cut,
        Moment::Stall,
        Moment::RestartDatabase,
        Moment::CrashDatabase,
    ];

    /// Returns the duration of the disturbance, or `None` if it is instantaneous.
    fn duration(self, random: &mut fastrand::Rng) -> Option<Duration> {
        match self {
            Moment::Pause => Some(PAUSE),
            Moment::Cut | Moment::Stall => Some(Duration::from_millis(random.u64(500..20_000))),
            _ => None,
        }
    }
}

/// The state that all threads of the test share.
struct World {
    place: Place,
    schema: String,
    /// The proxy between each server and the database.
    proxies: [Proxy; SERVERS],
    provider: Provider,
    /// The port of each server, or 0 if the server is not running.
    ports: [AtomicU16; SERVERS],
}

impl World {
    /// Starts a server. Tries again if the server fails because the database is down.
    fn start(&self, at: usize) -> Replica {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_start(at) {
                Ok(replica) => return replica,
                Err(seen) => assert!(Instant::now() < deadline, "no server: {seen:?}"),
            }
        }
    }

    fn try_start(&self, at: usize) -> Result<Replica, Vec<String>> {
        let args = ["serve", "--listen", "127.0.0.1:0", "--model", "m"];
        let mut child = self
            .place
            .wattle(args)
            .env("WATTLE_STORE", self.url(at))
            .env("WATTLE_BASE_URL", self.provider.base_url())
            .env("WATTLE_ALLOW_HOST", self.provider.host())
            .env("WATTLE_API_KEY", "sk-test")
            .env("WATTLE_TOKEN", TOKEN)
            .start();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        let port = loop {
            let Some(Ok(line)) = lines.next() else {
                child.wait().unwrap();
                return Err(seen);
            };
            if let Some((_, port)) = line.split_once("listening on http://127.0.0.1:") {
                break port.trim().parse().unwrap();
            }
            seen.push(line);
        };
        // The log is drained so that the server never blocks on writing it.
        thread::spawn(move || lines.for_each(drop));
        Ok(Replica { child, port })
    }

    /// Returns the URL at which a server reaches the store, through the server's proxy.
    fn url(&self, at: usize) -> String {
        let (port, schema) = (self.proxies[at].port, &self.schema);
        format!("postgres://wattle@127.0.0.1:{port}/postgres?sslmode=disable&schema={schema}")
    }

    /// Starts a run whose program posts a form. Returns the ids of the run and the form. Each
    /// attempt uses a new form, because a request without a response may have started a run.
    fn post(&self, random: &mut fastrand::Rng, number: usize) -> (String, String) {
        let deadline = Instant::now() + PATIENCE;
        for attempt in 0.. {
            let form = format!("{number}-{attempt}");
            let prompt = format!("post to {}/form/{form} please", self.provider.base_url());
            let body = json!({"prompt": prompt});
            let answer = request(self.port(random), "POST", "/api/run", Some(&body));
            if let Some((202, text)) = &answer {
                let started: Json = serde_json::from_str(text).unwrap();
                return (started["id"].as_str().unwrap().to_owned(), form);
            }
            assert!(Instant::now() < deadline, "{answer:?}");
            sleep(Duration::from_millis(100));
        }
        unreachable!("there is no last attempt")
    }

    /// Returns the port of a running server.
    fn port(&self, random: &mut fastrand::Rng) -> u16 {
        loop {
            match self.ports[random.usize(..SERVERS)].load(Ordering::SeqCst) {
                0 => sleep(Duration::from_millis(20)),
                port => return port,
            }
        }
    }

    /// Sends a request to random servers until one responds with a status below 400.
    fn ask(&self, random: &mut fastrand::Rng, method: &str, path: &str, body: &Json) -> Json {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let port = self.port(random);
            let last = request(port, method, path, Some(body));
            if let Some((status, text)) = &last
                && *status < 400
            {
                return serde_json::from_str(text).unwrap_or(Json::Null);
            }
            assert!(Instant::now() < deadline, "{method} {path}: {last:?}");
            sleep(Duration::from_millis(100));
        }
    }
}

fn connect(port: u16, method: &str, path: &str, body: Option<&Json>) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let body = body.map(Json::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    Some(stream)
}

/// Sends a request. Returns the status and the body, or `None` if the server does not respond.
fn request(port: u16, method: &str, path: &str, body: Option<&Json>) -> Option<(u16, String)> {
    let mut text = String::new();
    connect(port, method, path, body)?.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

/// Follows a run to its last event, switching between servers. Returns the numbers of its events.
fn follow(world: &World, run: &str, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut seen: Vec<u64> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let after = seen.last().copied().unwrap_or(0);
        let path = format!("/api/run/{run}/stream?after={after}");
        let Some(stream) = connect(world.port(&mut random), "GET", &path, None) else {
            sleep(Duration::from_millis(50));
            continue;
        };
        let (mut id, mut is_last) = (None, false);
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            if let Some(text) = line.strip_prefix("id:") {
                id = text.trim().parse().ok();
            } else if let Some(text) = line.strip_prefix("data:") {
                let event: Json = serde_json::from_str(text).unwrap_or_default();
                is_last = event["type"] == "response" || event["type"] == "error";
            } else if line.is_empty()
                && let Some(number) = id.take()
            {
                seen.push(number);
                if is_last {
                    return seen;
                }
            }
        }
        sleep(Duration::from_millis(50));
    }
    panic!("the run {run} has no last event: {seen:?}");
}

/// Starts a model provider. Its first answer in each run posts a form, and its second answer ends
/// the run.
fn provider() -> Provider {
    Provider::answering(|request: &Recorded| {
        if !request.path.ends_with("/chat/completions") {
            return Answer::body("thanks");
        }
        let body = request.json();
        let messages = body["messages"].as_array().unwrap();
        let spoken = messages.iter().filter(|message| message["role"] == "assistant").count();
        if spoken > 0 {
            let pause = Duration::from_millis(100);
            return Answer::text("ToolCall::Response(\"\"\"all done\"\"\")").pause(pause);
        }
        let asked = messages.iter().filter_map(|message| message["content"].as_str());
        let form = asked.filter_map(|text| text.split_once("post to ")).next_back().unwrap().1;
        let form = form.split_whitespace().next().unwrap();
        let program = format!("(resv (http.post? \"{form}\" \"a form\" \"\"))\n(i32.const 0)");
        Answer::text(format!("ToolCall::Wat(```wat\n{program}\n```)"))
            .pause(Duration::from_millis(300))
    })
}

fn signal(replica: &Replica, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(replica.child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The servers, with their current disturbances.
struct Disturbed {
    replicas: Vec<Replica>,
    lasting: [Option<(Moment, Instant)>; SERVERS],
}

impl Disturbed {
    /// Disturbs the servers and the database `moments` times. Returns how often each disturbance
    /// occurred.
    fn disturb(
        &mut self,
        world: &World,
        random: &mut fastrand::Rng,
        moments: usize,
    ) -> BTreeMap<Moment, usize> {
        let mut counts = BTreeMap::new();
        let mut done = 0;
        while done < moments || self.lasting.iter().any(Option::is_some) {
            sleep(Duration::from_millis(random.u64(200..1_500)));
            for at in 0..SERVERS {
                if self.lasting[at].is_some_and(|(_, until)| until <= Instant::now()) {
                    self.end(world, at);
                }
            }
            let (at, moment) = (random.usize(..SERVERS), Moment::ALL[random.usize(..8)]);
            // At least one server is always undisturbed.
            let others = self.lasting.iter().filter(|lasting| lasting.is_some()).count();
            let lasts = moment.duration(random);
            if done == moments || self.lasting[at].is_some() || (lasts.is_some() && others > 1) {
                continue;
            }
            self.begin(world, at, moment);
            self.lasting[at] = lasts.map(|duration| (moment, Instant::now() + duration));
            *counts.entry(moment).or_default() += 1;
            done += 1;
        }
        counts
    }

    fn begin(&mut self, world: &World, at: usize, moment: Moment) {
        match moment {
            Moment::Kill => self.replace(world, at, Signal::KILL),
            Moment::Stop => self.replace(world, at, Signal::TERM),
            Moment::Pause => {
                world.ports[at].store(0, Ordering::SeqCst);
                signal(&self.replicas[at], Signal::STOP);
            }
            Moment::Drain => {
                let drain = request(self.replicas[at].port, "POST", "/admin/drain", None);
                assert!(drain.is_none_or(|(status, _)| status == 202));
                sleep(Duration::from_millis(300));
                self.replace(world, at, Signal::KILL);
            }
            Moment::Cut => world.proxies[at].cut(),
            Moment::Stall => world.proxies[at].stall(),
            Moment::RestartDatabase => wattle_cases::postgres::restart(false),
            Moment::CrashDatabase => wattle_cases::postgres::restart(true),
        }
    }

    /// Ends the current disturbance of a server.
    fn end(&mut self, world: &World, at: usize) {
        if let Some((Moment::Pause, _)) = self.lasting[at].take() {
            signal(&self.replicas[at], Signal::CONT);
            world.ports[at].store(self.replicas[at].port, Ordering::SeqCst);
        }
        world.proxies[at].open();
    }

    /// Stops a server with a signal and starts another server in its slot.
    fn replace(&mut self, world: &World, at: usize, by: Signal) {
        world.ports[at].store(0, Ordering::SeqCst);
        signal(&self.replicas[at], by);
        self.replicas[at].child.wait().unwrap();
        self.replicas[at] = world.start(at);
        world.ports[at].store(self.replicas[at].port, Ordering::SeqCst);
    }
}

/// Waits until a run has ended. Releases the run each time it is parked because its servers were
/// killed. Returns the final state of the run and the number of releases.
fn wait_for_end(world: &World, random: &mut fastrand::Rng, run: &str) -> (Json, usize) {
    let (deadline, mut releases) = (Instant::now() + PATIENCE, 0);
    loop {
        let view = world.ask(random, "GET", &format!("/api/run/{run}"), &json!({}));
        match view["status"].as_str() {
            Some("queued" | "running") | None => {}
            Some("parked") => {
                // The request is not repeated at once, because it may have released the run even if
                // its response was lost.
                let path = format!("/api/run/{run}/release");
                let answer = request(world.port(random), "POST", &path, Some(&json!({})));
                releases += usize::from(answer.is_some_and(|(status, _)| status < 400));
            }
            Some(_) => return (view, releases),
        }
        assert!(Instant::now() < deadline, "the run does not end: {view}");
        sleep(Duration::from_millis(200));
    }
}

/// Starts runs over a period of time and follows some of them. Returns the id of the form that each
/// run posts, and the threads of the followers. Each thread returns the id of the run that it
/// follows and the numbers of the run's events.
#[expect(clippy::type_complexity, reason = "the results of a thread")]
fn start_runs(
    world: &Arc<World>,
    runs: usize,
    seed: u64,
) -> (BTreeMap<String, String>, Vec<thread::JoinHandle<(Vec<u64>, String)>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut accepted, mut followers) = (BTreeMap::new(), Vec::new());
    for number in 0..runs {
        let (run, form) = world.post(&mut random, number);
        accepted.insert(run.clone(), form);
        if number % 5 == 0 {
            let world = Arc::clone(world);
            followers.push(thread::spawn(move || (follow(&world, &run, number as u64), run)));
        }
        sleep(STARTING / (u32::try_from(runs).unwrap() + 1));
    }
    (accepted, followers)
}

/// Returns the number of times that each form was posted.
fn posts(world: &World) -> BTreeMap<String, usize> {
    let mut posts = BTreeMap::new();
    for request in world.provider.requests() {
        if let Some((_, form)) = request.path.split_once("/form/") {
            *posts.entry(form.to_owned()).or_default() += 1;
        }
    }
    posts
}

#[test]
#[ignore = "needs PostgreSQL"]
fn every_run_ends_once_whatever_happens_to_servers_and_database() {
    let url = wattle_cases::postgres::own_url().unwrap();
    let schema = url.rsplit_once("schema=").unwrap().1.to_owned();
    let socket = wattle_cases::postgres::socket().unwrap();
    let runs = usize::try_from(number("WATTLE_TEST_RUNS", RUNS as u64)).unwrap();
    let moments = usize::try_from(number("WATTLE_TEST_MOMENTS", MOMENTS as u64)).unwrap();
    let seed = number("WATTLE_TEST_SEED", 7);
    let (place, provider) = (Place::new(), provider());
    let ports = std::array::from_fn(|_| AtomicU16::new(0));
    let proxies = std::array::from_fn(|_| Proxy::start(socket.clone()));
    let world = Arc::new(World { place, schema, proxies, provider, ports });
    let replicas: Vec<Replica> = (0..SERVERS).map(|at| world.start(at)).collect();
    for (port, replica) in world.ports.iter().zip(&replicas) {
        port.store(replica.port, Ordering::SeqCst);
    }
    let began = Instant::now();
    let starting = thread::spawn({
        let world = Arc::clone(&world);
        move || start_runs(&world, runs, seed)
    });
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disturbed = Disturbed { replicas, lasting: [None; SERVERS] };
    let counts = disturbed.disturb(&world, &mut random, moments);
    let (accepted, followers) = starting.join().unwrap();
    let (mut releases, mut answered) = (0, 0);
    for run in accepted.keys() {
        let (view, released) = wait_for_end(&world, &mut random, run);
        releases += released;
        answered += usize::from(view["status"] == "done");
    }
    let mut events = 0;
    for follower in followers {
        let (seen, run) = follower.join().unwrap();
        let whole = follow(&world, &run, seed);
        assert_eq!(seen, whole, "{run}: a follower saw each event once, in order");
        events += seen.len();
    }
    let posts = posts(&world);
    let repeated: Vec<_> = posts.iter().filter(|(_, times)| **times > 1).collect();
    let posted = accepted.values().filter(|form| posts.contains_key(*form)).count();
    println!(
        "seed {seed}: {} runs on {SERVERS} servers, {:.0} s: {answered} answered, {posted} posted, \
         {releases} releases, {events} events followed; {counts:?}",
        accepted.len(),
        began.elapsed().as_secs_f32(),
    );
    assert_eq!(repeated, [], "an effect was repeated");
    assert_eq!((accepted.len(), answered), (runs, runs), "each accepted run has an answer");
    for mut replica in disturbed.replicas {
        signal(&replica, Signal::TERM);
        replica.child.wait().unwrap();
    }
    world.place.wattle(["ledger", "verify"]).env("WATTLE_STORE", world.url(0)).run().code(0);
}
