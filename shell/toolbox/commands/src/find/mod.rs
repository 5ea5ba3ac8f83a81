//! `find`: walks folders and evaluates an expression for each file.

mod expression;
mod printf;
mod walk;

use std::io::Write as _;

pub(crate) use self::printf::{mode, mode_text};
pub(crate) use self::walk::letter;

use crate::say::{Failure, ended, out};

/// Runs `find` and returns its exit status.
pub(crate) fn run(args: &[String]) -> i32 {
    ended("find", 1, walked(args))
}

fn walked(args: &[String]) -> Result<i32, Failure> {
    let mut words = args.iter().skip(1).map(String::as_str).peekable();
    let mut follow = walk::Follow::Never;
    while let Some(word) = words.next_if(|word| ["-P", "-L", "-H"].contains(word)) {
        follow = match word {
            "-L" => walk::Follow::Always,
            "-H" => walk::Follow::Operands,
            _ => walk::Follow::Never,
        };
    }
    let mut tops = Vec::new();
    let begins_expression = |word: &&str| {
        word.starts_with('-') && word.len() > 1 || ["(", ")", "!", ","].contains(word)
    };
    while let Some(word) = words.next_if(|word| !begins_expression(word)) {
        tops.push(word.to_owned());
    }
    if tops.is_empty() {
        tops.push(".".to_owned());
    }
    let (expression, mut options) = expression::parse(words.map(str::to_owned).collect())?;
    if follow != walk::Follow::Never {
        options.follow = follow;
    }
    let mut walk = walk::Walk::new(&expression, options, out());
    for top in &tops {
        if walk.top(top) {
            break;
        }
    }
    let failed = walk.finish();
    _ = std::io::stdout().flush();
    Ok(i32::from(failed))
}
