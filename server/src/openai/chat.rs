//! `POST /v1/chat/completions`: answers a conversation with a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_agent::host::Scope;
use wattle_agent::host::machine::Usage;

use super::conversation::{ClientMessage, Conversation, Sender};
use super::format::ChatFormat;
use super::{Asked, Completion, Ended, Piece, check_model, page_address, start, task};
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;
use crate::stream::frames;

/// The header with the id of the session that the conversation continues.
const SESSION: HeaderName = HeaderName::from_static("x-session-id");

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "POST",
            "/v1/chat/completions",
            Scope::Run,
            post(complete),
            "Answers a conversation, as in the OpenAI API.",
        )
        .body::<ChatBody>()
        .json::<ChatCompletion>(200, "The answer, or a stream of its pieces.")
        .streams()
        .errors(&[NOT_JSON, NOT_FOUND, INVALID, BUSY, FULL, FAILED]),
    ]
}

/// The error response if the model or the run failed.
pub(super) const FAILED: (u16, &str) = (502, "The run failed.");

/// A request for a completion. Fields of the OpenAI API that are not listed here have no effect.
#[derive(Debug, Deserialize, JsonSchema)]
struct ChatBody {
    /// The model's name, as listed by `GET /v1/models`.
    model: String,
    /// The conversation. The last message must be from the user.
    messages: Vec<ClientMessage>,
    /// The id of the person on whose behalf the client sends the request. Only requests for the
    /// same person continue a session.
    #[serde(default)]
    user: Option<String>,
    /// If true, the answer is streamed.
    #[serde(default)]
    stream: Option<bool>,
    /// Options of a stream.
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    /// The client's functions. Must be empty, because a run has its own programs.
    #[serde(default)]
    tools: Option<Vec<Value>>,
    /// The format of the answer. Default: text.
    #[serde(default)]
    response_format: Option<ChatFormat>,
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct StreamOptions {
    /// If true, the last chunk contains the token usage.
    #[serde(default)]
    include_usage: Option<bool>,
}

/// The response to a chat request that is not streamed.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatCompletion {
    /// The id: `chatcmpl-` and the run's id.
    id: String,
    /// Always `chat.completion`.
    object: String,
    /// Time of the request, in seconds since 1970.
    created: u64,
    /// The requested model.
    model: String,
    /// The only choice, which contains the answer.
    choices: Vec<Choice>,
    /// Token usage of the whole run.
    usage: ChatUsage,
}

/// An alternative answer. A completion contains only one.
#[derive(Debug, Serialize, JsonSchema)]
struct Choice {
    /// Always 0.
    index: u32,
    /// The message.
    message: Answer,
    /// `stop`, `length` or `content_filter`.
    finish_reason: String,
    /// Always null.
    logprobs: Option<Value>,
}

/// The message that contains the answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    /// Always `assistant`.
    role: String,
    /// The text.
    content: String,
    /// Always null.
    refusal: Option<String>,
}

/// Token usage of a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct ChatUsage {
    /// Number of tokens in the messages sent to the model.
    prompt_tokens: u64,
    /// Number of tokens that the model generated.
    completion_tokens: u64,
    /// The sum of prompt and completion tokens.
    total_tokens: u64,
    /// Details of the prompt tokens.
    prompt_tokens_details: PromptDetails,
}

/// Details of the prompt tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct PromptDetails {
    /// Number of prompt tokens read from the provider's cache.
    cached_tokens: u64,
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> ChatUsage {
        ChatUsage {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.total(),
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached },
        }
    }
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let given = session_header(request.headers())?;
    let page = page_address(request.headers());
    let body: ChatBody = read_json(request, &shared.limits).await?;
    check_model(&shared, &body.model)?;
    if body.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(ApiError::invalid_field(
            "`tools`: a run has its own programs; send no functions",
        ));
    }
    let output = body.response_format.map(ChatFormat::output).transpose()?.flatten();
    let sender = Sender { model: body.model.clone(), user: body.user, instructions: None };
    let mut conversation = Conversation::read(&body.messages, sender)?;
    let streamed = body.stream.unwrap_or(false);
    let with_usage = body.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
    let head =
        Head { model: body.model, created: wattle_agent::host::now_ms() / 1_000, with_usage };
    let run = if output.is_none() && task::is_task(&conversation) {
        task::start(&shared, &caller, &head.model, &conversation).await?
    } else {
        let session = match given {
            Some(session) => session,
            None => conversation.session(&caller).await?,
        };
        let asked = Asked {
            model: head.model.clone(),
            message: conversation.message.clone(),
            session: Some(session),
            system: conversation.system.clone(),
            output,
            page,
        };
        match start(&shared, &caller, asked).await {
            Ok(run) => run,
            Err(error) => {
                conversation.give_back().await;
                return Err(error);
            }
        }
    };
    let session = run.session.as_deref().map(HeaderValue::from_str);
    let session = session.transpose().map_err(ApiError::internal)?;
    let mut response = if streamed {
        streaming(&shared, caller, conversation, head, run)
    } else {
        whole(&caller, conversation, &head, run).await?.into_response()
    };
    if let Some(session) = session {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

/// Returns the session named in the request's headers, if any.
fn session_header(headers: &HeaderMap) -> Result<Option<SessionId>, ApiError> {
    let Some(value) = headers.get(SESSION) else { return Ok(None) };
    let session = value.to_str().ok().and_then(|text| SessionId::new(text.to_owned()));
    let wrong = || {
        ApiError::invalid_field(format!(
            "`x-session-id`: a session id is {}",
            wattle_agent::host::SESSION_ID
        ))
    };
    session.map(Some).ok_or_else(wrong)
}

/// Waits for the complete answer and records the conversation.
async fn whole(
    caller: &Caller,
    mut conversation: Conversation,
    head: &Head,
    mut run: Completion,
) -> Result<Json<ChatCompletion>, ApiError> {
    let ended = match run.end().await {
        Ok(ended) if ended.stop.is_none() => Err(ApiError::model_failed(&ended.text)),
        ended => ended,
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            conversation.give_back().await;
            return Err(error);
        }
    };
    if let Some(session) = &run.session {
        conversation.remember(caller, session, &ended.text).await;
    }
    Ok(Json(head.whole(format!("chatcmpl-{}", run.run), &ended)))
}

/// The state of a stream.
struct Chunks {
    head: Head,
    id: String,
    run: Completion,
    rest: Option<(Caller, Conversation)>,
    ready: std::collections::VecDeque<Frame>,
    is_over: bool,
}

fn streaming(
    shared: &Shared,
    caller: Caller,
    conversation: Conversation,
    head: Head,
    run: Completion,
) -> Response {
    let id = format!("chatcmpl-{}", run.run);
    let first = head.chunk(&id, json!({"role": "assistant", "content": ""}), None);
    let chunks = Chunks {
        head,
        id,
        run,
        rest: Some((caller, conversation)),
        ready: [first].into(),
        is_over: false,
    };
    let chunks = stream::unfold(chunks, |mut chunks| async {
        let frame = chunks.next().await?;
        Some((frame, chunks))
    });
    frames(chunks, shared.limits.heartbeat)
}

impl Chunks {
    async fn next(&mut self) -> Option<Frame> {
        if let Some(frame) = self.ready.pop_front() {
            return Some(frame);
        }
        if self.is_over {
            return None;
        }
        match self.run.next().await {
            Ok(Piece::Progress(text)) => {
                Some(self.head.chunk(&self.id, json!({"reasoning_content": text}), None))
            }
            Ok(Piece::Text(text)) => {
                Some(self.head.chunk(&self.id, json!({"content": text}), None))
            }
            Ok(Piece::End(ended)) if ended.stop.is_none() => {
                Some(self.fail(&ApiError::model_failed(&ended.text)).await)
            }
            Ok(Piece::End(ended)) => {
                self.is_over = true;
                let rest = self.run.answer.end(&ended.text);
                if let (Some((caller, conversation)), Some(session)) =
                    (self.rest.take(), self.run.session.as_deref())
                {
                    // The client sends back what it received.
                    conversation.remember(&caller, session, &self.run.answer.sent).await;
                }
                self.ready = self.head.last(&self.id, &rest, &ended).collect();
                self.ready.pop_front()
            }
            Err(error) => Some(self.fail(&error).await),
        }
    }

    /// Ends the stream and returns the frame that reports an error within it.
    async fn fail(&mut self, error: &ApiError) -> Frame {
        self.is_over = true;
        if let Some((_, conversation)) = &mut self.rest {
            conversation.give_back().await;
        }
        Frame::default().data(error.json())
    }
}

/// The fields that all chunks of an answer share.
struct Head {
    model: String,
    created: u64,
    with_usage: bool,
}

impl Head {
    fn whole(&self, id: String, ended: &Ended) -> ChatCompletion {
        let message =
            Answer { role: "assistant".to_owned(), content: ended.text.clone(), refusal: None };
        let finish_reason = ended.finish_reason().to_owned();
        ChatCompletion {
            id,
            object: "chat.completion".to_owned(),
            created: self.created,
            model: self.model.clone(),
            choices: vec![Choice { index: 0, message, finish_reason, logprobs: None }],
            usage: ended.usage.into(),
        }
    }

    fn chunk(&self, id: &str, delta: Value, finish_reason: Option<&str>) -> Frame {
        self.frame(id, json!([{"index": 0, "delta": delta, "finish_reason": finish_reason}]), None)
    }

    fn frame(&self, id: &str, choices: Value, usage: Option<ChatUsage>) -> Frame {
        let mut chunk = json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let (Some(usage), Some(object)) = (usage, chunk.as_object_mut()) {
            object.insert("usage".to_owned(), serde_json::to_value(usage).unwrap_or_default());
        }
        Frame::default().data(chunk.to_string())
    }

    /// Returns the last frames of a stream, starting with the rest of the answer.
    fn last(&self, id: &str, rest: &str, ended: &Ended) -> impl Iterator<Item = Frame> + use<> {
        let rest = (!rest.is_empty()).then(|| self.chunk(id, json!({"content": rest}), None));
        let usage = self.with_usage.then(|| self.frame(id, json!([]), Some(ended.usage.into())));
        let end = self.chunk(id, json!({}), Some(ended.finish_reason()));
        rest.into_iter().chain([end]).chain(usage).chain([Frame::default().data("[DONE]")])
    }
}
