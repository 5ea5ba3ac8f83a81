//! Wake-ups between processes that share a store: a process that changes data wakes up the
//! processes that wait for this data, so that they poll the store immediately.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::Store;

/// The subject of a wake-up.
#[derive(Clone, Copy, Debug)]
pub enum Topic<'a> {
    /// A queued run that a process can start.
    Queue,
    /// A request to cancel a run.
    Cancellations,
    /// New events of the run with this id.
    Run(&'a str),
}

impl Topic<'_> {
    fn text(self) -> String {
        match self {
            Topic::Queue => "queue".to_owned(),
            Topic::Cancellations => "cancellations".to_owned(),
            Topic::Run(run) => format!("run {run}"),
        }
    }
}

/// A receiver of the wake-ups that are sent after its creation.
pub struct Wakes(Option<broadcast::Receiver<Arc<str>>>);

impl Wakes {
    /// Waits for a wake-up with one of these topics, or for a sign that wake-ups may have been
    /// lost. Waits forever if the store does not support wake-ups.
    pub async fn on(&mut self, topics: &[Topic<'_>]) {
        let topics: Vec<String> = topics.iter().map(|topic| topic.text()).collect();
        while let Some(receiver) = &mut self.0 {
            match receiver.recv().await {
                Ok(topic) if topic.is_empty() || topics.iter().any(|own| *own == *topic) => return,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => self.0 = None,
            }
        }
        std::future::pending().await
    }
}

impl Store {
    /// Wakes up all processes that share the store and wait for a topic, including this one. Has no
    /// effect with SQLite, where processes poll.
    pub fn wake(&self, topic: Topic<'_>) {
        self.db.wake(&topic.text());
    }

    /// Returns a receiver of future wake-ups. Call this method before polling, so that no wake-up
    /// is missed.
    pub fn wakes(&self) -> Wakes {
        Wakes(self.db.wakes())
    }
}
