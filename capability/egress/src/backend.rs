//! Implementations of `Backend` for the egress client and for the client of a configured endpoint.

use wattle_rt::{Code, Failure, PortFuture};

use crate::egress::Egress;
use crate::endpoint::EndpointClient;
use crate::error::{EgressError, EgressErrorKind};
use crate::passage::{Backend, Incoming, Outgoing};
use crate::request::Response;

impl Backend for Egress {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        Box::pin(async move { incoming(Egress::send(self, &outgoing).await) })
    }
}

impl Backend for EndpointClient {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        Box::pin(async move {
            incoming(self.send_cleaned(outgoing.request().clone(), &outgoing.cleaner()).await)
        })
    }
}

/// Converts a client's result to a backend's result. Secrets have already been replaced in the
/// response and in the error.
fn incoming(result: Result<Response, EgressError>) -> Result<Incoming, Failure> {
    result.map(Incoming::cleaned).map_err(|error| Failure::new(code_of(&error), error.to_string()))
}

fn code_of(error: &EgressError) -> Code {
    match error.kind() {
        EgressErrorKind::Refused => Code::EACCESS,
        EgressErrorKind::BadUrl => Code::EPARSE,
        EgressErrorKind::Timeout => Code::ETIME,
        _ => Code::EREMOTE,
    }
}
