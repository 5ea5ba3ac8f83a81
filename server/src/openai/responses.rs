//! `POST /v1/responses` and `GET /v1/responses/{id}`: runs as responses of the OpenAI API.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_agent::host::Scope;
use wattle_agent::host::machine::{Stop, Usage};
use wattle_agent::host::service::{RunStatus, RunView};

use super::chat::FAILED;
use super::conversation::{ClientMessage, Conversation, Sender};
use super::format::TextFormat;
use super::{Asked, Completion, Ended, Piece, check_model, page_address, start};
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::path::Path;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;
use crate::stream::frames;

/// The prefix of a response's id. The run's id follows.
const PREFIX: &str = "resp_";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "POST",
            "/v1/responses",
            Scope::Run,
            post(create),
            "Creates a response, as in the OpenAI API.",
        )
        .body::<ResponseBody>()
        .json::<ResponseView>(200, "The response, or a stream of its events.")
        .streams()
        .errors(&[NOT_JSON, NOT_FOUND, INVALID, BUSY, FULL, FAILED]),
        Route::new("GET", "/v1/responses/{id}", Scope::Read, get(show), "Returns a response.")
            .json::<ResponseView>(200, "The response.")
            .errors(&[NOT_FOUND]),
    ]
}

/// A request for a response. Fields of the OpenAI API that are not listed here have no effect.
#[derive(Debug, Deserialize, JsonSchema)]
struct ResponseBody {
    /// The model's name, as listed by `GET /v1/models`.
    model: String,
    /// The message, or a conversation whose last message is from the user.
    input: Input,
    /// Text that is added to the prompt.
    #[serde(default)]
    instructions: Option<String>,
    /// The id of the person on whose behalf the client sends the request. Only requests for the
    /// same person continue a session.
    #[serde(default)]
    user: Option<String>,
    /// The id of the response that this response continues.
    #[serde(default)]
    previous_response_id: Option<String>,
    /// If true, the response is streamed.
    #[serde(default)]
    stream: Option<bool>,
    /// The client's functions. Must be empty, because a run has its own programs.
    #[serde(default)]
    tools: Option<Vec<Value>>,
    /// Settings for the text of the answer.
    #[serde(default)]
    text: Option<TextSettings>,
}

/// Settings for the text of an answer.
#[derive(Debug, Deserialize, JsonSchema)]
struct TextSettings {
    /// The format. Default: text.
    #[serde(default)]
    format: Option<TextFormat>,
}

/// The input of a request for a response.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Input {
    /// A message.
    Text(String),
    /// A conversation.
    Messages(Vec<ClientMessage>),
}

/// A response of the OpenAI API, which represents a run.
#[derive(Debug, Serialize, JsonSchema)]
struct ResponseView {
    /// The id: `resp_` and the run's id.
    id: String,
    /// Always `response`.
    object: String,
    /// Time of the request, in seconds since 1970.
    created_at: u64,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    status: String,
    /// The requested model.
    model: String,
    /// The answer, as one message.
    output: Vec<Value>,
    /// The error, if the response failed.
    error: Option<Value>,
    /// The reason why the response is incomplete.
    incomplete_details: Option<Value>,
    /// The request's instructions. Always null in `GET /v1/responses/{id}`.
    instructions: Option<String>,
    /// The id of the response that this one continues. Always null in `GET /v1/responses/{id}`.
    previous_response_id: Option<String>,
    /// Always empty.
    tools: Vec<Value>,
    /// Always `auto`.
    tool_choice: String,
    /// Always true.
    parallel_tool_calls: bool,
    /// Always empty.
    metadata: Value,
    /// Token usage. Null if the response failed or has not ended.
    usage: Option<ResponseUsage>,
}

/// Token usage of a response.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct ResponseUsage {
    /// Number of tokens in the messages sent to the model.
    input_tokens: u64,
    /// Details of the input tokens.
    input_tokens_details: InputDetails,
    /// Number of tokens that the model generated.
    output_tokens: u64,
    /// Details of the output tokens.
    output_tokens_details: OutputDetails,
    /// The sum of input and output tokens.
    total_tokens: u64,
}

/// Details of the input tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct InputDetails {
    /// Number of input tokens read from the provider's cache.
    cached_tokens: u64,
}

/// Details of the output tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct OutputDetails {
    /// Always 0.
    reasoning_tokens: u64,
}

impl From<Usage> for ResponseUsage {
    fn from(usage: Usage) -> ResponseUsage {
        ResponseUsage {
            input_tokens: usage.prompt,
            input_tokens_details: InputDetails { cached_tokens: usage.cached },
            output_tokens: usage.completion,
            output_tokens_details: OutputDetails { reasoning_tokens: 0 },
            total_tokens: usage.total(),
        }
    }
}

async fn create(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let page = page_address(request.headers());
    let body: ResponseBody = read_json(request, &shared.limits).await?;
    check_model(&shared, &body.model)?;
    if body.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(ApiError::invalid_field(
            "`tools`: a run has its own programs; send no functions",
        ));
    }
    let format = body.text.and_then(|text| text.format);
    let output = format.map(TextFormat::output).transpose()?.flatten();
    let messages = match body.input {
        Input::Text(text) => vec![ClientMessage::user(text)],
        Input::Messages(messages) => messages,
    };
    let sender = Sender {
        model: body.model.clone(),
        user: body.user,
        instructions: body.instructions.clone(),
    };
    let mut conversation = Conversation::read(&messages, sender)?;
    let session = match &body.previous_response_id {
        Some(id) if conversation.earlier.is_empty() => {
            let view = view_of(&shared, &caller, id).await?;
            view.session_id.and_then(SessionId::new)
        }
        Some(_) => {
            return Err(ApiError::invalid_field(
                "`input`: with `previous_response_id`, send the new message alone",
            ));
        }
        None => Some(conversation.session(&caller).await?),
    };
    let asked = Asked {
        model: body.model.clone(),
        message: conversation.message.clone(),
        session,
        system: conversation.system.clone(),
        output,
        page,
    };
    let run = match start(&shared, &caller, asked).await {
        Ok(run) => run,
        Err(error) => {
            conversation.give_back().await;
            return Err(error);
        }
    };
    // The messages of a request that names the previous response are not the whole conversation.
    let rest = body.previous_response_id.is_none().then_some((caller, conversation));
    let pending = ResponseView {
        model: body.model,
        instructions: body.instructions,
        previous_response_id: body.previous_response_id,
        ..ResponseView::new(&run.run, wattle_agent::host::now_ms() / 1_000)
    };
    if body.stream.unwrap_or(false) {
        return Ok(streaming(&shared, run, pending, rest));
    }
    let (mut run, mut rest) = (run, rest);
    let ended = run.end().await;
    remember(&mut rest, run.session.as_deref(), ended.as_ref().ok()).await;
    let ended = ended?;
    Ok(Json(pending.ended(&ended)).into_response())
}

/// Records a conversation with the answer of its run. If the run failed, lets the client repeat its
/// request in the same session. `ended` is `None` if the end of the run is unknown.
async fn remember(
    rest: &mut Option<(Caller, Conversation)>,
    session: Option<&str>,
    ended: Option<&Ended>,
) {
    let Some((caller, mut conversation)) = rest.take() else { return };
    match (ended, session) {
        (Some(Ended { text, stop: Some(_), .. }), Some(session)) => {
            conversation.remember(&caller, session, text).await;
        }
        _ => conversation.give_back().await,
    }
}

/// Returns the run of a response. Fails if the id is unknown.
async fn view_of(shared: &Shared, caller: &Caller, id: &str) -> Result<RunView, ApiError> {
    let view = match id.strip_prefix(PREFIX) {
        Some(run) => shared.service.get(&caller.store, run).await?,
        None => None,
    };
    view.ok_or_else(|| ApiError::not_found("response", id))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ResponseView>, ApiError> {
    let view = view_of(&shared, &caller, &id).await?;
    let base = ResponseView {
        model: view.model.clone(),
        ..ResponseView::new(&view.id, view.created / 1_000)
    };
    Ok(Json(match view.status {
        RunStatus::Queued => ResponseView { status: "queued".to_owned(), ..base },
        RunStatus::Running | RunStatus::Parked => base,
        _ => base.ended(&Ended {
            text: match view.data {
                Some(data) => data.to_string(),
                None => view.result.unwrap_or_default(),
            },
            usage: view.usage,
            stop: view.stop.filter(|stop| *stop != Stop::InvalidOutput),
        }),
    }))
}

impl ResponseView {
    /// Creates a response that is in progress.
    fn new(run: &str, created_at: u64) -> ResponseView {
        ResponseView {
            id: format!("{PREFIX}{run}"),
            object: "response".to_owned(),
            created_at,
            status: "in_progress".to_owned(),
            model: String::new(),
            output: Vec::new(),
            error: None,
            incomplete_details: None,
            instructions: None,
            previous_response_id: None,
            tools: Vec::new(),
            tool_choice: "auto".to_owned(),
            parallel_tool_calls: true,
            metadata: json!({}),
            usage: None,
        }
    }

    /// Returns the response in its final state.
    fn ended(self, ended: &Ended) -> ResponseView {
        let Some(stop) = ended.stop else {
            let error = json!({"code": "server_error", "message": ended.text});
            return ResponseView { status: "failed".to_owned(), error: Some(error), ..self };
        };
        let (status, incomplete) = match (stop, ended.finish_reason()) {
            (Stop::Cancelled, _) => ("cancelled", None),
            (_, "length") => ("incomplete", Some(json!({"reason": "max_output_tokens"}))),
            (_, "content_filter") => ("incomplete", Some(json!({"reason": "content_filter"}))),
            _ => ("completed", None),
        };
        let output = vec![message(&self.id, "completed", Some(&ended.text))];
        ResponseView {
            status: status.to_owned(),
            incomplete_details: incomplete,
            usage: Some(ended.usage.into()),
            output,
            ..self
        }
    }
}

/// Returns the output message of a response.
fn message(response: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(part).into_iter().collect();
    json!({
        "type": "message",
        "id": response.replacen(PREFIX, "msg_", 1),
        "role": "assistant",
        "status": status,
        "content": content,
    })
}

/// Returns the output item with the steps and thoughts of a response.
fn reasoning(response: &str, text: Option<&str>) -> Value {
    let summary: Vec<Value> =
        text.map(|text| json!({"type": "summary_text", "text": text})).into_iter().collect();
    json!({"type": "reasoning", "id": response.replacen(PREFIX, "rs_", 1), "summary": summary})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// The state of a stream.
struct Events {
    run: Completion,
    /// The response in progress, or `None` after its end.
    pending: Option<ResponseView>,
    /// The conversation to record at the end.
    rest: Option<(Caller, Conversation)>,
    number: u64,
    ready: VecDeque<Frame>,
    /// The reasoning that was sent, if there is any.
    reasoning: Option<String>,
    /// The index of the message among the items, once it has begun.
    message: Option<usize>,
}

fn streaming(
    shared: &Shared,
    run: Completion,
    pending: ResponseView,
    rest: Option<(Caller, Conversation)>,
) -> Response {
    let mut events = Events {
        run,
        pending: None,
        rest,
        number: 0,
        ready: VecDeque::new(),
        reasoning: None,
        message: None,
    };
    events.push("response.created", json!({"response": pending}));
    events.push("response.in_progress", json!({"response": pending}));
    events.pending = Some(pending);
    let events = stream::unfold(events, |mut events| async {
        let frame = events.next().await?;
        Some((frame, events))
    });
    frames(events, shared.limits.heartbeat)
}

impl Events {
    fn push(&mut self, kind: &str, mut event: Value) {
        if let Some(object) = event.as_object_mut() {
            object.insert("type".to_owned(), kind.into());
            object.insert("sequence_number".to_owned(), self.number.into());
        }
        self.number += 1;
        self.ready.push_back(Frame::default().event(kind).data(event.to_string()));
    }

    async fn next(&mut self) -> Option<Frame> {
        while self.ready.is_empty() {
            let pending = self.pending.take()?;
            match self.run.next().await {
                Ok(Piece::Progress(text)) => {
                    self.reason(&pending.id, &text);
                    self.pending = Some(pending);
                }
                Ok(Piece::Text(text)) => {
                    self.write(&pending.id, &text);
                    self.pending = Some(pending);
                }
                Ok(Piece::End(ended)) => {
                    let rest = match ended.stop {
                        Some(_) => self.run.answer.end(&ended.text),
                        None => String::new(),
                    };
                    let text = self.run.answer.sent.clone();
                    let ended = if ended.stop.is_some() { Ended { text, ..ended } } else { ended };
                    let session = self.run.session.as_deref();
                    remember(&mut self.rest, session, Some(&ended)).await;
                    self.end(pending, &rest, &ended);
                }
                Err(error) => {
                    remember(&mut self.rest, None, None).await;
                    self.push("error", error.as_event());
                }
            }
        }
        self.ready.pop_front()
    }

    /// Sends a part of the reasoning. The first part begins the item.
    fn reason(&mut self, id: &str, text: &str) {
        if self.message.is_some() {
            return;
        }
        let item = reasoning(id, None);
        let at = in_item(&item, json!({"output_index": 0, "summary_index": 0}));
        let before = self.reasoning.get_or_insert_default().len();
        if before == 0 {
            self.push("response.output_item.added", json!({"output_index": 0, "item": item}));
            let part = json!({"type": "summary_text", "text": ""});
            self.push("response.reasoning_summary_part.added", at(json!({"part": part})));
        }
        self.push("response.reasoning_summary_text.delta", at(json!({"delta": text})));
        self.reasoning.get_or_insert_default().push_str(text);
    }

    /// Ends the reasoning. Returns its item.
    fn end_reasoning(&mut self, id: &str) -> Option<Value> {
        let text = self.reasoning.clone()?;
        let item = reasoning(id, Some(&text));
        let at = in_item(&item, json!({"output_index": 0, "summary_index": 0}));
        self.push("response.reasoning_summary_text.done", at(json!({"text": text})));
        let part = json!({"type": "summary_text", "text": text});
        self.push("response.reasoning_summary_part.done", at(json!({"part": part})));
        self.push("response.output_item.done", json!({"output_index": 0, "item": item}));
        Some(item)
    }

    /// Sends a part of the answer. The first part begins the message.
    fn write(&mut self, id: &str, text: &str) {
        let index = match self.message {
            Some(index) => index,
            None => {
                let index = usize::from(self.end_reasoning(id).is_some());
                self.message = Some(index);
                let item = message(id, "in_progress", None);
                let at = in_item(&item, json!({"output_index": index, "content_index": 0}));
                let added = json!({"output_index": index, "item": item});
                self.push("response.output_item.added", added);
                self.push("response.content_part.added", at(json!({"part": part("")})));
                index
            }
        };
        let item = message(id, "in_progress", None);
        let at = in_item(&item, json!({"output_index": index, "content_index": 0}));
        self.push("response.output_text.delta", at(json!({"delta": text, "logprobs": []})));
    }

    fn end(&mut self, pending: ResponseView, rest: &str, ended: &Ended) {
        let id = pending.id.clone();
        let mut response = pending.ended(ended);
        if ended.stop.is_none() {
            return self.push("response.failed", json!({"response": response}));
        }
        if self.message.is_none() || !rest.is_empty() {
            self.write(&id, rest);
        }
        let index = self.message.unwrap_or_default();
        let text = ended.text.as_str();
        let item = message(&id, "completed", Some(text));
        let at = in_item(&item, json!({"output_index": index, "content_index": 0}));
        self.push("response.output_text.done", at(json!({"text": text, "logprobs": []})));
        self.push("response.content_part.done", at(json!({"part": part(text)})));
        self.push("response.output_item.done", json!({"output_index": index, "item": item}));
        if let Some(text) = &self.reasoning {
            response.output.insert(0, reasoning(&id, Some(text)));
        }
        let kind = match response.status.as_str() {
            "completed" => "response.completed",
            _ => "response.incomplete",
        };
        self.push(kind, json!({"response": response}));
    }
}

/// Returns a function that adds the place in an item to the fields of an event.
fn in_item(item: &Value, place: Value) -> impl Fn(Value) -> Value + use<> {
    let id = item.get("id").cloned().unwrap_or_default();
    move |more| {
        let mut at = place.clone();
        if let (Some(at), Some(more)) = (at.as_object_mut(), more.as_object()) {
            at.insert("item_id".to_owned(), id.clone());
            at.extend(more.clone());
        }
        at
    }
}
