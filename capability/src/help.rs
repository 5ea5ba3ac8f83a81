//! `help`: the manual, for programs and through them for models.

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, capability, quote};

capability! {
    /// The manual.
    pub const HELP: "help" 1;

    /// Gives what the manual says about a function, capability, program, form or error code; given other words, the best matches;
    /// given an empty text, what there is
    #[example = r#"(ret (str.slice? (help.about? "str.cat") 0 14))"# => "str.cat (a, b)"]
    #[prompt(name)]
    #[effect(reads)]
    #[touches(nothing)]
    fn about(topic: str) -> ptr: str ! ENOENT = about;
}

/// The port to the manual, implemented by whoever knows all of it.
pub trait Manual: Send + Sync {
    /// What there is to know about a topic: the page of what has that name, or the best matches for words. `None` where
    /// nothing matches.
    fn about(&self, topic: &str) -> Option<String>;
}

/// Grants `help` with that manual.
pub struct Help(pub Arc<dyn Manual>);

impl Config for Help {
    const CAPABILITY: &'static str = "help";
}

fn about(run: &mut Run, topic: &str) -> Result<String, Failure> {
    let Help(guide) = &*run.config::<Help>()?;
    guide.about(topic).ok_or_else(|| {
        let topic = quote(topic, 60);
        Failure::new(
            Code::ENOENT,
            format!("nothing in the manual is about {topic}; an empty topic lists what there is"),
        )
    })
}
