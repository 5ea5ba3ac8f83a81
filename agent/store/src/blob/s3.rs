//! Objects in an S3 bucket. All requests are sent through [`Egress`].

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use wattle_capability::egress::{
    Egress, EgressErrorKind, EndpointClient, Limits, Request, Url, header,
};

use super::MAX_OBJECT;
use crate::error::Cause;

/// Maximum duration of a request.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of retries of a failed request, and the time after which no retry is started.
const RETRIES: (usize, Duration) = (3, Duration::from_secs(20));

/// An S3 bucket and its access keys. Its `Display` and `Debug` output contains no keys.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Bucket {
    /// The bucket's name.
    pub bucket: String,
    /// The prefix of all object names. It may be empty.
    pub prefix: String,
    /// The URL of a service other than Amazon's, such as `https://minio.example:9000`.
    pub endpoint: Option<String>,
    /// The region. Default: `us-east-1`.
    pub region: Option<String>,
    /// The access key's ID.
    pub key_id: String,
    /// The secret access key.
    pub secret_key: String,
    /// The session token for temporary keys.
    pub session_token: Option<String>,
}

impl S3Bucket {
    fn region(&self) -> &str {
        self.region.as_deref().unwrap_or("us-east-1")
    }

    /// Returns the URL of the service, to which the S3 client appends the bucket's name.
    fn endpoint(&self) -> String {
        let amazon = || format!("https://s3.{}.amazonaws.com", self.region());
        self.endpoint.clone().unwrap_or_else(amazon)
    }
}

impl fmt::Display for S3Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl fmt::Debug for S3Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3Bucket({self})")
    }
}

pub(super) fn open(bucket: &S3Bucket, egress: &Egress) -> Result<(AmazonS3, ObjectPath), Cause> {
    let endpoint = bucket.endpoint();
    let url = Url::parse(&endpoint).map_err(|error| format!("the URL `{endpoint}`: {error}"))?;
    let limits = Limits { body: MAX_OBJECT, time: TIMEOUT, ..Limits::default() };
    let client = egress.endpoint(&url)?.with_limits(limits);
    let (max_retries, retry_timeout) = RETRIES;
    let mut builder = AmazonS3Builder::new()
        .with_http_connector(Connector(client))
        .with_bucket_name(&bucket.bucket)
        .with_region(bucket.region())
        .with_endpoint(endpoint.trim_end_matches('/'))
        .with_allow_http(url.scheme() == "http")
        .with_access_key_id(&bucket.key_id)
        .with_secret_access_key(&bucket.secret_key)
        // Not every service can remove several objects at once.
        .with_disable_bulk_delete(true)
        .with_retry(RetryConfig { backoff: BackoffConfig::default(), max_retries, retry_timeout });
    if let Some(token) = &bucket.session_token {
        builder = builder.with_token(token);
    }
    Ok((builder.build()?, ObjectPath::parse(&bucket.prefix)?))
}

/// The HTTP connector of the bucket's client.
#[derive(Clone, Debug)]
struct Connector(EndpointClient);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Connector {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        self.send(request).boxed()
    }
}

impl Connector {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        // The code that sends the request sets these headers, with the same values.
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        let request = Request {
            method: parts.method,
            url: parts.uri.to_string(),
            headers,
            body: body.collect().await?.to_bytes(),
        };
        let response = self.0.send(request).await.map_err(|error| {
            let kind = match error.kind() {
                EgressErrorKind::Timeout => HttpErrorKind::Timeout,
                EgressErrorKind::Connect | EgressErrorKind::Resolve => HttpErrorKind::Connect,
                EgressErrorKind::Broken => HttpErrorKind::Interrupted,
                _ => HttpErrorKind::Unknown,
            };
            HttpError::new(kind, error)
        })?;
        let body = Full::new(response.body).map_err(|never| match never {});
        let mut answer = HttpResponse::new(HttpResponseBody::new(body));
        *answer.status_mut() = response.status;
        *answer.headers_mut() = response.headers;
        Ok(answer)
    }
}
