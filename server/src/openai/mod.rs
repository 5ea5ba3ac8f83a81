//! The routes for existing clients of the OpenAI API: models, chat completions, responses.
//!
//! A completion is a run. Its progress is sent as reasoning, and its result as the answer. If a
//! client disconnects, its run is cancelled, just as a model would stop generating.

mod chat;
mod conversation;
mod format;
mod models;
mod responses;
mod task;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use wattle_agent::host::machine::{Event, Stop, Usage};
use wattle_agent::host::service::Follower;
use wattle_agent::host::{RunRequest, TenantStore};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::{MessageText, SessionId};
use crate::origin::{OutputOrigin, RunOrigin};
use crate::route::Route;
use crate::start::{self, StartedRun};
use crate::state::Shared;
use crate::stream::CancelOnDrop;

/// Maximum number of steps per completion.
const STEPS: u32 = 10;

/// The model name that selects the server's default agent.
const AGENT: &str = "wattle";

/// Returns the routes of the OpenAI API.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = models::routes();
    routes.extend(chat::routes());
    routes.extend(responses::routes());
    routes
}

/// Checks that a request names a model of this server.
fn check_model(shared: &Shared, name: &str) -> Result<(), ApiError> {
    if models::names(shared).iter().any(|known| known == name) {
        Ok(())
    } else {
        Err(ApiError::unknown_model(name, &models::names(shared)))
    }
}

/// A run whose answer a client is waiting for.
struct Completion {
    run: String,
    /// The run's session, or `None` if the run belongs to no session.
    session: Option<String>,
    follower: Follower,
    /// The guard that cancels the run if the client disconnects before its end.
    guard: Option<CancelOnDrop>,
    answer: StreamedAnswer,
    /// If true, parts of the current thought were sent.
    has_thought: bool,
    /// The address of the page, or an empty string if it is unknown.
    page: String,
    store: TenantStore,
    /// The questions that wait for a person.
    questions: Vec<String>,
}

/// The input of a completion's run.
struct Asked {
    /// The model's name, as listed by `GET /v1/models`.
    model: String,
    message: MessageText,
    session: Option<SessionId>,
    /// Text that is added to the prompt.
    system: Option<String>,
    /// The required output of the run, if any.
    output: Option<OutputOrigin>,
    /// The address of the page, as the client reaches the server.
    page: String,
}

/// Returns the address of the page, as the client of a request reaches the server. A proxy that ends
/// TLS says so in `X-Forwarded-Proto`; the address is only shown to this client.
fn page_address(headers: &HeaderMap) -> String {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_https =
        text(HeaderName::from_static("x-forwarded-proto")).is_some_and(|proto| proto == "https");
    let scheme = if is_https { "https" } else { "http" };
    text(header::HOST).map(|host| format!("{scheme}://{host}/")).unwrap_or_default()
}

/// Starts the run of a completion.
async fn start(
    shared: &Arc<Shared>,
    caller: &Caller,
    asked: Asked,
) -> Result<Completion, ApiError> {
    let Asked { model, message, session, system, output, page } = asked;
    let agent = models::agent(shared, caller, &model).await?;
    let steps = shared.app.steps(STEPS);
    let origin = RunOrigin { system, output, ..RunOrigin::of_agent(&agent, None, steps) };
    let (request, session) = origin.request(message, session);
    let request = RunRequest { needs_client: true, ..request };
    let run = start::start(shared, caller, request).await?;
    Ok(Completion { page, ..Completion::of(shared, caller, run, Some(session)) })
}

/// An update on a completion.
enum Piece {
    /// Text that describes the run's progress.
    Progress(String),
    /// The next part of the answer.
    Text(String),
    /// The completion's final state, sent after the run has ended.
    End(Ended),
}

/// The final state of a completion.
struct Ended {
    text: String,
    usage: Usage,
    /// The reason why the run ended; `None` if it failed.
    stop: Option<Stop>,
}

impl Ended {
    /// Returns the value of the API's `finish_reason`.
    fn finish_reason(&self) -> &'static str {
        match self.stop {
            Some(Stop::MaxSteps | Stop::Timeout | Stop::MaxTokens | Stop::MaxCost) => "length",
            Some(Stop::Truncated | Stop::Repeated) => "length",
            Some(Stop::Blocked) => "content_filter",
            _ => "stop",
        }
    }
}

impl Completion {
    /// Follows a run that was just started. If the completion is dropped before the run ends, the
    /// run is cancelled.
    fn of(
        shared: &Shared,
        caller: &Caller,
        StartedRun { id: run, guard }: StartedRun,
        session: Option<String>,
    ) -> Completion {
        let store = caller.store.clone();
        Completion {
            follower: shared.service.follow(&store, &run, 0).until_parked(),
            run,
            session,
            guard,
            answer: StreamedAnswer::default(),
            has_thought: false,
            page: String::new(),
            store,
            questions: Vec::new(),
        }
    }

    /// Returns the next update. No update follows the end of the run. After an error, the run is
    /// cancelled, but its programs may have had effects, so the client must not repeat the request.
    async fn next(&mut self) -> Result<Piece, ApiError> {
        loop {
            let event = self.follower.next().await;
            let event = event.map_err(|error| ApiError::run_dropped(error, &self.run))?;
            let Some(event) = event else { return self.parked().await.map(Piece::End) };
            if let Some(piece) = self.piece(&event.event) {
                if matches!(piece, Piece::End(_))
                    && let Some(guard) = &mut self.guard
                {
                    guard.disarm();
                }
                return Ok(piece);
            }
        }
    }

    /// Ends the completion of a run that waits for a person. The client cannot wait that long, so the run
    /// goes on without it.
    async fn parked(&mut self) -> Result<Ended, ApiError> {
        self.store.leave_client(&self.run).await?;
        if let Some(guard) = &mut self.guard {
            guard.disarm();
        }
        let questions: String =
            self.questions.iter().map(|question| format!("- {question}\n")).collect();
        let text = format!(
            "This run waits for a person:\n\n{questions}\nAnswer on the page: \
             {}#/run/{}\n\nThe run then goes on, and its result is part of this conversation.",
            self.page, self.run
        );
        Ok(Ended { text, usage: Usage::default(), stop: Some(Stop::Answered) })
    }

    /// Waits until the run ends and returns the completion's final state.
    async fn end(&mut self) -> Result<Ended, ApiError> {
        loop {
            if let Piece::End(ended) = self.next().await? {
                return Ok(ended);
            }
        }
    }
}

impl Completion {
    /// Returns the update for an event, or `None` if the client does not need one.
    fn piece(&mut self, event: &Event) -> Option<Piece> {
        Some(match event {
            Event::ThoughtDelta { text, .. } => {
                self.has_thought = true;
                Piece::Progress(text.clone())
            }
            // The client has the thought if its parts were sent.
            Event::Thinking { .. } if std::mem::take(&mut self.has_thought) => {
                Piece::Progress("\n".to_owned())
            }
            Event::Thinking { content, .. } => Piece::Progress(format!("{content}\n")),
            Event::AnswerDelta { text, is_certain, .. } => {
                return self.answer.add(text, *is_certain).map(Piece::Text);
            }
            Event::AnswerVoid { .. } => {
                self.answer.withdraw();
                return None;
            }
            Event::ToolStart { label, description, .. } => {
                if description.is_empty() {
                    Piece::Progress(format!("▸ {label}\n"))
                } else {
                    Piece::Progress(format!("▸ {label}: {description}\n"))
                }
            }
            Event::ToolResult { success, dur_ms, .. } => {
                let word = if *success { "ok" } else { "failed" };
                Piece::Progress(format!("  {word}, {dur_ms} ms\n"))
            }
            Event::Retry { error, .. } => {
                let line = error.lines().next().unwrap_or_default();
                Piece::Progress(format!("  again: {line}\n"))
            }
            Event::Parked { call, question } => {
                self.questions.push(question.clone());
                Piece::Progress(format!("waits for approval of call {call}: {question}\n"))
            }
            Event::Response { stop: Stop::InvalidOutput, .. } => {
                let text = "the answer does not match the requested schema, and no correction does";
                let (text, usage) = (text.to_owned(), Usage::default());
                Piece::End(Ended { text, usage, stop: None })
            }
            Event::Response { text, usage, stop, data, .. } => {
                // Clients parse the text, so only the JSON value is sent.
                let text = data.as_ref().map_or_else(|| text.clone(), ToString::to_string);
                Piece::End(Ended { text, usage: *usage, stop: Some(*stop) })
            }
            Event::Error { message } => {
                let usage = Usage::default();
                Piece::End(Ended { text: message.clone(), usage, stop: None })
            }
            Event::Delta { .. }
            | Event::Moderated { .. }
            | Event::Recalled { .. }
            | Event::Contributed { .. }
            | Event::LeftOut { .. }
            | Event::Artifact { .. } => return None,
        })
    }
}

/// The answer of a streamed completion. Clients cannot take text back, so a part is sent only once it
/// is certain.
#[derive(Default)]
struct StreamedAnswer {
    /// The text that was sent.
    sent: String,
    /// The parts that are not certain yet, joined.
    held: String,
    /// If true, the text that was sent last is no answer.
    is_withdrawn: bool,
}

/// The text between a part that turned out to be no answer and the answer.
const AGAIN: &str = "\n\n(The answer broke off here and begins again.)\n\n";

impl StreamedAnswer {
    /// Adds a part. Returns the text to send.
    fn add(&mut self, text: &str, is_certain: bool) -> Option<String> {
        self.held.push_str(text);
        is_certain.then(|| self.send())
    }

    fn withdraw(&mut self) {
        self.held.clear();
        self.is_withdrawn = !self.sent.is_empty();
    }

    fn send(&mut self) -> String {
        let again = if std::mem::take(&mut self.is_withdrawn) { AGAIN } else { "" };
        let text = format!("{again}{}", std::mem::take(&mut self.held));
        self.sent.push_str(&text);
        text
    }

    /// Returns the rest of the text that is sent for the answer `whole`.
    fn end(&mut self, whole: &str) -> String {
        let last = self.sent.rsplit(AGAIN).next().unwrap_or_default();
        let (is_withdrawn, rest) = match whole.strip_prefix(last) {
            Some(rest) if !self.is_withdrawn => (false, rest),
            _ => (!self.sent.is_empty(), whole),
        };
        (self.is_withdrawn, self.held) = (is_withdrawn, rest.to_owned());
        self.send()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts that are sent for some parts of an answer and its end.
    fn sent(parts: &[Option<(&str, bool)>], whole: &str) -> (Vec<String>, String) {
        let mut answer = StreamedAnswer::default();
        let mut all = Vec::new();
        for part in parts {
            match part {
                Some((text, is_certain)) => all.extend(answer.add(text, *is_certain)),
                None => answer.withdraw(),
            }
        }
        all.push(answer.end(whole));
        (all, answer.sent)
    }

    #[test]
    fn only_certain_text_is_sent_and_nothing_is_lost() {
        let parts = |all: &[&str]| all.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        let (all, text) = sent(&[Some(("two and ", true)), Some(("two", true))], "two and two");
        assert_eq!((all, text.as_str()), (parts(&["two and ", "two", ""]), "two and two"));
        let (all, _) = sent(&[Some(("two ", false)), Some(("and two", true))], "two and two");
        assert_eq!(all, parts(&["two and two", ""]));
        let (all, _) = sent(&[Some(("I look", false)), None, Some(("four", true))], "four");
        assert_eq!(all, parts(&["four", ""]));
        let (all, text) = sent(&[Some(("two", true)), None, Some(("four", true))], "four");
        let again = format!("{AGAIN}four");
        assert_eq!((all, text), (parts(&["two", &again, ""]), format!("two{again}")));
        let (all, _) = sent(&[Some(("two", true))], "stopped");
        assert_eq!(all, parts(&["two", &format!("{AGAIN}stopped")]));
        assert_eq!(sent(&[], "four").0, parts(&["four"]));
    }
}
