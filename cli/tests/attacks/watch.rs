//! A watcher that checks the memory, processes and run time of the whole process tree.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::format::Bounds;

/// Interval between two checks of the process tree.
const EVERY: Duration = Duration::from_millis(15);

/// A watcher that kills all descendants of this process if they exceed the bounds.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    watching: JoinHandle<Seen>,
}

#[derive(Default)]
struct Seen {
    peak_mb: u64,
    names: BTreeSet<String>,
    killed: Option<String>,
}

impl Watch {
    pub(crate) fn start(bounds: &Bounds) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, bounds) = (Arc::clone(&stop), bounds.clone());
        let watching = std::thread::spawn(move || {
            let (begun, mut seen) = (Instant::now(), Seen::default());
            while !stopped.load(Ordering::Relaxed) {
                look(&bounds, begun, &mut seen);
                std::thread::sleep(EVERY);
            }
            seen
        });
        Watch { stop, watching }
    }

    /// Stops watching. Returns the exceeded bounds and the unexpected processes.
    pub(crate) fn end(self, bounds: &Bounds) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.watching.join().unwrap();
        let mut faults: Vec<String> = seen.killed.into_iter().collect();
        if faults.is_empty() && seen.peak_mb > bounds.memory_mb {
            faults.push(format!("used {} MB, more than {}", seen.peak_mb, bounds.memory_mb));
        }
        let strange = seen.names.iter().filter(|name| !bounds.processes.contains(name));
        faults.extend(strange.map(|name| format!("started the process `{name}`")));
        faults
    }
}

fn look(bounds: &Bounds, begun: Instant, seen: &mut Seen) {
    let tree = tree(std::process::id());
    let (mut now, mut highest) = (0, 0);
    // A fork of this process shares the memory of this process until the fork executes another
    // program, so forks are not counted.
    for process in tree.iter().filter(|process| !process.is_fork) {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap_or_default();
        now += kilobytes(&status, "VmRSS:");
        highest = highest.max(kilobytes(&status, "VmHWM:"));
        if process.name != "wattle" && process.is_started {
            seen.names.insert(process.name.clone());
        }
    }
    seen.peak_mb = seen.peak_mb.max(now.max(highest) / 1024);
    let why = if seen.peak_mb > 2 * bounds.memory_mb {
        format!("used {} MB, more than {}, and was killed", seen.peak_mb, bounds.memory_mb)
    } else if begun.elapsed() > Duration::from_secs(bounds.seconds) {
        format!("ran for more than {} s, and was killed", bounds.seconds)
    } else {
        return;
    };
    for process in tree {
        let _ =
            std::process::Command::new("kill").args(["-KILL", &process.pid.to_string()]).status();
    }
    seen.killed.get_or_insert(why);
}

struct Process {
    pid: u32,
    parent: u32,
    name: String,
    /// If true, the process is a fork of the test process and has not executed its program yet.
    is_fork: bool,
    /// If true, the program of the process is known and is not the `kill` command run by the
    /// watcher.
    is_started: bool,
}

/// Returns all descendants of a process.
fn tree(top: u32) -> Vec<Process> {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<Process> = entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // The executable is read before the name, because a fork of this process may start its
            // program in between.
            let exe = std::fs::read_link(entry.path().join("exe")).ok();
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
            let mut fields = fields.split_ascii_whitespace();
            let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
            let is_fork = exe.is_some() && exe == own;
            let is_started = exe.is_some() && !is_fork && name != "kill";
            let name = name.to_owned();
            (state != "Z").then_some(Process { pid, parent, name, is_fork, is_started })
        })
        .collect();
    let (mut below, mut tree) = (BTreeSet::from([top]), Vec::new());
    loop {
        let (children, others): (Vec<Process>, Vec<Process>) =
            all.into_iter().partition(|process| below.contains(&process.parent));
        if children.is_empty() {
            return tree;
        }
        below.extend(children.iter().map(|process| process.pid));
        tree.extend(children);
        all = others;
    }
}

fn kilobytes(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}
