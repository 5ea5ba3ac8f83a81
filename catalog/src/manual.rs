//! The manual page of a program, generated from its front matter.

use std::fmt::Write as _;

use crate::argument::excerpt;
use crate::{AiAnswer, Entry, Example, Results, ShellAnswer};

impl Entry {
    /// Returns the program's manual page: its usage, description, arguments, results and examples.
    ///
    /// ```
    /// let catalog = wattle_catalog::Catalog::built_in();
    /// let page = catalog.get("http_get").expect("a built-in program").manual();
    /// assert!(page.starts_with("http_get(url: url)\n  Fetch a URL"));
    /// assert!(page.contains(
    ///     "  http_get(\"https://example.org/\") returns \"hello\" \
    ///      if GET https://example.org/ answers 200"
    /// ));
    /// ```
    #[must_use]
    pub fn manual(&self) -> String {
        let meta = self.meta();
        let mut page = format!("{}\n  {}\n", self.usage(), meta.description.trim());
        for arg in &meta.args {
            let default = arg
                .default
                .as_ref()
                .map(|default| format!(" (default {default:?})"))
                .unwrap_or_default();
            _ = writeln!(page, "  {}: {}{default}", arg.name, arg.description);
        }
        if let Some(returns) = &meta.returns {
            _ = writeln!(page, "  returns {returns}");
        }
        if let Some(result) = &meta.result {
            _ = writeln!(page, "  result  {result}");
        }
        let uses = meta.uses.as_deref().unwrap_or_default();
        for (word, list) in [("uses", uses), ("asks for", &meta.grants), ("tags", &meta.tags)] {
            if !list.is_empty() {
                _ = writeln!(page, "  {word} {}", list.join(", "));
            }
        }
        if let Some(time) = meta.timeout {
            _ = writeln!(page, "  may take {} ms", time.as_millis());
        }
        if meta.exclusive {
            page.push_str("  cannot run at the same time as another call\n");
        }
        if meta.silent {
            page.push_str("  its results are not shown in the conversation\n");
        }
        if meta.whole {
            page.push_str("  its results are shown whole in the conversation\n");
        }
        if let Some(version) = &meta.version {
            _ = writeln!(page, "  version {version}");
        }
        if meta.replaces.is_some() {
            page.push_str("  replaces the built-in program of that name\n");
        }
        if !meta.examples.is_empty() {
            page.push_str("examples:\n");
        }
        for example in &meta.examples {
            _ = writeln!(page, "  {}", call(self, example));
        }
        page
    }
}

/// Formats an example as one line: the call, its result and its fixtures.
fn call(entry: &Entry, example: &Example) -> String {
    let args: Vec<String> = example.args.iter().map(|arg| excerpt(arg)).collect();
    let mut line = format!("{}({})", entry.name(), args.join(", "));
    let expected = &example.expected;
    if !expected.code.is_success() {
        _ = write!(line, " exits with {}", expected.code);
    }
    if let Some(reason) = &expected.reason {
        _ = write!(line, " and the reason {}", excerpt(reason));
    }
    let quoted =
        |texts: &[String]| texts.iter().map(|text| excerpt(text)).collect::<Vec<_>>().join(", ");
    match &expected.results {
        Results::Exactly(results) if !results.is_empty() => {
            _ = write!(line, " returns {}", quoted(results))
        }
        Results::Containing(parts) => {
            _ = write!(line, " returns a text that contains {}", quoted(parts))
        }
        Results::Exactly(_) | Results::Any => {}
    }
    for (path, content) in &expected.files {
        _ = write!(line, ", writes {} to {path}", excerpt(content));
    }
    for (key, value) in &expected.kv {
        _ = write!(line, ", sets {key} to {}", excerpt(value));
    }
    let fixtures = &example.fixtures;
    let files =
        fixtures.files.iter().map(|(path, content)| format!("{path} is {}", excerpt(content)));
    let state =
        fixtures.kv.iter().map(|(key, value)| format!("the key {key} is {}", excerpt(value)));
    let memory = fixtures.memory.iter().map(|item| format!("the memory has {}", excerpt(item)));
    let answers = fixtures.http.iter().map(|answer| {
        let body = excerpt(&answer.body);
        format!("{} {} answers {} {body}", answer.method, answer.url, answer.status)
    });
    let replies = fixtures.ai.iter().map(|answer| match answer {
        AiAnswer::Next(reply) => format!("the model says {}", excerpt(reply)),
        AiAnswer::When { when, reply } => {
            format!("the model says {} to a text that contains {}", excerpt(reply), excerpt(when))
        }
    });
    let lines = fixtures.shell.iter().map(|answer| {
        let ShellAnswer { line, stdout, stderr, status } = answer;
        let stderr = if stderr.is_empty() {
            String::new()
        } else {
            format!(", prints {} to standard error", excerpt(stderr))
        };
        format!(
            "the line {} prints {}{stderr} and ends with {status}",
            excerpt(line),
            excerpt(stdout)
        )
    });
    let now = fixtures.now.iter().map(|now| format!("it is {now}"));
    let random = (!fixtures.random.is_empty())
        .then(|| format!("random numbers come from {:?}", fixtures.random));
    let world: Vec<String> = files
        .chain(state)
        .chain(memory)
        .chain(answers)
        .chain(replies)
        .chain(lines)
        .chain(now)
        .chain(random)
        .collect();
    if !world.is_empty() {
        _ = write!(line, " if {}", world.join(", "));
    }
    line
}
