//! Detection of processes on this machine that are still running.

/// The identity of a process: the boot id of its machine, its process id, and its start time.
/// Values that the system does not provide are empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holder {
    boot: String,
    pid: String,
    start_time: String,
}

impl Holder {
    /// Returns the identity of this process.
    pub(super) fn me() -> Holder {
        let pid = std::process::id().to_string();
        let start_time = if let Process::Running(start_time) = Process::of(&pid) {
            start_time
        } else {
            String::new()
        };
        Holder { boot: boot(), start_time, pid }
    }

    /// Parses a holder from the first three words of `text`.
    pub(super) fn of(text: &str) -> Holder {
        let mut parts = text.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Holder { boot: next(), pid: next(), start_time: next() }
    }

    /// Returns true if the machine was restarted since the process started, or if the process is on
    /// another machine.
    pub(super) fn is_of_another_boot(&self, me: &Holder) -> bool {
        !me.boot.is_empty() && self.boot != me.boot
    }

    pub(super) fn text(&self) -> String {
        format!("{} {} {}", self.boot, self.pid, self.start_time)
    }

    /// Returns true if the process is running. If the system does not provide this information, the
    /// process counts as running unless `has_expired` is true, that is, unless its heartbeats are
    /// overdue.
    pub(super) fn is_alive(&self, me: &Holder, has_expired: bool) -> bool {
        if me.boot.is_empty() || me.start_time.is_empty() {
            return !has_expired;
        }
        self.boot == me.boot
            && match Process::of(&self.pid) {
                Process::Running(start_time) => start_time == self.start_time,
                Process::Hidden => !has_expired,
                Process::Ended => false,
            }
    }
}

/// Returns the boot id of the machine, or an empty string if the system does not provide it.
pub(super) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The state of a process, as reported by the operating system.
#[derive(Debug, PartialEq, Eq)]
enum Process {
    /// The process is running. Its start time is given in clock ticks since boot.
    Running(String),
    /// The process is running, but the current process may not read its start time.
    Hidden,
    /// The process has ended.
    Ended,
}

impl Process {
    fn of(pid: &str) -> Process {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => Process::start_time(&stat).map_or(Process::Ended, Process::Running),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Process::Hidden,
            Err(_) => Process::Ended,
        }
    }

    /// Parses the start time of a process from the content of its `/proc/PID/stat` file. It is the
    /// twentieth field after the process's name, which ends with the last `)`. Returns `None` for a
    /// zombie, which has already ended.
    fn start_time(stat: &str) -> Option<String> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        (state != "Z" && state != "X").then(|| fields.nth(18).map(str::to_owned)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locks_of_a_process_that_ended_are_free() {
        let me = Holder::me();
        let other = |boot: &str, pid: &str, start_time: &str| Holder {
            boot: boot.to_owned(),
            pid: pid.to_owned(),
            start_time: start_time.to_owned(),
        };
        assert_eq!(Holder::of(&format!("{} x", me.text())), me);
        assert!(me.is_alive(&me, true));
        if !me.boot.is_empty() {
            assert!(
                !other(&me.boot, &me.pid, "1").is_alive(&me, false),
                "another process had that number"
            );
            assert!(!other("another-boot", &me.pid, &me.start_time).is_alive(&me, false));
            assert!(!other(&me.boot, "999999999", &me.start_time).is_alive(&me, false));
        }
        let blind = other("", "1", "");
        assert!(me.is_alive(&blind, false));
        assert!(!me.is_alive(&blind, true));
    }
}
