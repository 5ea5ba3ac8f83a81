//! Detection of programs in another language.

/// A language in which a program was written by mistake, and the line that reveals it.
pub(crate) struct Pasted {
    pub(crate) language: &'static str,
    pub(crate) line: std::ops::Range<usize>,
}

/// Maximum number of lines to read.
const MAX_LINES: usize = 200;

/// Detects a program that is clearly written in another language. Returns the language and the
/// first line that reveals it. Returns `None` if no line reveals a language, or if any line starts
/// with a form.
pub(crate) fn language(source: &str) -> Option<Pasted> {
    let mut at = 0;
    let mut found = None;
    for line in source.split_inclusive('\n').take(MAX_LINES) {
        let text = line.trim();
        if text.starts_with('(') && !text.starts_with("()") {
            return None;
        }
        if found.is_none()
            && let Some(language) = of_line(text)
        {
            let start = at + line.len() - line.trim_start().len();
            found = Some(Pasted { language, line: start..start + text.len() });
        }
        at += line.len();
    }
    found
}

/// Returns the language in which a line is certainly written, or `None` if the language is
/// uncertain.
fn of_line(line: &str) -> Option<&'static str> {
    let first = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
    let rest = line.get(first.len()..).unwrap_or("").trim_start();
    let is_word = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let assigned = |rest: &str| rest.contains(" = ") || rest.contains("= ");
    match first {
        _ if line.starts_with("<?php") => Some("PHP"),
        _ if line.starts_with("#!/") && line.contains("python") => Some("Python"),
        _ if line.starts_with("#!/") && line.ends_with("sh") => Some("shell"),
        "def" | "class" | "elif" | "if" | "for" | "while" | "with" | "try" | "except" | "else"
            if line.ends_with(':') =>
        {
            Some("Python")
        }
        "from" if line.contains(" import ") => Some("Python"),
        "import" if is_word(rest) && !line.contains([';', '{', '"', '\'']) => Some("Python"),
        "import" if line.contains(" from ") => Some("JavaScript"),
        "const" | "let" | "var" if is_word(rest) && assigned(rest) => Some("JavaScript"),
        "function" | "async" | "export" if line.ends_with('{') => Some("JavaScript"),
        "for" | "if" | "while" if rest.starts_with('(') && line.ends_with('{') => {
            Some("JavaScript")
        }
        "console" if rest.starts_with(".log(") => Some("JavaScript"),
        "fn" | "pub" | "use" if line.ends_with(['{', ';']) => Some("Rust"),
        "package" | "func" if is_word(rest) && !line.contains('(') || line.ends_with('{') => {
            Some("Go")
        }
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "CREATE" => Some("SQL"),
        "echo" | "export" | "cd" | "ls" | "cat" | "grep" | "curl" | "sudo"
            if !line.ends_with(')') =>
        {
            Some("shell")
        }
        "print" if rest.starts_with('(') => Some("Python"),
        _ if line.starts_with('{') && line.contains("\":") => Some("JSON"),
        _ if !first.is_empty() && rest.starts_with("= ") && !rest.starts_with("==") => {
            Some("Python")
        }
        _ => None,
    }
}
