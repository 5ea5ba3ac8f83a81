//! A model within the test process that returns scripted answers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_agent::model::{
    FunctionChoice, FunctionTool, Model, ModelError, ModelReply, ModelRequest, ThinkingEffort,
};
use wattle_machine::{FunctionCall, Message};

/// A model that returns its answers in order and records its requests. After the last answer,
/// requests wait forever.
#[derive(Clone, Debug)]
pub struct Scripted {
    answers: Arc<Mutex<VecDeque<ModelReply>>>,
    requests: Arc<Mutex<Vec<Vec<Message>>>>,
    functions: Arc<Mutex<Vec<Vec<FunctionTool>>>>,
    choices: Arc<Mutex<Vec<FunctionChoice>>>,
    efforts: Arc<Mutex<Vec<Option<ThinkingEffort>>>>,
    constraints: Arc<Mutex<Vec<Option<String>>>>,
    takes_functions: bool,
    constrains_output: bool,
}

impl Scripted {
    /// Creates a model with the given answers.
    pub fn new(answers: &[&str]) -> Scripted {
        let reply = |text: &&str| ModelReply { text: (*text).to_owned(), ..ModelReply::default() };
        Scripted { takes_functions: false, ..Scripted::calling(answers.iter().map(reply)) }
    }

    /// Creates a model that supports functions, with the given replies.
    pub fn calling(replies: impl IntoIterator<Item = ModelReply>) -> Scripted {
        let answers = Arc::new(Mutex::new(replies.into_iter().collect()));
        Scripted {
            answers,
            requests: Arc::default(),
            functions: Arc::default(),
            choices: Arc::default(),
            efforts: Arc::default(),
            constraints: Arc::default(),
            takes_functions: true,
            constrains_output: false,
        }
    }

    /// Enables support for constraining answers to a schema.
    pub fn constraining(self) -> Scripted {
        Scripted { constrains_output: true, ..self }
    }

    /// Returns the messages of each request so far, [without nonces](crate::plain).
    pub fn requests(&self) -> Vec<Vec<Message>> {
        let plain = |message: Message| Message {
            content: crate::plain(&message.content).into(),
            ..message
        };
        self.requests_verbatim()
            .into_iter()
            .map(|messages| messages.into_iter().map(plain).collect())
            .collect()
    }

    /// Returns the messages of each request so far, byte for byte.
    pub fn requests_verbatim(&self) -> Vec<Vec<Message>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names of the functions offered in each request so far.
    pub fn offered(&self) -> Vec<Vec<String>> {
        let names = |all: Vec<FunctionTool>| all.into_iter().map(|one| one.name).collect();
        self.functions().into_iter().map(names).collect()
    }

    /// Returns the functions offered in each request so far.
    pub fn functions(&self) -> Vec<Vec<FunctionTool>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the function choice of each request so far.
    pub fn choices(&self) -> Vec<FunctionChoice> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the reasoning effort of each request so far.
    pub fn efforts(&self) -> Vec<Option<ThinkingEffort>> {
        self.efforts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the schema name of each request so far.
    pub fn constraints(&self) -> Vec<Option<String>> {
        self.constraints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates a reply that calls functions. Each item in `calls` is a function's name and its
/// arguments.
pub fn calls(calls: &[(&str, &str)]) -> ModelReply {
    let call = |((name, arguments), number): (&(&str, &str), u32)| FunctionCall {
        id: format!("c{number}"),
        name: (*name).to_owned(),
        arguments: (*arguments).into(),
    };
    ModelReply { calls: calls.iter().zip(1..).map(call).collect(), ..ModelReply::default() }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn takes_functions(&self) -> bool {
        self.takes_functions
    }

    fn constrains_output(&self) -> bool {
        self.constrains_output
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async move {
            self.requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request.messages.to_vec());
            let functions = request.functions.to_vec();
            self.functions.lock().unwrap_or_else(PoisonError::into_inner).push(functions);
            self.choices
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request.function_choice);
            self.efforts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request.thinking_effort);
            let schema = request.output.map(|output| output.name().to_owned());
            self.constraints.lock().unwrap_or_else(PoisonError::into_inner).push(schema);
            let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(reply) => Ok(reply),
                None => std::future::pending().await,
            }
        })
    }
}
