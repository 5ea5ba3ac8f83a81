//! `help`: the manual, for programs and for the models that write them.

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, capability, quote};

capability! {
    /// The manual.
    pub const HELP: "help" 1;

    /// Returns the manual page of a function, capability, program, form or error code; for other
    /// words, the best matches; for "", the topics
    #[example = r#"(ret (str.slice (help.about "str.cat") 0 14))"# => "str.cat (a, b)"]
    #[prompt(name)]
    #[effect(reads)]
    #[touches(nothing)]
    fn about(topic: str) with Help -> ptr: str ! ENOENT = about;
}

/// The port to the manual.
pub trait Manual: Send + Sync {
    /// Returns the page for the topic with this name. If there is no such topic, returns a list of
    /// the best-matching topics, or `None` if no topic matches.
    fn about(&self, topic: &str) -> Option<String>;
}

/// The `help` grant: a manual.
pub struct Help(pub Arc<dyn Manual>);

impl Config for Help {
    const CAPABILITIES: &'static [&'static str] = &["help"];
}

fn about(help: Arc<Help>, _run: &mut Run, topic: &str) -> Result<String, Failure> {
    help.0.about(topic).ok_or_else(|| {
        let topic = quote(topic, 60);
        Failure::new(
            Code::ENOENT,
            format!("the manual has nothing about {topic}; an empty topic lists all topics"),
        )
    })
}
