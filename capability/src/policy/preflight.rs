//! The guard of a session's programs, which applies the policy before a program starts and at each
//! call.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wattle_rt::{Guard, GuardFuture, Preview, QuestionReply, Target, truncate};

use super::decide::{Decision, Question, START};
use super::privilege::{Identity, Lacking};
use super::resource::Resource;
use super::{ApprovalScope, Directory, Policy, Rule, TouchedResource, Verdict, leaves_machine};
use crate::sys::Context;

/// The port to the user, who approves the effects of programs.
pub trait Approver: Send + Sync {
    /// Asks all questions about a program in one request.
    fn ask<'a>(&'a self, request: Request<'a>)
    -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}

/// A request for approval.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The questions, each with the line of the program that causes it.
    pub questions: &'a [(Question, Option<Line>)],
    /// The program's source.
    pub program: &'a str,
    /// The arguments of the program.
    pub args: &'a [String],
}

/// A line of a program's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line number, counted from 1.
    pub number: u32,
    /// The text, without surrounding whitespace. A long line is truncated.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.text)
    }
}

/// An answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Denied: the program does not run. The string is the reason, which may be empty.
    No(String),
    /// Approved for this run of the program only, and for as many calls as the
    /// [question](Question::calls) says.
    Yes,
    /// Approved for the rest of the session.
    Always,
    /// No user can answer now. A run with a journal is suspended until the answer arrives. Any
    /// other run treats this as a denial.
    Later,
}

impl Answer {
    /// Returns the answer as it is recorded in a journal, or `None` if there is no answer yet.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        match self {
            Answer::No(reason) if reason.is_empty() => Some("no".to_owned()),
            Answer::No(reason) => Some(format!("no: {reason}")),
            Answer::Yes => Some("yes".to_owned()),
            Answer::Always => Some("always".to_owned()),
            Answer::Later => None,
        }
    }

    fn of(word: &str) -> Answer {
        match word {
            "yes" => Answer::Yes,
            "always" => Answer::Always,
            other => Answer::No(other.strip_prefix("no: ").unwrap_or_default().to_owned()),
        }
    }
}

/// An approver without a user, which answers every request with [`Answer::Later`].
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask<'a>(&'a self, _: Request<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async { Answer::Later })
    }
}

/// The guard of a session's programs, which enforces a policy.
///
/// Clones share the approvals that apply to the rest of the session.
#[derive(Clone)]
pub struct Preflight {
    /// The policy of the run.
    policy: Arc<Policy>,
    /// The policy of the program that runs: that of the run, with the program's privileges.
    own: Arc<Policy>,
    /// The program that runs, if it may have privileges. No program inherits it.
    identity: Option<Arc<Identity>>,
    /// What the program that runs asks for and does not have.
    lacking: Option<Arc<Lacking>>,
    approver: Option<Arc<dyn Approver>>,
    always: Arc<Mutex<Vec<Approval>>>,
    once: Vec<Once>,
    /// The programs and agents of the run. It is empty until a program starts.
    directory: Directory,
    /// The number of the program's run in this process. It is 0 until a program starts.
    number: u64,
    /// The values of the program's context, which no model sees. It is empty until a program starts.
    context: Context,
}

/// The user's approval of some of the effects of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Approval {
    function: String,
    scope: ApprovalScope,
}

/// Number of programs that guards of this process let start, plus 1.
static STARTED: AtomicU64 = AtomicU64::new(1);

/// An approval for one run of a program. Clones share the number of calls.
#[derive(Clone, Debug)]
struct Once {
    approval: Approval,
    /// The calls that it permits, or `None` for any number.
    limit: Option<Arc<Mutex<Limit>>>,
}

/// The rest of an approval for a number of calls.
#[derive(Debug)]
struct Limit {
    left: u32,
    /// The number of the last call that used the approval. Everything that this call accesses is
    /// part of it.
    last: Option<CallNumber>,
}

/// The number of a run of a program in this process, and the number of the call in it.
type CallNumber = (u64, u64);

impl Once {
    /// Uses the approval for the call with this number. Returns false if it permits no further
    /// calls.
    fn spend(&self, number: CallNumber) -> bool {
        let Some(limit) = &self.limit else { return true };
        let mut limit = limit.lock().unwrap_or_else(PoisonError::into_inner);
        if limit.last == Some(number) {
            return true;
        }
        let is_permitted = limit.left > 0;
        if is_permitted {
            limit.left -= 1;
            limit.last = Some(number);
        }
        is_permitted
    }
}

impl Preflight {
    /// Creates a guard. Without an approver, effects that need approval are denied. Files that hold
    /// secrets by their names are [private](Policy::keeping_private_files).
    #[must_use]
    pub fn new(policy: Policy, approver: Option<Arc<dyn Approver>>) -> Preflight {
        let policy = Arc::new(policy.keeping_private_files());
        Preflight {
            own: Arc::clone(&policy),
            policy,
            identity: None,
            lacking: None,
            approver,
            always: Arc::default(),
            once: Vec::new(),
            directory: Directory::default(),
            number: 0,
            context: Context::default(),
        }
    }

    /// Returns the same guard with another policy for the run.
    fn with_policy(&self, policy: Policy) -> Preflight {
        let policy = Arc::new(policy);
        Preflight { own: Arc::clone(&policy), policy, ..self.clone() }
    }

    /// Returns the guard for a program that is about to start. The privileges of the program that
    /// starts it are not among its own.
    fn of_program(&self, preview: &Preview<'_>) -> Preflight {
        let named = preview.program.name();
        let identity = self.policy.identity(named, preview.program.source());
        let own = match &identity {
            Some(identity) => Arc::new(self.policy.of_program(identity)),
            None => Arc::clone(&self.policy),
        };
        let lacking = named.zip(identity.as_ref());
        let lacking = lacking.and_then(|(named, identity)| own.lacking(&named.asks, identity));
        Preflight {
            own,
            identity: identity.map(Arc::new),
            lacking: lacking.map(Arc::new),
            directory: Directory::of(preview.grants),
            ..self.clone()
        }
    }

    /// Returns the policy of the run.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn approved(&self, function: &str, test: impl Fn(&ApprovalScope) -> bool) -> bool {
        self.has_approved(|approval| approval.function == function && test(&approval.scope))
    }

    fn has_approved(&self, fits: impl Fn(&Approval) -> bool) -> bool {
        self.once.iter().any(|once| fits(&once.approval))
            || self.always.lock().unwrap_or_else(PoisonError::into_inner).iter().any(&fits)
    }

    /// Returns a guard that allows only the effects that both this guard's policy and `policy`
    /// allow. The two guards share the approvals that apply to the rest of the session.
    #[must_use]
    pub fn narrowed(&self, policy: Policy) -> Preflight {
        self.with_policy(self.policy.as_ref().clone().and(policy))
    }

    /// Returns a guard that also [asks](Policy::asking_about_protected_files) before protected files
    /// are written, for runs whose files are those of the workdir. The two guards share the
    /// approvals that apply to the rest of the session.
    #[must_use]
    pub fn asking_about_protected_files(&self) -> Preflight {
        self.with_policy(self.policy.as_ref().clone().asking_about_protected_files())
    }

    async fn decide(&self, preview: Preview<'_>) -> Result<Preflight, String> {
        let own = self.of_program(&preview);
        if self.policy.is_open() {
            return Ok(own);
        }
        let authority = preview.program.authority();
        let lacking = own.lacking.as_deref();
        let mut decision = own.own.decide_with(authority, preview.args, &own.directory, lacking);
        // The rules of the run decide whether a program may start, not its privileges.
        let program = if self.policy.rules().any(Rule::is_on_programs) {
            Some(own.directory.program(&self.policy, &preview).await)
        } else {
            None
        };
        if let Some(program) = &program {
            self.policy.judge_start(&mut decision, program.clone());
        }
        let Decision { questions, refusals } = decision;
        let answered = |question: &Question| match &program {
            // Whoever approved the call that starts the program approved its start.
            Some(program) if question.touch.function == START => self.has_approved(|approval| {
                approval.scope.contains(&approval.function, Target::Program, Some(program))
            }),
            _ => self.approved(&question.touch.function, |scope| *scope == question.approves),
        };
        let questions: Vec<Question> =
            questions.into_iter().filter(|question| !answered(question)).collect();
        if refusals.is_empty() && questions.is_empty() {
            return Ok(own);
        }
        let lines = lines(&preview).await;
        let line = |at: usize| lines.get(at).cloned().flatten();
        let with_remedy = |what: &dyn fmt::Display, at: usize, remedy: &str| match line(at) {
            Some(line) => format!("{what} ({line}); {remedy}"),
            None => format!("{what}; {remedy}"),
        };
        if !refusals.is_empty() {
            let each = refusals
                .iter()
                .map(|refusal| with_remedy(refusal, refusal.touch.at, &refusal.remedy));
            return Err(each.collect::<Vec<_>>().join("\n"));
        }
        let unanswered = |questions: &[Question]| {
            let each = questions.iter().map(|question| {
                let question_text = format!("{question}, and nobody was there to approve it");
                with_remedy(&question_text, question.touch.at, &question.remedy)
            });
            each.collect::<Vec<_>>().join("\n")
        };
        let Some(approver) = &self.approver else { return Err(unanswered(&questions)) };
        let refused = unanswered(&questions);
        let asked: Vec<(Question, Option<Line>)> = questions
            .into_iter()
            .map(|question| (question.clone(), line(question.touch.at)))
            .collect();
        let text: Vec<String> =
            asked.iter().map(|(question, line)| with_line(question, line.as_ref())).collect();
        let request =
            Request { questions: &asked, program: preview.program.source(), args: preview.args };
        let ask = async { approver.ask(request).await.word() };
        let answer = match preview.ask(&text.join("; "), ask).await {
            QuestionReply::Answer(word) => Answer::of(&word),
            QuestionReply::Unanswered => return Err(refused),
            QuestionReply::Pending(why) => return Err(why),
        };
        let approval = |question: &Question| Approval {
            function: question.touch.function.clone(),
            scope: question.approves.clone(),
        };
        let approvals = asked.iter().map(|(question, _)| approval(question));
        let mut decided = own;
        match answer {
            Answer::Later => return Err(denial(&text, "")),
            Answer::No(reason) => return Err(denial(&text, &reason)),
            Answer::Yes => decided.once.extend(asked.iter().map(|(question, _)| Once {
                approval: approval(question),
                limit: question.calls.map(|left| Arc::new(Mutex::new(Limit { left, last: None }))),
            })),
            Answer::Always => {
                self.always.lock().unwrap_or_else(PoisonError::into_inner).extend(approvals)
            }
        }
        Ok(decided)
    }
}

/// Renders the denied questions, with the user's reason if there is one.
fn denial(questions: &[String], reason: &str) -> String {
    let each = questions.iter().map(|question| match reason {
        "" => format!("{question}, and the user denied it"),
        reason => format!("{question}, and the user denied it: {reason}"),
    });
    each.collect::<Vec<_>>().join("\n")
}

/// Renders a question, followed by the line of the program that causes it.
fn with_line(question: &Question, line: Option<&Line>) -> String {
    line.map_or_else(|| question.to_string(), |line| format!("{question} ({line})"))
}

/// Returns the source line of each use of a function in the program, or `None` for a use whose
/// position is unknown.
async fn lines(preview: &Preview<'_>) -> Vec<Option<Line>> {
    let texts: Vec<&str> = preview.program.source().lines().collect();
    let line = |number: u32| {
        let text = texts.get((number as usize).checked_sub(1)?)?.trim();
        Some(Line { number, text: truncate(text, MAX_LINE).into_owned() })
    };
    preview.use_positions().await.into_iter().map(|position| line(position?.line)).collect()
}

/// Minimum length of a context value that denials do not show, in bytes. A shorter one can occur in
/// a denial by chance.
const MIN_HIDDEN: usize = 3;

/// Returns a denial with references in place of the values of the program's context.
fn without_values(context: &Context, text: String) -> String {
    let mut hidden: Vec<(&String, &String)> =
        context.0.iter().filter(|(_, value)| value.len() >= MIN_HIDDEN).collect();
    // A value may contain another one.
    hidden.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    hidden
        .iter()
        .fold(text, |text, (key, value)| text.replace(value.as_str(), &format!("${{{key}}}")))
}

/// Maximum length of the source line that is quoted in a question, in characters.
const MAX_LINE: usize = 200;

impl Guard for Preflight {
    fn before<'a>(&'a self, preview: Preview<'a>) -> GuardFuture<'a> {
        Box::pin(async move {
            let context = preview.grants.config::<Context>();
            let context = context.as_deref().cloned().unwrap_or_default();
            let decided = self.decide(preview).await;
            let decided = decided.map_err(|why| without_values(&context, why))?;
            let number = STARTED.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(Preflight { context, number, ..decided }) as Arc<dyn Guard>)
        })
    }

    fn call(&self, _: &str, function: &str, target: Target, text: &str) -> Result<(), String> {
        if self.own.is_open() {
            return Ok(());
        }
        let resource = Resource::of(target, text).map(|resource| self.directory.resolve(resource));
        let touched = TouchedResource::of(target, resource.as_ref());
        let ruling = self.own.on(function, touched);
        let why = match ruling.verdict {
            Verdict::Allow => return Ok(()),
            Verdict::Ask
                if self.approved(function, |scope| {
                    scope.contains(function, target, resource.as_ref())
                }) =>
            {
                return Ok(());
            }
            Verdict::Ask => "the user was not asked for approval",
            Verdict::Deny => "the policy denies it",
        };
        let what = match target {
            Target::Service(service) => service.verb.to_owned(),
            _ => format!("touch {text:?}"),
        };
        let rule = ruling.rule.map(|rule| format!(" (rule `{rule}`)")).unwrap_or_default();
        let exact = Rule::exactly(function, target, resource.as_ref());
        let permits = |wider: &Policy| wider.on(function, touched).verdict == Verdict::Allow;
        let remedy = self.own.remedy(&exact, ruling, self.lacking.as_deref(), permits);
        let refusal = format!("`{function}` may not {what}: {why}{rule}; {remedy}");
        Err(without_values(&self.context, refusal))
    }

    fn secret(&self, name: &str) -> Result<(), String> {
        self.policy.secret(name, self.identity.as_deref(), self.lacking.as_deref())
    }

    fn numbered_call(
        &self,
        number: u64,
        capability: &str,
        function: &str,
        (target, text): (Target, &str),
    ) -> Result<(), String> {
        self.call(capability, function, target, text)?;
        if self.once.is_empty() || !leaves_machine(target) {
            return Ok(());
        }
        let resource = Resource::of(target, text).map(|resource| self.directory.resolve(resource));
        let touched = TouchedResource::of(target, resource.as_ref());
        if self.own.on(function, touched).verdict != Verdict::Ask {
            return Ok(());
        }
        let fits = |approval: &Approval| {
            approval.function == function
                && approval.scope.contains(function, target, resource.as_ref())
        };
        let always = self.always.lock().unwrap_or_else(PoisonError::into_inner);
        let is_permitted = always.iter().any(fits)
            || self
                .once
                .iter()
                .any(|once| fits(&once.approval) && once.spend((self.number, number)));
        drop(always);
        let refusal = || format!("`{function}` may not touch {text:?}: {SPENT}");
        if is_permitted { Ok(()) } else { Err(without_values(&self.context, refusal())) }
    }
}

/// The denial of a call after the last one that the user approved.
const SPENT: &str = "the user approved it for fewer calls; an approval for the session permits any \
                     number";

impl fmt::Debug for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preflight").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn private_files_are_read_only_by_a_rule_that_names_them() {
        let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect();
        let verdict = |allow: &[&str], deny: &[&str], target, path: &str| {
            let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
            Preflight::new(policy, None).policy().verdict("fs.read", target, path)
        };
        for (allow, deny, path, expected) in [
            ([""; 0].as_slice(), [""; 0].as_slice(), ".env", Verdict::Deny),
            (&[], &[], "a/../b/.ENV", Verdict::Deny),
            (&[], &[], "src/main.rs", Verdict::Allow),
            (&["*", "fs", "fs.read", "read:*"], &[], ".env", Verdict::Deny),
            (&["read:config"], &[], "config/.env", Verdict::Deny),
            (&["read:config/.env"], &[], "config/.env", Verdict::Allow),
            (&["path:.ssh"], &[], ".ssh/id_rsa", Verdict::Allow),
            (&["private"], &[], ".env", Verdict::Allow),
            (&["private"], &["fs"], ".env", Verdict::Deny),
            (&["private"], &["read:config"], "config/.env", Verdict::Deny),
            (&[], &["private"], ".env", Verdict::Deny),
        ] {
            let found = verdict(allow, deny, Target::Read, path);
            assert_eq!(found, expected, "{allow:?} {deny:?} {path}");
        }
        assert_eq!(verdict(&[], &[], Target::Write, ".env"), Verdict::Allow);
        assert_eq!(verdict(&[], &[], Target::Tree, ".config"), Verdict::Deny);
        assert_eq!(verdict(&[], &[], Target::ReadTree, ""), Verdict::Allow);
    }

    #[test]
    fn a_denial_does_not_show_values_of_the_context() {
        let values = [("name", "alice"), ("folder", "notes/alice"), ("n", "1")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let context = Context(Arc::new(values.into_iter().collect()));
        let shown = |text: &str| without_values(&context, text.to_owned());
        assert_eq!(
            shown("`fs.read` may not touch \"notes/alice/1\""),
            "`fs.read` may not touch \"${folder}/1\""
        );
        assert_eq!(shown("`--allow read:/alice`"), "`--allow read:/${name}`");
        assert_eq!(without_values(&Context::default(), "alice".to_owned()), "alice");
    }
}
