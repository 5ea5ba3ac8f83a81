//! The decision about a program before its first instruction.

use std::fmt;

use wattle_rt::{Argument, Authority, Reach, Service, Target, Text, Touch as Fixed};

use super::place::Place;
use super::{Policy, Rule, Ruling, Touched, Verdict};

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

/// What a call touches, as far as it is known.
enum Named {
    /// Nothing outside.
    Nothing,
    Known(Target, Place, String),
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
            let function = format!("{}.{}", one.function.module, one.function.name);
            let mut touches_nothing = true;
            for reach in one.reaches() {
                touches_nothing = false;
                for named in self.named(&function, reach, args) {
                    self.weigh(&mut decision, at, &function, &named);
                }
            }
            if touches_nothing {
                self.weigh(&mut decision, at, &function, &Named::Nothing);
            }
        }
        decision
    }

    /// What there is to decide about one thing that a call may touch.
    fn named(&self, function: &str, reach: Reach<'_>, args: &[String]) -> Vec<Named> {
        match reach {
            Reach::Named(target, Argument::Unknown) => vec![Named::Unknown(target, String::new())],
            Reach::Named(target, Argument::OneOf(texts)) => {
                let texts = texts.iter().filter_map(|text| text.with(args));
                texts.map(|text| of_text(target, &text)).collect()
            }
            Reach::Always(Fixed { target, text }) => match Place::of(target, text) {
                Some(place) => vec![Named::Known(target, place, text.to_owned())],
                None => vec![Named::Unknown(target, text.to_owned())],
            },
            // Of several kinds it may touch one and leave the others: it is refused only if nothing is left.
            Reach::Any(targets) => {
                let each = targets.iter().map(|target| Named::Unknown(*target, String::new()));
                let (denied, rest): (Vec<Named>, Vec<Named>) =
                    each.partition(|named| self.before(function, named).verdict == Verdict::Deny);
                if rest.is_empty() { denied } else { rest }
            }
        }
    }

    fn weigh(&self, decision: &mut Decision, at: usize, function: &str, named: &Named) {
        let ruling = self.before(function, named);
        if ruling.verdict == Verdict::Allow {
            return;
        }
        let approves = match named {
            Named::Nothing => Rule::function(function),
            Named::Known(target, place, _) => Rule::exactly(function, *target, Some(place)),
            Named::Unknown(target, _) => Rule::all(function, *target),
        };
        let touch = Touch { function: function.to_owned(), what: what(function, named), at };
        let permits = |wider: &Policy| wider.before(function, named).verdict == Verdict::Allow;
        let remedy = self.remedy(&approves, ruling, permits);
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
    fn before(&self, function: &str, named: &Named) -> Ruling<'_> {
        let (target, beginning) = match named {
            Named::Nothing => return self.on(function, Touched::Nothing),
            Named::Known(target, place, _) => return self.on(function, Touched::Place(*target, place)),
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
    pub(super) fn remedy(&self, allow: &Rule, ruling: Ruling<'_>, permits: impl Fn(&Policy) -> bool) -> String {
        let mut wider = self.clone();
        if let Some(set) = wider.sets.first_mut() {
            set.push((allow.clone(), Verdict::Allow));
        }
        match ruling.rule {
            Some(rule) if !permits(&wider) => {
                format!("take `{rule}` out of the setting `{}` to permit it", ruling.verdict.name())
            }
            _ => format!("`--allow {allow}` would permit it"),
        }
    }
}

fn of_text(target: Target, text: &Text) -> Named {
    match Place::of_text(target, text) {
        Some(place) => Named::Known(target, place, text.to_string()),
        None => Named::Unknown(target, text.prefix().to_owned()),
    }
}

/// What a call does with something that the operator set up.
pub(super) fn with_service(service: Service) -> &'static str {
    match service {
        Service::Model => "send a message to the model",
        Service::Engine => "ask the search engine",
        Service::Images => "ask for a picture",
        Service::Remote => "push to the remote",
        Service::Public => "write to the public folder",
        Service::Tickets => "file a ticket",
    }
}

fn what(function: &str, named: &Named) -> String {
    match named {
        Named::Nothing => format!("use `{}`", function.split('.').next().unwrap_or_default()),
        Named::Unknown(target, beginning) => {
            let what = match target {
                Target::Url => "reach any host",
                Target::Read | Target::ReadTree => "read any file",
                Target::Write => "write any file",
                Target::Tree => "read and write any file",
                Target::Key | Target::Keys => "use any key",
                Target::Program => "run any program",
                Target::Agent => "ask any agent",
                Target::Service(service) => with_service(*service),
            };
            match beginning.as_str() {
                "" => what.to_owned(),
                beginning => format!("{what} that begins with {beginning:?}"),
            }
        }
        Named::Known(_, place, text) => match place {
            Place::Host { .. } => format!("reach {text}"),
            Place::Path { read: true, write: true, .. } => format!("move {text}"),
            Place::Path { read: true, whole: true, names, .. } if names.is_empty() => "read every file".to_owned(),
            Place::Path { read: true, whole: true, .. } => format!("read all files below {text}"),
            Place::Path { read: true, .. } => format!("read {text}"),
            Place::Path { .. } => format!("write {text}"),
            Place::Key { whole: true, .. } => format!("list the keys that begin with {text:?}"),
            Place::Key { .. } => format!("use the key {text:?}"),
            Place::Program(_) => format!("run the program {text}"),
            Place::Agent(_) => format!("ask the agent {text}"),
            Place::Service { service, .. } => with_service(*service).to_owned(),
        },
    }
}
