//! The decision about a program before its first instruction.

use std::fmt;

use wattle_rt::{Argument, Authority, Signature, Target, Text, Use};

use super::place::Place;
use super::rule::full_name;
use super::{Policy, Rule, Ruling, Verdict};

/// What a policy says about a program before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What the user is asked about first; the program runs if all is answered with yes.
    pub questions: Vec<Question>,
    /// What the program may not do; it does not run if there is anything.
    pub refusals: Vec<Refusal>,
}

/// A question to the user: may the program do that?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What the program would do.
    pub touch: Touch,
    /// What a yes is good for, with that function.
    pub approves: Rule,
    /// What would make the question unnecessary.
    pub remedy: String,
}

/// Something that a program may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the program would do.
    pub touch: Touch,
    /// The rule that forbids it.
    pub rule: Option<Rule>,
    /// What would permit it.
    pub remedy: String,
}

/// What a call of a program would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The function, such as `http.get`.
    pub function: String,
    /// In words, such as `reach https://example.com/`.
    pub what: String,
    /// Which of the program's uses it is.
    pub at: usize,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` would {}", self.touch.function, self.touch.what)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` may not {}", self.touch.function, self.touch.what)?;
        self.rule.as_ref().map_or(Ok(()), |rule| write!(f, " (denied by the rule `{rule}`)"))
    }
}

/// What one argument names, as far as it is known.
enum Named {
    /// The call names nothing outside.
    Nothing,
    Known(Place, String),
    Unknown(Target, String),
}

impl Policy {
    /// Decides about a program with that authority that is started with those arguments. It runs nothing and asks nobody.
    #[must_use]
    pub fn decide(&self, authority: &Authority, args: &[String]) -> Decision {
        let mut decision = Decision::default();
        if self.is_open() {
            return decision;
        }
        for (at, one) in authority.uses().iter().enumerate() {
            for named in named(one, args) {
                self.weigh(&mut decision, at, &one.function, &named);
            }
        }
        decision
    }

    fn weigh(&self, decision: &mut Decision, at: usize, function: &Signature, named: &Named) {
        let ruling = self.before(function, named);
        if ruling.verdict == Verdict::Allow {
            return;
        }
        let approves = match named {
            Named::Nothing => Rule::function(function),
            Named::Known(place, _) => Rule::exactly(place),
            Named::Unknown(target, _) => Rule::all(*target),
        };
        let touch = Touch { function: full_name(function), what: what(function, named), at };
        let remedy = self.remedy(function, named, &approves, ruling);
        if ruling.verdict == Verdict::Ask {
            let same = |q: &Question| q.approves == approves && q.touch.function == touch.function;
            if !decision.questions.iter().any(same) {
                decision.questions.push(Question { touch, approves, remedy });
            }
        } else {
            let same = |r: &Refusal| r.touch.what == touch.what && r.touch.function == touch.function;
            if !decision.refusals.iter().any(same) {
                decision.refusals.push(Refusal { touch, rule: ruling.rule.cloned(), remedy });
            }
        }
    }

    /// The ruling before the run. What is not known is refused only if it cannot be anything that is allowed, and asked about if it
    /// may be something that is; what is denied of it is refused when the call is made.
    fn before(&self, function: &Signature, named: &Named) -> Ruling<'_> {
        let name = full_name(function);
        let (target, beginning) = match named {
            Named::Nothing => return self.on(function.module, &name, None),
            Named::Known(place, _) => return self.on(function.module, &name, Some(place)),
            Named::Unknown(target, beginning) => (*target, beginning),
        };
        let sets = self.on_unknown(function, target, beginning);
        let mut mildest = Ruling::OPEN;
        for set in &sets {
            if let Some(ruling) = set.iter().min_by_key(|ruling| ruling.verdict) {
                mildest = mildest.stricter(*ruling);
            }
        }
        if mildest.verdict == Verdict::Deny {
            return mildest;
        }
        let asked = sets.iter().flatten().find(|ruling| ruling.verdict == Verdict::Ask);
        asked.copied().unwrap_or(Ruling::OPEN)
    }

    /// What to set so that it is allowed. The words are tried out before they are said.
    fn remedy(&self, function: &Signature, named: &Named, approves: &Rule, ruling: Ruling<'_>) -> String {
        let mut wider = self.clone();
        if let Some(set) = wider.sets.first_mut() {
            set.push((approves.clone(), Verdict::Allow));
        }
        if wider.before(function, named).verdict == Verdict::Allow {
            return format!("`--allow {approves}` would permit it");
        }
        match ruling.rule {
            Some(rule) => format!("take `{rule}` out of the setting `{}` to permit it", ruling.verdict.name()),
            None => format!("`--allow {approves}` would permit it"),
        }
    }
}

/// What a call names by each of its arguments that name something.
fn named(one: &Use, args: &[String]) -> Vec<Named> {
    let mut all = Vec::new();
    let mut targets = one.targets().peekable();
    if targets.peek().is_none() {
        return vec![Named::Nothing];
    }
    for (target, argument) in targets {
        match argument {
            Argument::Unknown => all.push(Named::Unknown(target, String::new())),
            Argument::OneOf(texts) => {
                let texts = texts.iter().filter_map(|text| text.with(args));
                all.extend(texts.map(|text| of_text(target, &text)));
            }
        }
    }
    all
}

fn of_text(target: Target, text: &Text) -> Named {
    match Place::of_text(target, text) {
        Some(place) => Named::Known(place, text.to_string()),
        None => Named::Unknown(target, text.beginning().to_owned()),
    }
}

fn what(function: &Signature, named: &Named) -> String {
    match named {
        Named::Nothing => format!("use `{}`", function.module),
        Named::Unknown(target, beginning) => {
            let what = match target {
                Target::Url => "reach any host",
                Target::Read => "read any file",
                Target::Write => "write any file",
                Target::Tree => "read and write any file",
                Target::Key | Target::Keys => "use any key",
                Target::Program => "run any program",
                Target::Agent => "ask any agent",
            };
            match beginning.as_str() {
                "" => what.to_owned(),
                beginning => format!("{what} that begins with {beginning:?}"),
            }
        }
        Named::Known(place, text) => match place {
            Place::Host { .. } => format!("reach {text}"),
            Place::Path { read: true, write: true, .. } => format!("move {text}"),
            Place::Path { read: true, .. } => format!("read {text}"),
            Place::Path { .. } => format!("write {text}"),
            Place::Key { whole: true, .. } => format!("list the keys that begin with {text:?}"),
            Place::Key { .. } => format!("use the key {text:?}"),
            Place::Program(_) => format!("run the program {text}"),
            Place::Agent(_) => format!("ask the agent {text}"),
        },
    }
}
