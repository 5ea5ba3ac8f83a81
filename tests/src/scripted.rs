//! A model inside the process that says what a test lets it say.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use wattle_agent::model::{Delta, Model, ModelError, ModelReply, ModelRequest};
use wattle_machine::Message;

/// Answers in order and keeps what it was asked. After its last answer it stays silent.
#[derive(Debug)]
pub struct Scripted {
    answers: Mutex<VecDeque<String>>,
    asked: Mutex<Vec<Vec<Message>>>,
}

impl Scripted {
    /// Makes a model with these answers.
    pub fn new(answers: &[&str]) -> Scripted {
        Scripted { answers: Mutex::new(answers.iter().map(ToString::to_string).collect()), asked: Mutex::default() }
    }

    /// Gives the messages of each request so far.
    pub fn asked(&self) -> Vec<Vec<Message>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async move {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.messages.to_vec());
            let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(text) => Ok(ModelReply { text, ..ModelReply::default() }),
                None => std::future::pending().await,
            }
        })
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async move {
            let reply = self.complete(request).await?;
            on_delta(Delta::Text(&reply.text));
            Ok(reply)
        })
    }
}
