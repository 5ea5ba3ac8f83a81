//! A client for endpoints that implement OpenAI's `/images/generations` API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use std::time::Duration;
use url::Url;
use wattle_rt::{Code, Failure, truncate};

use super::{ImageGenerator, MAX_IMAGE};
use crate::PortFuture;
use crate::egress::{
    self, Egress, EgressError, EgressErrorKind, EndpointClient, HeaderValue, Limits, Passage,
    Request, Response, header,
};
use crate::secrets::ApiKey;

/// Maximum time for generating an image.
const TIME: Duration = Duration::from_secs(120);
/// Maximum length of a quoted error message from the endpoint, in characters.
const QUOTED: usize = 200;

/// A client that requests images from one configured endpoint. If the endpoint returns a URL, the
/// image is fetched without the key, from the endpoint or from a public host.
pub struct Endpoint {
    client: EndpointClient,
    public: Egress,
    url: Url,
    model: Option<String>,
    key: Option<ApiKey>,
}

impl Endpoint {
    /// Creates a client for the endpoint at the base URL `base`, with a model and a key.
    ///
    /// # Errors
    /// If `base` is not a valid URL for an endpoint.
    pub fn new(
        egress: &Egress,
        base: &Url,
        model: Option<String>,
        key: Option<ApiKey>,
    ) -> Result<Self, EgressError> {
        // Base64 text is a third longer than the bytes that it encodes.
        let limits =
            Limits { body: MAX_IMAGE / 3 * 4 + (64 << 10), time: TIME, ..Limits::default() };
        let client = egress.endpoint(base)?.with_limits(limits);
        let public = egress.with_policy(egress::Policy {
            limits: Limits { body: MAX_IMAGE, ..limits },
            ..egress.policy().clone()
        });
        let mut url = base.clone();
        url.set_path(&format!("{}/images/generations", base.path().trim_end_matches('/')));
        Ok(Endpoint { client, public, url, model, key })
    }

    async fn ask(&self, prompt: String, passage: Passage) -> Result<Vec<u8>, Failure> {
        let mut body = Map::new();
        if let Some(model) = &self.model {
            body.insert("model".to_owned(), model.as_str().into());
        }
        body.insert("prompt".to_owned(), prompt.into());
        body.insert("n".to_owned(), 1.into());
        let mut request = Request::post(self.url.as_str(), Json::Object(body).to_string());
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            request.headers.insert(header::AUTHORIZATION, key.bearer());
        }
        let answer = self.client.send(request).await.map_err(|error| self.failed(&error))?;
        if !answer.status.is_success() {
            let words = format!(
                "the images endpoint answered with status {}{}",
                answer.status.as_u16(),
                self.message(&answer)
            );
            return Err(Failure::new(Code::EREMOTE, words));
        }
        let nothing = || {
            let words = format!("the images endpoint returned no image{}", self.message(&answer));
            Failure::new(Code::EREMOTE, words)
        };
        let value: Json = serde_json::from_slice(&answer.body).map_err(|_| nothing())?;
        let picture = value.pointer("/data/0").ok_or_else(nothing)?;
        if let Some(encoded) = picture.get("b64_json").and_then(Json::as_str) {
            let encoded: String = encoded.split_ascii_whitespace().collect();
            return STANDARD.decode(encoded).map_err(|_| nothing());
        }
        let url = picture.get("url").and_then(Json::as_str).ok_or_else(nothing)?;
        self.fetch(url, &passage).await
    }

    /// Fetches an image from the endpoint's own origin or from any host that the run may reach.
    async fn fetch(&self, url: &str, passage: &Passage) -> Result<Vec<u8>, Failure> {
        let own = Url::parse(url).is_ok_and(|url| url.origin() == self.url.origin());
        let request = Request::get(url);
        let sent = if own {
            passage.ask(&self.client, request).await
        } else {
            passage.send(&self.public, "image.make", request).await
        };
        let no_picture = |why: Failure| {
            Failure::new(why.code, format!("no image was generated: {}", self.clean(&why.reason)))
        };
        let answer = sent.map_err(no_picture)?;
        match answer.status.as_u16() {
            200..300 => Ok(answer.body.into()),
            status => Err(Failure::new(
                Code::EREMOTE,
                format!("failed to fetch the image: status {status}"),
            )),
        }
    }

    fn failed(&self, error: &EgressError) -> Failure {
        let code = match error.kind() {
            EgressErrorKind::Timeout => Code::ETIME,
            EgressErrorKind::Refused => Code::EACCESS,
            _ => Code::EREMOTE,
        };
        Failure::new(code, format!("no image was generated: {}", self.clean(&error.to_string())))
    }

    /// Returns the endpoint's error message, truncated and formatted as a suffix for a failure's
    /// message. Returns an empty string if there is no message.
    fn message(&self, answer: &Response) -> String {
        let value: Option<Json> = serde_json::from_slice(&answer.body).ok();
        let of = |at: &str| value.as_ref()?.pointer(at)?.as_str().map(str::to_owned);
        let Some(message) =
            of("/error/message").or_else(|| of("/error")).or_else(|| of("/message"))
        else {
            return String::new();
        };
        let plain: String = self.clean(&message).chars().filter(|c| !c.is_control()).collect();
        format!(": {}", truncate(plain.trim(), QUOTED))
    }

    fn clean(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }
}

impl ImageGenerator for Endpoint {
    fn generate(&self, prompt: String, passage: Passage) -> PortFuture<'_, Vec<u8>> {
        Box::pin(self.ask(prompt, passage))
    }
}
