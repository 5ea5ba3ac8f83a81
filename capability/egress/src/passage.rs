//! The checks between a run's programs and the network. A passage applies the run's guard and its
//! vault of secrets to every request and response.

use std::sync::{Arc, Mutex, PoisonError};

use url::Url;
use wattle_rt::{Code, Failure, Guard, PortFuture, Run, Target};

use crate::request::{Request, Response};
use crate::secrets::{Cleaner, KnownSecrets, Vault};

/// The checks that every request from a run's programs must pass. Only a passage creates an
/// [`Outgoing`].
#[derive(Clone)]
pub struct Passage {
    guard: Option<Arc<dyn Guard>>,
    vault: Arc<Vault>,
    capability: &'static str,
}

/// A request that has passed the guard and the vault, for a [`Backend`] to send. Clones share the
/// state of the request.
#[derive(Clone)]
pub struct Outgoing(Arc<Inner>);

/// A function that decides whether a request may follow a redirect to a URL.
type Admit = Box<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

struct Inner {
    request: Request,
    admit: Admit,
    known: Arc<KnownSecrets>,
    /// The URLs requested so far, in order.
    urls: Mutex<Vec<Url>>,
}

/// A response in which the vault has replaced secrets with references.
#[derive(Clone, Debug)]
pub struct Incoming(Response);

impl Passage {
    /// Creates a passage for the functions of a capability.
    #[must_use]
    pub fn new(
        guard: Option<Arc<dyn Guard>>,
        vault: Arc<Vault>,
        capability: &'static str,
    ) -> Passage {
        Passage { guard, vault, capability }
    }

    /// Returns the passage for a run, with the guard and the vault from the run's grants.
    pub fn of(run: &Run, capability: &'static str) -> Passage {
        let grants = run.grants();
        Passage::new(
            grants.guard().cloned(),
            grants.config::<Vault>().unwrap_or_default(),
            capability,
        )
    }

    /// Sends a program's request and returns the response.
    ///
    /// # Errors
    /// The same as for [`pass`](Passage::pass). Also fails if the backend fails.
    pub async fn send(
        &self,
        backend: &dyn Backend,
        function: &'static str,
        request: Request,
    ) -> Result<Response, Failure> {
        self.send_with_url(backend, function, request).await.map(|(response, _)| response)
    }

    /// Sends a program's request. Returns the response and the final URL after redirects. Secrets
    /// in that URL are replaced with references.
    ///
    /// # Errors
    /// The same as for [`send`](Passage::send).
    pub async fn send_with_url(
        &self,
        backend: &dyn Backend,
        function: &'static str,
        request: Request,
    ) -> Result<(Response, String), Failure> {
        let first = request.url.clone();
        let outgoing = self.pass(function, request).await?;
        let response = outgoing.send_by(backend).await?;
        let url =
            outgoing.urls().last().map_or(first, |url| outgoing.cleaner().clean_text(url.as_str()));
        Ok((response, url))
    }

    /// Sends a request that the host makes on behalf of a program, to an endpoint that the operator
    /// configured. Skips the guard, leaves references in the request unchanged, and replaces
    /// secrets in the response.
    ///
    /// # Errors
    /// If the backend fails, or the secrets cannot be read.
    pub async fn ask(&self, endpoint: &dyn Backend, request: Request) -> Result<Response, Failure> {
        let known = self.vault.known().await?;
        Outgoing::new(request, Box::new(|_| Ok(())), known).send_by(endpoint).await
    }

    /// Checks that a program's text contains no secret. `what` names the text in the error.
    ///
    /// # Errors
    /// `EACCESS` if the text contains a secret; the message names the secret. Also fails if the
    /// secrets cannot be read.
    pub async fn check_text(&self, what: &str, text: &[u8]) -> Result<(), Failure> {
        self.vault.known().await?.refuse(what, text)
    }

    /// Replaces secrets in a string derived from responses from `urls`.
    ///
    /// # Errors
    /// If the secrets cannot be read.
    pub async fn clean_text(&self, text: &str, urls: &[&str]) -> Result<String, Failure> {
        let urls: Vec<Url> = urls.iter().filter_map(|url| Url::parse(url).ok()).collect();
        Ok(self.vault.known().await?.cleaner(&urls).clean_text(text))
    }

    /// Replaces every secret in a response from a service that the operator configured, such as a
    /// model. A program does not choose the service's URL, so secrets are replaced regardless of
    /// their hosts.
    ///
    /// # Errors
    /// If the secrets cannot be read.
    pub async fn clean_answer(&self, text: &str) -> Result<String, Failure> {
        Ok(self.vault.known().await?.cleaner_of_all().clean_text(text))
    }

    /// Checks a request that a program makes through `function`: the guard must allow the URL, and
    /// the request must contain no secret. Replaces references to secrets with their values.
    ///
    /// # Errors
    /// `EACCESS` if the guard or the vault denies the request. Also fails if
    /// [`Secrets`](crate::secrets::Secrets) cannot be read.
    pub async fn pass(
        &self,
        function: &'static str,
        mut request: Request,
    ) -> Result<Outgoing, Failure> {
        let guard = self.guard.clone();
        let capability = self.capability;
        let admit = move |url: &str| {
            guard
                .as_ref()
                .map_or(Ok(()), |guard| guard.call(capability, function, Target::Url, url))
        };
        admit(&request.url).map_err(|why| Failure::new(Code::EACCESS, why))?;
        let known = self.vault.known().await?;
        known.refuse_request(&request)?;
        let filled = self.vault.fill(&mut request, self.guard.as_deref()).await?;
        // Filling in a secret may have added it to the known secrets.
        let known = self.vault.known().await?;
        let first = Url::parse(&request.url).map(|url| url.origin()).ok();
        let of_redirects = Arc::clone(&known);
        let admit = move |url: &Url| {
            if filled.body && first.as_ref().is_some_and(|first| url.origin() != *first) {
                return Err("the request's body carries a secret, which stays with the host that \
                            it was for"
                    .to_owned());
            }
            of_redirects.refuse_redirect(url)?;
            admit(url.as_str())
        };
        Ok(Outgoing::new(request, Box::new(admit), known))
    }
}

impl Outgoing {
    fn new(request: Request, admit: Admit, known: Arc<KnownSecrets>) -> Outgoing {
        let urls = Mutex::new(Url::parse(&request.url).into_iter().collect());
        Outgoing(Arc::new(Inner { request, admit, known, urls }))
    }

    /// Returns the request, in which references to secrets have been replaced with values.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.0.request
    }

    /// Checks the URL of a redirect. A backend must call this before it follows a redirect.
    ///
    /// # Errors
    /// If the redirect is denied. The error contains the reason.
    pub fn admit(&self, url: &Url) -> Result<(), String> {
        (self.0.admit)(url)?;
        self.0.urls.lock().unwrap_or_else(PoisonError::into_inner).push(url.clone());
        Ok(())
    }

    /// Replaces secrets in a response with references and returns it as an [`Incoming`].
    #[must_use]
    pub fn answer(&self, mut response: Response) -> Incoming {
        let cleaner = self.cleaner();
        response.body = cleaner.clean(response.body.into()).into();
        cleaner.clean_headers(&mut response.headers);
        Incoming(response)
    }

    /// Returns the cleaner for responses from the URLs that have been requested so far.
    pub(crate) fn cleaner(&self) -> Cleaner {
        self.0.known.cleaner(&self.urls())
    }

    fn urls(&self) -> Vec<Url> {
        self.0.urls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send_by(&self, backend: &dyn Backend) -> Result<Response, Failure> {
        match backend.send(self.clone()).await {
            Ok(Incoming(response)) => Ok(response),
            Err(why) => Err(Failure::new(why.code, self.cleaner().clean_text(&why.reason))),
        }
    }
}

impl Incoming {
    /// Wraps a response whose secrets have already been replaced.
    pub(crate) fn cleaned(response: Response) -> Incoming {
        Incoming(response)
    }
}

/// A transport for requests: the egress client, the client of an endpoint, or a fake in tests.
pub trait Backend: Send + Sync {
    /// Sends a request. Calls [`Outgoing::admit`] for the URL of each redirect and creates the
    /// result with [`Outgoing::answer`]. Fails with `EACCESS` for a denied request, `EPARSE` for an
    /// invalid URL, `ETIME` for a timeout and `EREMOTE` for everything else.
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming>;
}
