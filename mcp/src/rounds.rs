//! Calls of an MCP client that ask the client's user.
//!
//! Clients of the versions with `initialize` get an `elicitation/create` request during the call.
//! Later versions allow no request to a client: the call is answered by the question, stays parked,
//! and goes on when the client repeats it with the answer of its user.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{
    BooleanSchema, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses,
    PrimitiveSchemaDefinition, ProgressNotificationParam,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wattle_agent::host::capability::policy::{Answer, Approver, Request};

use crate::gateway::{CallEnd, Underway};

/// Maximum number of calls that wait for the answer of a user.
const MAX_PARKED: usize = 16;

/// Number of steps of a call that wait to be sent to a client.
const MAX_STEPS: usize = 64;

/// The time after which a call is denied if the client does not repeat it.
const PATIENCE: Duration = Duration::from_secs(600);

/// The key of the question in a result that asks for input.
const QUESTION: &str = "approval";

/// The calls that wait for the answers of users, by the state that the client returns.
#[derive(Clone, Default)]
pub(crate) struct Parked(Arc<Mutex<HashMap<String, Waiting>>>);

/// A call that waits for the answer of a user.
struct Waiting {
    round: Round,
    answer: oneshot::Sender<Answer>,
}

/// A call up to its end or its next question.
pub(crate) struct Round {
    call: BoxFuture<'static, CallEnd>,
    questions: mpsc::Receiver<Asked>,
    parked: Option<Parked>,
    /// The sentences for the client about the call's steps, and the number of those that it got.
    steps: mpsc::Receiver<String>,
    reported: u32,
    cancel: CancellationToken,
}

/// A question, and the way of its answer.
struct Asked {
    message: String,
    answer: oneshot::Sender<Answer>,
}

/// The end of a round.
pub(crate) enum RoundEnd {
    /// The call has ended.
    Done(CallEnd),
    /// The client's user must answer first.
    Asks(InputRequiredResult),
}

impl Round {
    /// Starts a call for a client's request. Without `parked`, the call cannot wait for the client to
    /// repeat it.
    pub(crate) fn new(
        context: &RequestContext<RoleServer>,
        parked: Option<Parked>,
        call: impl FnOnce(Underway) -> BoxFuture<'static, CallEnd>,
    ) -> Round {
        let (asked, questions) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let (step, steps) = mpsc::channel(MAX_STEPS);
        let underway = Underway {
            cancel: cancel.clone(),
            // A client that reads too slowly misses steps.
            progress: Arc::new(move |message| drop(step.try_send(message))),
            approver: Arc::new(ClientUser::of(context, parked.is_some().then_some(asked))),
        };
        Round { call: call(underway), questions, parked, steps, reported: 0, cancel }
    }

    /// Runs the call until it ends or asks. The call is cancelled with the client's request.
    pub(crate) async fn run(mut self, context: &RequestContext<RoleServer>) -> RoundEnd {
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.cancel.cancel();
                }
                Some(step) = self.steps.recv() => self.report(context, step).await,
                end = &mut self.call => {
                    while let Ok(step) = self.steps.try_recv() {
                        self.report(context, step).await;
                    }
                    return RoundEnd::Done(end);
                }
                Some(Asked { message, answer }) = self.questions.recv() => {
                    // Without parked calls, nobody asks in this way.
                    let Some(parked) = self.parked.clone() else { continue };
                    match parked.park(self, answer) {
                        Ok(state) => return RoundEnd::Asks(input_required(message, state)),
                        Err(round) => self = round,
                    }
                }
            }
        }
    }

    /// Sends a sentence to the client, if it wants progress. All of them precede the result.
    async fn report(&mut self, context: &RequestContext<RoleServer>, message: String) {
        let Some(token) = context.meta.get_progress_token() else { return };
        self.reported += 1;
        let step = f64::from(self.reported);
        let note = ProgressNotificationParam::new(token, step).with_message(message);
        // A client that has left gets no progress.
        _ = context.peer.notify_progress(note).await;
    }
}

impl Parked {
    /// Parks a call until the client repeats it. Returns the state that the client must return, or
    /// the call, denied, if too many calls wait.
    fn park(&self, round: Round, answer: oneshot::Sender<Answer>) -> Result<String, Round> {
        let state = ulid::Ulid::generate().to_string();
        let mut parked = self.0.lock();
        if parked.len() >= MAX_PARKED {
            // The asker is gone if this fails.
            _ = answer.send(Answer::No("too many calls wait for approval".to_owned()));
            return Err(round);
        }
        parked.insert(state.clone(), Waiting { round, answer });
        let (all, key) = (self.clone(), state.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            let late = all.0.lock().remove(&key);
            if let Some(Waiting { round, answer }) = late {
                drop(answer);
                round.cancel.cancel();
                round.call.await;
            }
        });
        Ok(state)
    }

    /// Returns the call that the client repeats with the answer of its user, or `None` if there is
    /// no such call.
    pub(crate) fn resume(&self, state: &str, answers: Option<InputResponses>) -> Option<Round> {
        let Waiting { round, answer } = self.0.lock().remove(state)?;
        let reply = answers.and_then(|mut answers| answers.remove(QUESTION));
        let reply = reply.and_then(|reply| serde_json::from_value::<ElicitResult>(reply).ok());
        // The asker is gone if this fails.
        _ = answer.send(reply.map_or_else(|| Answer::No(String::new()), |reply| read(&reply)));
        Some(round)
    }
}

/// The user of a client, who is asked through the client.
enum ClientUser {
    /// The client cannot ask its user.
    None,
    /// A request to the client.
    Request(Peer<RoleServer>),
    /// A result that asks for input.
    Round(mpsc::Sender<Asked>),
}

impl ClientUser {
    fn of(context: &RequestContext<RoleServer>, asked: Option<mpsc::Sender<Asked>>) -> ClientUser {
        let can_ask = context.client_capabilities().is_some_and(|all| all.elicitation.is_some());
        let has_requests = context.protocol_version().is_none_or(|it| it.has_initialize());
        match asked {
            _ if !can_ask => ClientUser::None,
            _ if has_requests => ClientUser::Request(context.peer.clone()),
            Some(asked) => ClientUser::Round(asked),
            None => ClientUser::None,
        }
    }
}

impl Approver for ClientUser {
    fn ask<'a>(
        &'a self,
        request: Request<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            let mut message = "The program needs your approval:".to_owned();
            for (question, line) in request.questions {
                message = format!("{message}\n- {question}");
                if let Some(line) = line {
                    message = format!("{message}\n  {line}");
                }
            }
            match self {
                ClientUser::None => Answer::No(
                    "the call needs approval, and this MCP client cannot ask its user; the \
                     operator's `--allow` permits it"
                        .to_owned(),
                ),
                ClientUser::Request(peer) => match peer.create_elicitation(form(message)).await {
                    Ok(reply) => read(&reply),
                    Err(error) => Answer::No(format!("the client did not answer: {error}")),
                },
                ClientUser::Round(asked) => {
                    let (answer, reply) = oneshot::channel();
                    // A call that is given up is denied.
                    _ = asked.send(Asked { message, answer }).await;
                    reply.await.unwrap_or_else(|_| Answer::No(String::new()))
                }
            }
        })
    }
}

/// Returns a question to the user: a form with one switch.
fn form(message: String) -> ElicitRequestParams {
    let approve = PrimitiveSchemaDefinition::Boolean(BooleanSchema::new());
    let properties = BTreeMap::from([("approve".to_owned(), approve)]);
    let mut requested_schema = ElicitationSchema::new(properties);
    requested_schema.required = Some(vec!["approve".to_owned()]);
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

fn input_required(message: String, state: String) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(message)));
    let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(state))
}

/// Returns the answer of a user.
fn read(reply: &ElicitResult) -> Answer {
    let content = reply.content.as_ref();
    let approves = content.and_then(|it| it.get("approve")).and_then(Json::as_bool);
    match (&reply.action, approves) {
        (ElicitationAction::Accept, Some(true)) => Answer::Yes,
        _ => Answer::No(String::new()),
    }
}
