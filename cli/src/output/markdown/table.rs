//! The layout of tables.

use pulldown_cmark::Alignment;

use super::wrap::{Line, Span, line_width, wrap};
use crate::output::DIM;

/// Minimum width of a table column, in terminal columns.
const LEAST: usize = 4;

/// A table that is being read. The first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new() }
    }

    /// Begins a row.
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn cell(&mut self, cell: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Returns the lines of the table. Cells are wrapped if the table would otherwise be too wide.
    pub(super) fn lines(&self, columns: usize) -> Vec<Line> {
        let widths = self.widths(columns);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, &widths));
            if at == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(vec![Span::styled(rules.join("─┼─"), DIM)]);
            }
        }
        lines
    }

    /// Returns the widths of the columns. The widest columns are narrowed until the table fits.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.alignments.len();
        let of = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(line_width).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(of).collect();
        let bars = count.saturating_sub(1) * 3;
        while widths.iter().sum::<usize>() + bars > columns {
            match widths.iter_mut().max().filter(|widest| **widest > LEAST) {
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
        widths
    }

    fn row(&self, row: &[Line], widths: &[usize]) -> Vec<Line> {
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| row.get(at).map(|cell| wrap(cell, *width)).unwrap_or_default())
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|at| self.line(&cells, widths, at)).collect()
    }

    fn line(&self, cells: &[Vec<Line>], widths: &[usize], at: usize) -> Line {
        let mut line = Line::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let part = cell.get(at).cloned().unwrap_or_default();
            let space = width.saturating_sub(line_width(&part));
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => space,
                Some(Alignment::Center) => space / 2,
                _ => 0,
            };
            if column > 0 {
                line.push(Span::styled(" │ ", DIM));
            }
            line.push(Span::plain(" ".repeat(before)));
            line.extend(part);
            // Trailing spaces would only disturb copying.
            if column + 1 < widths.len() {
                line.push(Span::plain(" ".repeat(space - before)));
            }
        }
        line
    }
}
