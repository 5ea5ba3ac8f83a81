//! PostgreSQL notifications that wake other processes.
//!
//! Notifications only save time. All state is in the tables, which each process also polls. If a
//! notification is lost, or the server does not support notifications, a reader is delayed until it
//! polls again.
//!
//! PostgreSQL serializes the commits of all transactions that send notifications. Therefore topics
//! are collected for a few milliseconds, and sent outside the transactions that they belong to.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{Notify, broadcast};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Config, Error};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::tls::Tls;

/// Time for which topics are collected before they are sent.
const COLLECT: Duration = Duration::from_millis(5);
/// Time between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(2);
/// Maximum length of a notification, in bytes. The server accepts fewer than 8,000.
const MAX_BYTES: usize = 7_900;
/// Maximum number of topics by which a reader may lag behind. A slower reader loses topics, and
/// polls the tables instead.
const BEHIND: usize = 1_024;

/// A handle for sending and receiving the notifications about a schema. Its background tasks stop
/// when it is dropped.
pub(crate) struct Notices {
    shared: Arc<Shared>,
    received: broadcast::Sender<Arc<str>>,
    /// If false, the process receives only its own topics, without the server.
    listens: bool,
    /// A guard that stops the tasks when it is dropped.
    _tasks: DropGuard,
}

#[derive(Default)]
struct Shared {
    topics: Mutex<BTreeSet<String>>,
    added: Notify,
}

impl Notices {
    /// Starts sending and, if there are settings for a connection of its own, listening. Must be
    /// called within a tokio runtime.
    pub(super) fn start(pool: Pool, listener: Option<(Config, Tls)>, schema: &str) -> Notices {
        let shared = Arc::<Shared>::default();
        let received = broadcast::Sender::new(BEHIND);
        let stop = CancellationToken::new();
        let channel = format!("wattle {schema}");
        let sending = send(pool, Arc::clone(&shared), channel.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(sending));
        let listens = listener.is_some();
        if let Some((config, tls)) = listener {
            let listening = listen(config, tls, channel, received.clone());
            tokio::spawn(stop.clone().run_until_cancelled_owned(listening));
        }
        Notices { shared, received, listens, _tasks: stop.drop_guard() }
    }

    /// Queues a topic to be sent to all processes.
    pub(crate) fn send(&self, topic: &str) {
        if !self.listens {
            // Sending fails only if there are no receivers.
            drop(self.received.send(topic.into()));
        }
        let mut topics = self.shared.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.insert(topic.to_owned());
        drop(topics);
        self.shared.added.notify_one();
    }

    /// Returns a receiver that yields the topics sent from now on. An empty topic means that topics
    /// may have been lost.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.received.subscribe()
    }
}

async fn send(pool: Pool, shared: Arc<Shared>, channel: String) {
    loop {
        shared.added.notified().await;
        tokio::time::sleep(COLLECT).await;
        let topics =
            std::mem::take(&mut *shared.topics.lock().unwrap_or_else(PoisonError::into_inner));
        for payload in payloads(topics) {
            let Ok(client) = pool.get().await else { break };
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&channel, Type::TEXT), (&payload, Type::TEXT)];
            let sent = client.query_typed("SELECT pg_notify($1, $2)", &params).await;
            if let Err(error) = sent {
                tracing::debug!(%error, "failed to notify other processes");
            }
        }
    }
}

/// Joins topics into payloads that the server accepts.
fn payloads(topics: BTreeSet<String>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for topic in topics {
        match payloads.last_mut() {
            Some(last) if last.len() + 1 + topic.len() <= MAX_BYTES => {
                last.push('\n');
                last.push_str(&topic);
            }
            _ => payloads.push(topic),
        }
    }
    payloads
}

async fn listen(config: Config, tls: Tls, channel: String, received: broadcast::Sender<Arc<str>>) {
    loop {
        if let Err(error) = listen_once(&config, tls.clone(), &channel, &received).await {
            tracing::debug!(%error, "failed to listen to notifications");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Listens until the connection is lost.
async fn listen_once(
    config: &Config,
    tls: Tls,
    channel: &str,
    received: &broadcast::Sender<Arc<str>>,
) -> Result<(), Error> {
    let (client, mut connection) = config.connect(tls).await?;
    let to = received.clone();
    let mut reading = tokio::spawn(async move {
        loop {
            match poll_fn(|cx| connection.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(notice))) => {
                    // Sending fails only if there are no receivers.
                    notice.payload().lines().for_each(|topic| drop(to.send(topic.into())));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            }
        }
    });
    let listened = client.batch_execute(&format!("LISTEN \"{channel}\"")).await;
    if let Err(error) = listened {
        reading.abort();
        return Err(error);
    }
    drop(received.send("".into()));
    let ended = (&mut reading).await;
    drop(client);
    ended.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_joined_up_to_the_limit_of_the_server() {
        let topics: BTreeSet<String> =
            (0..2_000).map(|number| format!("run {number:04}")).collect();
        let payloads = payloads(topics.clone());
        assert!(payloads.iter().all(|payload| payload.len() <= MAX_BYTES));
        assert_eq!(payloads.len(), 3);
        let joined: BTreeSet<String> =
            payloads.iter().flat_map(|payload| payload.lines().map(str::to_owned)).collect();
        assert_eq!(joined, topics);
    }
}
