//! The passage between a run's programs and the network: the run's guard and its vault, on the way out and on the way back.

use std::sync::{Arc, Mutex, PoisonError};

use url::Url;
use wattle_rt::{Code, Failure, Guard, Run, Target};

use super::{Egress, EgressError, EgressErrorKind, EndpointClient};
use crate::backend::{Backend, Request, Response};
use crate::secrets::{Cleaner, Known, Vault};
use wattle_rt::PortFuture;

/// What every request of a run's programs passes. The only source of an [`Outgoing`].
#[derive(Clone)]
pub struct Passage {
    guard: Option<Arc<dyn Guard>>,
    vault: Arc<Vault>,
    capability: &'static str,
}

/// A request that has passed guard and vault: what a [`Backend`] is given. A clone is the same request.
#[derive(Clone)]
pub struct Outgoing(Arc<Inner>);

/// Decides about a URL that a request is led to.
type Admit = Box<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

struct Inner {
    request: Request,
    /// Decides about the URL of a redirect.
    admit: Admit,
    known: Arc<Known>,
    /// The URLs that were asked, the last one last.
    asked: Mutex<Vec<Url>>,
}

/// An answer that has passed the vault: what a [`Backend`] returns.
#[derive(Clone, Debug)]
pub struct Incoming(Response);

impl Passage {
    /// Makes a passage for the functions of a capability, by that guard and that vault.
    #[must_use]
    pub fn new(guard: Option<Arc<dyn Guard>>, vault: Arc<Vault>, capability: &'static str) -> Passage {
        Passage { guard, vault, capability }
    }

    /// Returns the passage of a run.
    pub fn of(run: &Run, capability: &'static str) -> Passage {
        let grants = run.grants();
        Passage::new(grants.guard().cloned(), grants.config::<Vault>().unwrap_or_default(), capability)
    }

    /// Sends a request of a program's making, and returns the answer.
    ///
    /// # Errors
    /// As [`pass`](Passage::pass), and as the backend.
    pub async fn send(&self, way: &dyn Backend, function: &'static str, request: Request) -> Result<Response, Failure> {
        self.send_to_last(way, function, request).await.map(|(response, _)| response)
    }

    /// As [`send`](Passage::send); returns the URL that answered, too, cleaned as the answer is.
    ///
    /// # Errors
    /// As [`send`](Passage::send).
    pub async fn send_to_last(
        &self,
        way: &dyn Backend,
        function: &'static str,
        request: Request,
    ) -> Result<(Response, String), Failure> {
        let first = request.url.clone();
        let outgoing = self.pass(function, request).await?;
        let response = outgoing.sent_by(way).await?;
        let last = outgoing.asked().last().map_or(first, |url| outgoing.cleaner().clean_text(url.as_str()));
        Ok((response, last))
    }

    /// Sends a request of the host's making to an endpoint of the operator's, on behalf of a program. Guard and references are not
    /// for it; the answer is cleaned all the same.
    ///
    /// # Errors
    /// As the backend, or where the secrets cannot be read.
    pub async fn ask(&self, endpoint: &dyn Backend, request: Request) -> Result<Response, Failure> {
        let known = self.vault.known().await?;
        Outgoing::new(request, Box::new(|_| Ok(())), known).sent_by(endpoint).await
    }

    /// Refuses a text of a program's making that spells a secret; `what` names the text.
    ///
    /// # Errors
    /// `EACCESS`, with the name of the secret; where the secrets cannot be read.
    pub async fn check_text(&self, what: &str, text: &[u8]) -> Result<(), Failure> {
        self.vault.known().await?.refuse(what, text)
    }

    /// Cleans a text that was made of answers of those URLs.
    ///
    /// # Errors
    /// Where the secrets cannot be read.
    pub async fn clean_text(&self, text: &str, urls: &[&str]) -> Result<String, Failure> {
        let urls: Vec<Url> = urls.iter().filter_map(|url| Url::parse(url).ok()).collect();
        Ok(self.vault.known().await?.cleaner(&urls).clean_text(text))
    }

    /// Lets a request of that function through: the guard admits its URL, nothing in it spells a secret, and values take the
    /// place of references.
    ///
    /// # Errors
    /// `EACCESS` where guard or vault refuse, and as [`Secrets`](crate::secrets::Secrets).
    pub async fn pass(&self, function: &'static str, mut request: Request) -> Result<Outgoing, Failure> {
        let (guard, capability) = (self.guard.clone(), self.capability);
        let admit =
            move |url: &str| guard.as_ref().map_or(Ok(()), |guard| guard.call(capability, function, Target::Url, url));
        admit(&request.url).map_err(|why| Failure::new(Code::EACCESS, why))?;
        let known = self.vault.known().await?;
        known.refuse("the URL", request.url.as_bytes())?;
        for (name, value) in &request.headers {
            known.refuse(&format!("the header `{name}`"), value.as_bytes())?;
        }
        known.refuse("the body", &request.body)?;
        let filled = self.vault.fill(&mut request).await?;
        // What was put in may have become known by that.
        let known = self.vault.known().await?;
        let first = Url::parse(&request.url).map(|url| url.origin()).ok();
        let of_redirects = Arc::clone(&known);
        let admit = move |url: &Url| {
            if filled.body && first.as_ref().is_some_and(|first| url.origin() != *first) {
                return Err("the request's body carries a secret, which stays with the host that it was for".to_owned());
            }
            of_redirects.refuse_redirect(url)?;
            admit(url.as_str())
        };
        Ok(Outgoing::new(request, Box::new(admit), known))
    }
}

impl Outgoing {
    fn new(request: Request, admit: Admit, known: Arc<Known>) -> Outgoing {
        let asked = Mutex::new(Url::parse(&request.url).into_iter().collect());
        Outgoing(Arc::new(Inner { request, admit, known, asked }))
    }

    /// The request, with the values of the secrets that it refers to.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.0.request
    }

    /// Decides about a URL that a redirect leads to. A backend that follows redirects asks before each.
    ///
    /// # Errors
    /// Why it may not be followed.
    pub fn admit(&self, url: &Url) -> Result<(), String> {
        (self.0.admit)(url)?;
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(url.clone());
        Ok(())
    }

    /// Cleans an answer.
    #[must_use]
    pub fn answer(&self, mut response: Response) -> Incoming {
        let cleaner = self.cleaner();
        response.body = cleaner.clean(response.body);
        cleaner.clean_headers(&mut response.headers);
        Incoming(response)
    }

    /// What cleans answers of the URLs that were asked so far.
    pub(super) fn cleaner(&self) -> Cleaner {
        self.0.known.cleaner(&self.asked())
    }

    fn asked(&self) -> Vec<Url> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn sent_by(&self, way: &dyn Backend) -> Result<Response, Failure> {
        match way.send(self.clone()).await {
            Ok(Incoming(response)) => Ok(response),
            Err(why) => Err(Failure::new(why.code, self.cleaner().clean_text(&why.reason))),
        }
    }
}

impl Backend for Egress {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        Box::pin(async move { answered(Egress::send(self, &outgoing).await) })
    }
}

impl Backend for EndpointClient {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        Box::pin(
            async move { answered(self.send_cleaned(outgoing.request().clone().into(), &outgoing.cleaner()).await) },
        )
    }
}

/// What the guard answered, which it has cleaned already.
fn answered(answer: Result<super::Response, EgressError>) -> Result<Incoming, Failure> {
    let answer = answer.map_err(|error| Failure::new(code_of(&error), error.to_string()))?;
    Ok(Incoming(Response { status: answer.status.as_u16(), headers: answer.headers, body: answer.body.into() }))
}

fn code_of(error: &EgressError) -> Code {
    match error.kind() {
        EgressErrorKind::Refused => Code::EACCESS,
        EgressErrorKind::BadUrl => Code::EPARSE,
        EgressErrorKind::Timeout => Code::ETIME,
        _ => Code::EREMOTE,
    }
}
