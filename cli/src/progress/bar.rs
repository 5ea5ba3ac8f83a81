//! A progress bar for work whose length is known.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::output::width::layout;
use crate::output::{clear_transient, transient};

/// Maximum width of the bar itself, in columns.
const MOST: usize = 30;
/// Number of columns reserved for the rest of the line.
const TEXT: usize = 40;

/// A progress bar below all other output. It disappears when it is dropped. If stderr is not a
/// terminal, there is no bar.
pub(crate) struct Bar {
    total: usize,
    noun: &'static str,
    begun: Instant,
    done: Mutex<usize>,
}

impl Bar {
    /// Shows a bar for work that has `total` parts. `noun` is the plural name of the parts, such as
    /// `tasks`.
    pub(crate) fn new(total: usize, noun: &'static str) -> Bar {
        let bar = Bar { total, noun, begun: Instant::now(), done: Mutex::new(0) };
        bar.show(0);
        bar
    }

    /// Counts a finished part.
    pub(crate) fn step(&self) {
        // Parts that finish at the same time are shown in order.
        let mut done = self.done.lock();
        *done += 1;
        self.show(*done);
    }

    /// Sets the number of finished parts.
    pub(crate) fn set(&self, count: usize) {
        let mut done = self.done.lock();
        *done = count;
        self.show(count);
    }

    fn show(&self, done: usize) {
        let columns = layout().saturating_sub(TEXT).min(MOST);
        transient(&line((done, self.total), self.noun, self.begun.elapsed(), columns));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        clear_transient();
    }
}

/// Renders a bar that is `columns` columns wide, followed by the number of finished parts, the
/// total number of parts, and the elapsed seconds.
fn line((done, total): (usize, usize), noun: &str, elapsed: Duration, columns: usize) -> String {
    // More parts may be finished than were announced.
    let total = total.max(done);
    let filled = (columns * done).checked_div(total).unwrap_or(columns);
    let bar = "█".repeat(filled) + &"░".repeat(columns - filled);
    format!("  {bar} {done} of {total} {noun} · {} s", elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(done: usize, total: usize, columns: usize) -> String {
        line((done, total), "tasks", Duration::from_millis(2_900), columns)
    }

    #[test]
    fn the_bar_is_filled_in_proportion() {
        assert_eq!(shown(0, 8, 4), "  ░░░░ 0 of 8 tasks · 2 s");
        assert_eq!(shown(3, 8, 4), "  █░░░ 3 of 8 tasks · 2 s");
        assert_eq!(shown(8, 8, 4), "  ████ 8 of 8 tasks · 2 s");
        assert_eq!(shown(9, 8, 4), "  ████ 9 of 9 tasks · 2 s");
        assert_eq!(shown(0, 0, 4), "  ████ 0 of 0 tasks · 2 s");
        assert_eq!(shown(1, 2, 0), "   1 of 2 tasks · 2 s");
    }
}
