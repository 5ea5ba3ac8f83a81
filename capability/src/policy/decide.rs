//! Policy decisions about a program before it starts.

use std::fmt;

use wattle_rt::{Argument, Authority, Reach, Target, Text, Touch as Fixed};

use super::privilege::Lacking;
use super::resource::Resource;
use super::start::Start;
use super::{ApprovalScope, Directory, Policy, Rule, Ruling, TouchedResource, Verdict};

/// A policy's decision about a program that has not started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The questions to the user. The program runs only if all of them are approved.
    pub questions: Vec<Question>,
    /// The denied effects. The program runs only if there are none.
    pub refusals: Vec<Refusal>,
}

/// A question to the user about an effect that needs approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The effect that needs approval.
    pub touch: Touch,
    /// The effects that the user would approve. The approval applies only to the function in
    /// `touch`.
    pub approves: ApprovalScope,
    /// The settings change that would make the question unnecessary.
    pub remedy: String,
    /// Number of calls that an approval for this run permits: one for each call in the program's
    /// text. `None` if it permits any number, because the effect does not leave the machine.
    pub calls: Option<u32>,
}

/// A denied effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The denied effect.
    pub touch: Touch,
    /// The rule that denies the effect.
    pub rule: Option<Rule>,
    /// The settings change that would permit the effect.
    pub remedy: String,
}

/// An effect of a program's call to a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The function, such as `http.get`.
    pub function: String,
    /// A description of the effect, such as `reach https://example.com/`.
    pub what: String,
    /// The index of the call in the program's list of function uses. It is not in the list if the
    /// program's own start is meant.
    pub at: usize,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` would {}", self.touch.function, self.touch.what)?;
        match self.calls {
            Some(calls) if calls > 1 => write!(f, ", up to {calls} times"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` may not {}", self.touch.function, self.touch.what)?;
        self.rule.as_ref().map_or(Ok(()), |rule| write!(f, " (denied by the rule `{rule}`)"))
    }
}

/// The resource that a call touches, as far as it is known before the run.
enum Subject {
    /// The call touches no resource.
    Nothing,
    Known(Target, Resource, String),
    /// An unknown resource of the given kind. The string is the known prefix of its name.
    Unknown(Target, String),
}

impl Subject {
    fn resolved(self, directory: &Directory) -> Subject {
        match self {
            Subject::Known(target, resource, text) => {
                Subject::Known(target, directory.resolve(resource), text)
            }
            other => other,
        }
    }
}

/// The name that questions and refusals give to the start of a program.
pub(super) const START: &str = "start";

impl Policy {
    /// Decides whether a program may run, based on its authority and its arguments. Does not run
    /// the program or ask the user.
    #[must_use]
    pub fn decide(&self, authority: &Authority, args: &[String]) -> Decision {
        self.decide_with(authority, args, &Directory::default(), None)
    }

    /// Decides as [`decide`](Policy::decide) does. `directory` says what names stand for, and
    /// `lacking` what the program asks for.
    pub(super) fn decide_with(
        &self,
        authority: &Authority,
        args: &[String],
        directory: &Directory,
        lacking: Option<&Lacking>,
    ) -> Decision {
        let mut decision = Decision::default();
        if self.is_open() {
            return decision;
        }
        for (at, used) in authority.uses().iter().enumerate() {
            let function = format!("{}.{}", used.function.module, used.function.name);
            let mut touches_nothing = true;
            for reach in used.reaches() {
                touches_nothing = false;
                for subject in self.subjects(&function, reach, args) {
                    let subject = subject.resolved(directory);
                    self.judge(&mut decision, at, &function, &subject, lacking);
                }
            }
            if touches_nothing {
                self.judge(&mut decision, at, &function, &Subject::Nothing, lacking);
            }
        }
        decision
    }

    /// Returns the resources that a call may touch. `reach` describes them as far as they are known
    /// from the program, and `args` are the program's arguments. If some of the possible kinds of
    /// resource are denied and others are not, omits those that are denied.
    fn subjects(&self, function: &str, reach: Reach<'_>, args: &[String]) -> Vec<Subject> {
        match reach {
            Reach::Named(target, Argument::Unknown) => {
                vec![Subject::Unknown(target, String::new())]
            }
            Reach::Named(target, Argument::OneOf(texts)) => {
                let texts = texts.iter().filter_map(|text| text.with(args));
                texts.map(|text| subject_of(target, &text)).collect()
            }
            Reach::Always(Fixed { target, text }) => match Resource::of(target, text) {
                Some(resource) => vec![Subject::Known(target, resource, text.to_owned())],
                None => vec![Subject::Unknown(target, text.to_owned())],
            },
            // The call may touch a resource of any of these kinds, so it is denied only if all of
            // them are denied.
            Reach::Any(targets) => {
                let each = targets.iter().map(|target| Subject::Unknown(*target, String::new()));
                let (denied, rest): (Vec<Subject>, Vec<Subject>) = each
                    .partition(|subject| self.before(function, subject).verdict == Verdict::Deny);
                if rest.is_empty() { denied } else { rest }
            }
        }
    }

    /// Adds a question or a refusal for one resource to the decision. Adds nothing if the effect is
    /// allowed.
    fn judge(
        &self,
        decision: &mut Decision,
        at: usize,
        function: &str,
        subject: &Subject,
        lacking: Option<&Lacking>,
    ) {
        let ruling = self.before(function, subject);
        let permits = |wider: &Policy| wider.before(function, subject).verdict == Verdict::Allow;
        let remedy = |allow: &Rule| self.remedy(allow, ruling, lacking, permits);
        self.add(decision, at, function, subject, ruling, remedy);
    }

    /// Adds a question or a refusal for a program that is about to start. Adds nothing if its start
    /// is allowed.
    pub(super) fn judge_start(&self, decision: &mut Decision, program: Resource) {
        let ruling = self.on_start(&program);
        let permits = |wider: &Policy| wider.on_start(&program).verdict == Verdict::Allow;
        let text = match &program {
            Resource::Program { names, called } => names.first().unwrap_or(called).clone(),
            _ => String::new(),
        };
        let subject = Subject::Known(Target::Program, program.clone(), text);
        let remedy = |allow: &Rule| self.remedy(allow, ruling, None, permits);
        self.add(decision, usize::MAX, START, &subject, ruling, remedy);
    }

    /// Adds a question or a refusal for a ruling on one resource to the decision. Adds nothing if
    /// the effect is allowed. `remedy` returns the settings change that would permit the effect,
    /// given a rule that allows it.
    fn add(
        &self,
        decision: &mut Decision,
        at: usize,
        function: &str,
        subject: &Subject,
        ruling: Ruling<'_>,
        remedy: impl Fn(&Rule) -> String,
    ) {
        if ruling.verdict == Verdict::Allow {
            return;
        }
        let (allow, approves) = match subject {
            Subject::Nothing => (Rule::function(function), ApprovalScope::nothing()),
            Subject::Known(target, resource, _) => {
                (Rule::exactly(function, *target, Some(resource)), ApprovalScope::one(resource))
            }
            Subject::Unknown(target, prefix) => {
                (Rule::all(function, *target), ApprovalScope::any(function, *target, prefix))
            }
        };
        let target = match subject {
            Subject::Nothing => None,
            Subject::Known(target, ..) | Subject::Unknown(target, _) => Some(*target),
        };
        let calls = target.filter(|target| super::leaves_machine(*target)).map(|_| 1);
        let touch = Touch { function: function.to_owned(), what: what(function, subject), at };
        let remedy = remedy(&allow);
        if ruling.verdict == Verdict::Ask {
            let same = |q: &Question| q.approves == approves && q.touch.function == touch.function;
            match decision.questions.iter_mut().find(|question| same(question)) {
                Some(known) => known.calls = known.calls.map(|calls| calls.saturating_add(1)),
                None => decision.questions.push(Question { touch, approves, remedy, calls }),
            }
        } else {
            let same =
                |r: &Refusal| r.touch.what == touch.what && r.touch.function == touch.function;
            if !decision.refusals.iter().any(same) {
                decision.refusals.push(Refusal { touch, rule: ruling.rule.cloned(), remedy });
            }
        }
    }

    /// Returns the ruling on an effect before the run. An unknown resource is denied only if every
    /// possible resource is denied. If any possible resource needs approval, the user is asked. If
    /// the actual resource turns out to be denied, the call is denied when it is made.
    fn before(&self, function: &str, subject: &Subject) -> Ruling<'_> {
        let (target, prefix) = match subject {
            Subject::Nothing => return self.on(function, TouchedResource::Nothing),
            Subject::Known(target, resource, _) => {
                return self.on(function, TouchedResource::Resource(*target, resource));
            }
            Subject::Unknown(target, prefix) => (*target, prefix),
        };
        let sets = self.on_unknown(function, target, prefix);
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

    /// Returns the settings change that would permit the effect: a privilege that the program asks
    /// for, a new `allow` rule or, if that would not suffice, the removal of the deciding rule.
    pub(super) fn remedy(
        &self,
        allow: &Rule,
        ruling: Ruling<'_>,
        lacking: Option<&Lacking>,
        permits: impl Fn(&Policy) -> bool,
    ) -> String {
        if let Some(remedy) = lacking.and_then(|lacking| lacking.remedy(&permits)) {
            return remedy;
        }
        let mut wider = self.clone();
        if let Some(set) = wider.sets.first_mut() {
            set.rules.push((allow.clone(), Verdict::Allow));
        }
        match ruling.rule {
            Some(rule) if !permits(&wider) => {
                format!("remove `{rule}` from the setting `{}` to permit it", ruling.verdict.name())
            }
            _ => format!("`--allow {allow}` would permit it"),
        }
    }
}

fn subject_of(target: Target, text: &Text) -> Subject {
    match Resource::of_text(target, text) {
        Some(resource) => Subject::Known(target, resource, text.to_string()),
        None => Subject::Unknown(target, text.prefix().to_owned()),
    }
}

/// Describes an effect, as a verb phrase.
fn what(function: &str, subject: &Subject) -> String {
    match subject {
        Subject::Nothing => format!("use `{}`", function.split('.').next().unwrap_or_default()),
        Subject::Unknown(target, prefix) => {
            let what = match target {
                Target::Url => "reach any host",
                Target::Read | Target::ReadTree => "read any file",
                Target::Write => "write any file",
                Target::Tree => "read and write any file",
                Target::Key | Target::Keys => "use any key",
                Target::Program => "run any program",
                Target::Agent => "ask any agent",
                Target::Tool => "call any tool",
                Target::Service(service) => service.verb,
            };
            format!("{what}{}", Start::of(*target, prefix))
        }
        Subject::Known(_, resource, text) => match resource {
            Resource::Host { .. } => format!("reach {text}"),
            Resource::Path { read: true, write: true, .. } => format!("move {text}"),
            Resource::Path { read: true, whole: true, names, .. } if names.is_empty() => {
                "read every file".to_owned()
            }
            Resource::Path { read: true, whole: true, .. } => {
                format!("read all files below {text}")
            }
            Resource::Path { read: true, .. } => format!("read {text}"),
            Resource::Path { .. } => format!("write {text}"),
            Resource::Key { whole: true, .. } => format!("list the keys that start with {text:?}"),
            Resource::Key { .. } => format!("use the key {text:?}"),
            Resource::Program { .. } if text.is_empty() => {
                "run a program without a name".to_owned()
            }
            Resource::Program { .. } => format!("run the program {text}"),
            Resource::Agent { elsewhere: true, .. } => {
                format!("ask the agent {text}, whose model is at another endpoint,")
            }
            Resource::Agent { .. } => format!("ask the agent {text}"),
            Resource::Tool(_) => format!("call the tool {text}"),
            Resource::Service { service, .. } => service.verb.to_owned(),
        },
    }
}
