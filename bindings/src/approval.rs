//! Approvals: the questions about what a program would do, and the answers of the application.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value as Json;
use wattle_agent::host::capability::policy::{Answer, Approver, Request};

use crate::Error;

/// A request for the approval of everything that a program would do and that a rule asks about.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovalRequest {
    /// The questions. The program runs only if all are approved.
    pub questions: Vec<ApprovalQuestion>,
    /// The program's source.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
}

/// One effect that needs approval.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovalQuestion {
    /// The question as a sentence, such as `` `http.get` would reach https://example.com/ ``.
    pub text: String,
    /// The full name of the host function, such as `http.get`.
    pub function: String,
    /// The effect, such as `reach https://example.com/`.
    pub effect: String,
    /// The line of the program that causes the effect, counted from 1, if it is known.
    pub line: Option<u32>,
}

impl ApprovalRequest {
    fn of(request: Request<'_>) -> ApprovalRequest {
        let questions = request.questions.iter().map(|(question, line)| ApprovalQuestion {
            text: question.to_string(),
            function: question.touch.function.clone(),
            effect: question.touch.what.clone(),
            line: line.as_ref().map(|line| line.number),
        });
        ApprovalRequest {
            questions: questions.collect(),
            program: request.program.to_owned(),
            args: request.args.to_vec(),
        }
    }
}

/// Reads an answer of the application: `true`, `false`, `"always"` (for the rest of the run),
/// `"later"` (a run with a store is then parked), or any other string, which is the reason for a
/// denial.
///
/// # Errors
/// If the value is neither a bool nor a string.
pub fn answer(value: &Json) -> Result<Answer, Error> {
    match value {
        Json::Bool(true) => Ok(Answer::Yes),
        Json::Bool(false) => Ok(Answer::No(String::new())),
        Json::String(word) if word == "always" => Ok(Answer::Always),
        Json::String(word) if word == "later" => Ok(Answer::Later),
        Json::String(reason) => Ok(Answer::No(reason.clone())),
        other => Err(Error::settings(format!(
            "an approval is true, false, \"always\", \"later\" or the reason for a denial, not \
             {other}"
        ))),
    }
}

/// Creates an approver that asks the application.
pub fn approver(
    ask: impl Fn(ApprovalRequest) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
) -> Arc<dyn Approver> {
    Arc::new(Asking(ask))
}

struct Asking<F>(F);

impl<F: Fn(ApprovalRequest) -> BoxFuture<'static, Answer> + Send + Sync> Approver for Asking<F> {
    fn ask<'a>(
        &'a self,
        request: Request<'a>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        (self.0)(ApprovalRequest::of(request))
    }
}
