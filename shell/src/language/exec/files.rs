//! The operators that `test` and `[[ ]]` share: tests of files, strings and numbers.

use wattle_capability::files::{EntryKind, Stat};

use crate::language::interpreter::Interpreter;
use crate::language::setting::split_index;
use crate::stream::Device;

/// Compares two numbers with an operator such as `-lt`.
pub(crate) fn compare_numbers(left: i64, operator: &str, right: i64) -> bool {
    match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        _ => left >= right,
    }
}

impl Interpreter {
    /// Returns the metadata of the file or folder at a path, following symbolic links, or `None` if
    /// nothing exists there.
    pub(crate) async fn stat(&self, path: &str) -> Option<Stat> {
        if path.is_empty() {
            return None;
        }
        let path = self.path(path);
        self.on_files(move |files| Ok(files.stat(&path)?)).await.ok()
    }

    async fn stat_link(&self, path: &str) -> Option<Stat> {
        let path = self.path(path);
        self.on_files(move |files| Ok(files.stat_link(&path)?)).await.ok()
    }

    /// Evaluates a unary operator such as `-f`.
    pub(crate) async fn unary(&mut self, operator: &str, text: &str) -> Result<bool, String> {
        match operator {
            "-n" => return Ok(!text.is_empty()),
            "-z" => return Ok(text.is_empty()),
            "-v" => {
                return match split_index(text) {
                    (name, Some("@" | "*")) => Ok(!self.list_of(name).is_empty()),
                    (name, Some(index)) => Ok(self.element(name, index)?.is_some()),
                    (name, None) => Ok(self.value(name).is_some()),
                };
            }
            "-R" => {
                return Ok(self
                    .variables
                    .get_itself(text)
                    .is_some_and(|variable| variable.reference));
            }
            "-o" => return Ok(self.option(text).unwrap_or(false)),
            // No descriptor of a run is a terminal.
            "-t" => return Ok(false),
            _ => {}
        }
        let device = Device::from_path(&self.path(text)).filter(|_| !text.is_empty());
        if let Some(device) = device {
            return Ok(match operator {
                "-e" | "-a" | "-r" | "-w" => device != Device::Other,
                "-c" => device != Device::Other,
                _ => false,
            });
        }
        let kind = if matches!(operator, "-L" | "-h") {
            self.stat_link(text).await
        } else {
            self.stat(text).await
        };
        Ok(match (operator, kind) {
            (_, None) => false,
            ("-e" | "-a" | "-r" | "-w" | "-O" | "-G" | "-N", Some(_)) => true,
            ("-f", Some(stat)) => stat.kind == EntryKind::File,
            ("-d", Some(stat)) => stat.kind == EntryKind::Folder,
            ("-x", Some(_)) => true,
            ("-L" | "-h", Some(stat)) => stat.kind == EntryKind::Link,
            ("-s", Some(stat)) => stat.size > 0 || stat.kind == EntryKind::Folder,
            ("-b" | "-c" | "-p" | "-S" | "-g" | "-u" | "-k", Some(_)) => false,
            (operator, _) => return Err(format!("{operator}: unary operator expected")),
        })
    }

    /// Evaluates a binary operator such as `=` or `-nt`. Numbers must be decimal.
    pub(crate) async fn binary(
        &mut self,
        left: &str,
        operator: &str,
        right: &str,
    ) -> Result<bool, String> {
        match operator {
            "=" | "==" => Ok(left == right),
            "!=" => Ok(left != right),
            "<" => Ok(left < right),
            ">" => Ok(left > right),
            "-nt" | "-ot" => {
                let (left, right) = (self.stat(left).await, self.stat(right).await);
                let (newer, older) = if operator == "-nt" { (left, right) } else { (right, left) };
                Ok(match (newer, older) {
                    (Some(newer), Some(older)) => newer.modified > older.modified,
                    (Some(_), None) => true,
                    _ => false,
                })
            }
            "-ef" => {
                let (left, right) = (self.path(left), self.path(right));
                let same = self
                    .on_files(move |files| {
                        Ok(files.stat(&left).is_ok()
                            && files.real_path(&left)? == files.real_path(&right)?)
                    })
                    .await;
                Ok(same.unwrap_or(false))
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let number = |text: &str| {
                    text.trim()
                        .trim_start_matches('+')
                        .parse::<i64>()
                        .map_err(|_| format!("{text}: integer expression expected"))
                };
                Ok(compare_numbers(number(left)?, operator, number(right)?))
            }
            operator => Err(format!("{operator}: binary operator expected")),
        }
    }
}
