//! Protects old data from a clock that is wrong.
//!
//! Data is removed by its age. If the clock were ahead by more than the time for which data is kept,
//! all of it would be too old at once. Therefore the store remembers the last time that it trusts,
//! together with the uptime of the machine at that time:
//!
//! ```text
//! store(seen_time, seen_boot, seen_uptime, ahead_time, ahead_boot, ahead_uptime)
//!        └─ the last trusted time           └─ the first time that was too far ahead of it
//! ```
//!
//! A later time is trusted if the uptime has grown as much, since the uptime goes on while the
//! machine sleeps and does not depend on the date. After a reboot, and on another machine, the
//! uptime says nothing, so a gap of three days is trusted. Any other time is *ahead*: nothing is
//! removed until it has gone on for a day, according to the uptime, or until a person removes old
//! data with `wattle prune`. A wrong clock is usually corrected within minutes.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::db::{Row, Transaction, params};
use super::process;
use crate::error::Cause;

/// Maximum difference between the growth of the time and of the uptime, in milliseconds: five
/// minutes. Clocks are corrected in small steps.
const TOLERANCE_MS: i64 = 5 * 60 * 1_000;
/// Maximum gap that is trusted if the uptime says nothing, in milliseconds: three days.
const GAP_MS: i64 = 3 * DAY_MS;
/// Uptime after which a time that was ahead is trusted, in milliseconds.
const STEADY_MS: i64 = DAY_MS;
const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// Uptime for which a process remembers that a time was trusted, in milliseconds: ten minutes.
const FRESH_MS: i64 = 10 * 60 * 1_000;

/// A time, with the uptime of a machine at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    /// The database's time, in milliseconds since 1970.
    time: i64,
    /// The id of the machine's boot, or an empty string if it is unknown.
    boot: String,
    /// The time since that boot, in milliseconds, including the time for which the machine slept.
    uptime: i64,
}

impl Moment {
    /// Returns the current moment, at the database's time `time`.
    fn now(time: i64) -> Moment {
        static BOOT: OnceLock<String> = OnceLock::new();
        let (boot, uptime) = (BOOT.get_or_init(process::boot).clone(), uptime_ms());
        Moment { time, boot, uptime }
    }

    /// Returns the time that passed since `earlier` according to the uptime, or `None` if the
    /// uptimes cannot be compared.
    fn passed_since(&self, earlier: &Moment) -> Option<i64> {
        let is_same = !self.boot.is_empty() && self.boot == earlier.boot;
        is_same.then(|| self.uptime.saturating_sub(earlier.uptime))
    }

    /// Returns true if the time is later than `earlier` by more than can have passed.
    fn is_ahead_of(&self, earlier: &Moment) -> bool {
        let gap = self.time.saturating_sub(earlier.time);
        match self.passed_since(earlier) {
            Some(passed) => gap.saturating_sub(passed) > TOLERANCE_MS,
            None => gap > GAP_MS,
        }
    }

    /// Returns true if the time has gone on like the uptime since `earlier`, for a day.
    fn is_steady_since(&self, earlier: &Moment) -> bool {
        let gap = self.time.saturating_sub(earlier.time);
        self.passed_since(earlier).is_some_and(|passed| {
            passed >= STEADY_MS && gap.abs_diff(passed) <= TOLERANCE_MS.unsigned_abs()
        })
    }
}

/// Returns the machine's uptime in milliseconds, including the time for which it slept.
fn uptime_ms() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

/// The moments that a store remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// The last trusted moment, or `None` if the store contains no data yet.
    seen: Option<Moment>,
    /// The first moment that was too far ahead of `seen`, if the last one was, too.
    ahead: Option<Moment>,
}

/// The judgement of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judged {
    /// The moment is trusted.
    Trusted,
    /// The moment is trusted, because the clock has been steady for a day.
    Confirmed,
    /// The moment is ahead, as earlier ones were.
    StillAhead,
    /// The moment is ahead, and earlier ones were not.
    Ahead,
}

impl Known {
    fn judge(&self, now: &Moment) -> Judged {
        match (&self.seen, &self.ahead) {
            (None, _) => Judged::Trusted,
            (Some(seen), _) if !now.is_ahead_of(seen) => Judged::Trusted,
            (_, Some(ahead)) if now.is_steady_since(ahead) => Judged::Confirmed,
            (_, Some(ahead)) if !now.is_ahead_of(ahead) && ahead.time <= now.time => {
                Judged::StillAhead
            }
            _ => Judged::Ahead,
        }
    }
}

/// The clock of a store, as far as it decides what is too old.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The last moment that this process found to be trusted.
    trusted: Mutex<Option<Moment>>,
}

impl Clock {
    /// Returns true if the time of a write transaction is trusted, so that old data can be removed.
    /// If it is not, logs a warning when that is noticed first.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub(super) fn is_trusted(&self, transaction: &mut Transaction<'_>) -> Result<bool, Cause> {
        let now = Moment::now(transaction.now());
        if self.trusted().as_ref().is_some_and(|trusted| is_fresh(trusted, &now)) {
            return Ok(true);
        }
        let known = known(transaction)?;
        let judged = known.judge(&now);
        match (&judged, &known.seen) {
            (Judged::StillAhead, _) => return Ok(false),
            (Judged::Ahead, Some(seen)) => {
                write(transaction, "ahead", &now)?;
                tracing::warn!(
                    now = %date(now.time),
                    last_seen = %date(seen.time),
                    "the clock is ahead of the time that can have passed, so nothing is removed by \
                     its age until the clock has been steady for a day; correct the clock, or \
                     confirm it with `wattle prune`"
                );
                return Ok(false);
            }
            (Judged::Confirmed, _) => {
                tracing::warn!(now = %date(now.time), "the clock has been steady for a day");
            }
            (_, Some(seen)) if seen.time.saturating_sub(now.time) > TOLERANCE_MS => {
                tracing::warn!(
                    now = %date(now.time),
                    last_seen = %date(seen.time),
                    "the clock went back; recent data is kept for longer"
                );
            }
            _ => {}
        }
        self.trust(transaction, now)?;
        Ok(true)
    }

    /// Trusts the time of a write transaction, because a person confirmed it.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(super) fn confirm(&self, transaction: &mut Transaction<'_>) -> Result<(), Cause> {
        self.trust(transaction, Moment::now(transaction.now()))
    }

    fn trust(&self, transaction: &mut Transaction<'_>, now: Moment) -> Result<(), Cause> {
        write(transaction, "seen", &now)?;
        transaction.execute("UPDATE store SET ahead_time = NULL", &[])?;
        *self.trusted() = Some(now);
        Ok(())
    }

    fn trusted(&self) -> std::sync::MutexGuard<'_, Option<Moment>> {
        self.trusted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `now` follows from a recent trusted moment, so that the store need not be read.
fn is_fresh(trusted: &Moment, now: &Moment) -> bool {
    let gap = now.time.saturating_sub(trusted.time);
    // Both are moments of this process, so the uptimes can be compared even if the boot is unknown.
    let passed = now.uptime.saturating_sub(trusted.uptime);
    passed < FRESH_MS && gap.abs_diff(passed) <= TOLERANCE_MS.unsigned_abs()
}

/// Reads the moments that the store remembers. A store of an older version remembers none, so the
/// last change of its data takes their place.
fn known(transaction: &mut Transaction<'_>) -> Result<Known, Cause> {
    let query = "SELECT seen_time, seen_boot, seen_uptime, ahead_time, ahead_boot, ahead_uptime
                 FROM store";
    let row = transaction.one(query, &[])?;
    let known = Known { seen: moment(&row, 0)?, ahead: moment(&row, 3)? };
    if known.seen.is_some() {
        return Ok(known);
    }
    let newest = "SELECT MAX(used) FROM (SELECT MAX(used) AS used FROM run
                  UNION ALL SELECT MAX(used) AS used FROM session) AS newest";
    let newest: Option<i64> = transaction.one(newest, &[])?.get(0)?;
    let seen = newest.map(|time| Moment { time, boot: String::new(), uptime: 0 });
    Ok(Known { seen, ..known })
}

/// Reads a moment from three columns of a row, or `None` if they are not set.
fn moment(row: &Row, at: usize) -> Result<Option<Moment>, Cause> {
    let Some(time) = row.get(at)? else { return Ok(None) };
    Ok(Some(Moment { time, boot: row.get(at + 1)?, uptime: row.get(at + 2)? }))
}

/// Writes the moment `seen` or `ahead`.
fn write(transaction: &mut Transaction<'_>, which: &str, moment: &Moment) -> Result<(), Cause> {
    let update =
        format!("UPDATE store SET {which}_time = ?1, {which}_boot = ?2, {which}_uptime = ?3");
    transaction.execute(&update, params![moment.time, moment.boot, moment.uptime])?;
    Ok(())
}

/// Returns a time as a date for a log.
pub(super) fn date(ms: i64) -> String {
    let time = std::time::Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600 * 1_000;

    fn moment(time: i64, boot: &str, uptime: i64) -> Moment {
        Moment { time, boot: boot.to_owned(), uptime }
    }

    fn judge(seen: &Moment, ahead: Option<&Moment>, now: &Moment) -> Judged {
        Known { seen: Some(seen.clone()), ahead: ahead.cloned() }.judge(now)
    }

    #[test]
    fn a_time_is_trusted_if_the_uptime_has_grown_as_much() {
        let seen = moment(50 * DAY_MS, "a", HOUR_MS);
        // The process was stopped, or the machine slept, for 40 days.
        let later = moment(90 * DAY_MS, "a", HOUR_MS + 40 * DAY_MS);
        assert_eq!(judge(&seen, None, &later), Judged::Trusted);
        for jump in [2 * HOUR_MS, 40 * DAY_MS] {
            let wrong = moment(seen.time + jump, "a", seen.uptime + 1);
            assert_eq!(judge(&seen, None, &wrong), Judged::Ahead, "{jump}");
        }
        let back = moment(10 * DAY_MS, "a", 2 * HOUR_MS);
        assert_eq!(judge(&seen, None, &back), Judged::Trusted);
    }

    #[test]
    fn after_a_reboot_a_gap_of_three_days_is_trusted() {
        let seen = moment(50 * DAY_MS, "a", HOUR_MS);
        assert_eq!(judge(&seen, None, &moment(52 * DAY_MS, "b", 1)), Judged::Trusted);
        assert_eq!(judge(&seen, None, &moment(54 * DAY_MS, "b", 1)), Judged::Ahead);
        assert_eq!(judge(&seen, None, &moment(54 * DAY_MS, "", 1)), Judged::Ahead);
    }

    #[test]
    fn a_clock_that_is_ahead_is_trusted_after_a_steady_day_of_one_boot() {
        let (seen, ahead) = (moment(0, "a", 0), moment(40 * DAY_MS, "a", HOUR_MS));
        let after = |time: i64, boot: &str, uptime: i64| {
            let now = moment(ahead.time + time, boot, ahead.uptime + uptime);
            judge(&seen, Some(&ahead), &now)
        };
        assert_eq!(after(HOUR_MS, "a", HOUR_MS), Judged::StillAhead);
        assert_eq!(after(DAY_MS, "a", DAY_MS), Judged::Confirmed);
        // The clock jumped again, or another boot began.
        assert_eq!(after(9 * DAY_MS, "a", DAY_MS), Judged::Ahead);
        assert_eq!(after(-DAY_MS, "a", DAY_MS), Judged::Ahead);
        assert_eq!(after(9 * DAY_MS, "b", DAY_MS), Judged::Ahead);
    }
}
