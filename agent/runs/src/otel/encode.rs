//! The JSON encoding of OTLP.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

/// The bucket boundaries for token counts, as defined by the semantic conventions.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// The bucket boundaries for durations in seconds, as defined by the semantic conventions.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// A span that has ended.
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    /// If true, the span covers a request to another process.
    pub(super) is_client: bool,
    pub(super) from: SystemTime,
    pub(super) to: SystemTime,
    pub(super) attributes: Vec<(&'static str, Json)>,
    /// The error, if the span failed.
    pub(super) error: Option<String>,
}

/// The measurements of one request to a model.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) seconds: f64,
    pub(super) error: bool,
}

/// Formats a time as nanoseconds since 1970, which OTLP encodes as a string.
fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

fn attribute((key, value): &(&str, Json)) -> Json {
    let value = match value {
        Json::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Json::Number(number) => json!({"intValue": number.to_string()}),
        Json::Bool(value) => json!({"boolValue": value}),
        Json::Array(items) => {
            let items: Vec<Json> =
                items.iter().map(|item| json!({"stringValue": text(item)})).collect();
            json!({"arrayValue": {"values": items}})
        }
        other => json!({"stringValue": text(other)}),
    };
    json!({"key": key, "value": value})
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn resource(service: &str) -> Json {
    json!({"attributes": [attribute(&("service.name", json!(service)))]})
}

fn scope() -> Json {
    json!({"name": "wattle", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the body of a request to `/v1/traces`.
pub(super) fn traces(service: &str, trace: u128, spans: &[Span]) -> Json {
    let span = |span: &Span| {
        let mut encoded = json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{:016x}", span.id),
            "name": span.name,
            "kind": if span.is_client { 3 } else { 1 },
            "startTimeUnixNano": nanos(span.from),
            "endTimeUnixNano": nanos(span.to),
            "attributes": span.attributes.iter().map(attribute).collect::<Vec<_>>(),
            "status": match &span.error {
                Some(message) => json!({"code": 2, "message": message}),
                None => json!({}),
            },
        });
        if let (Some(parent), Some(fields)) = (span.parent, encoded.as_object_mut()) {
            fields.insert("parentSpanId".to_owned(), json!(format!("{parent:016x}")));
        }
        encoded
    };
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({
        "resourceSpans": [{
            "resource": resource(service),
            "scopeSpans": [{"scope": scope(), "spans": spans}],
        }],
    })
}

/// Returns the body of a request to `/v1/metrics`: histograms of one run's model requests, as
/// defined by the semantic conventions.
pub(super) fn metrics(
    service: &str,
    model: &str,
    (from, to): (SystemTime, SystemTime),
    samples: &[Sample],
) -> Json {
    let point = |bounds: &[f64], values: &[f64], own: &[(&'static str, Json)]| {
        let common =
            [("gen_ai.operation.name", json!("chat")), ("gen_ai.request.model", json!(model))];
        let attributes: Vec<Json> = common.iter().chain(own).map(attribute).collect();
        let mut buckets = vec![0_u64; bounds.len() + 1];
        for value in values {
            if let Some(bucket) = buckets.get_mut(bounds.partition_point(|bound| bound < value)) {
                *bucket += 1;
            }
        }
        json!({
            "attributes": attributes,
            "startTimeUnixNano": nanos(from),
            "timeUnixNano": nanos(to),
            "count": values.len().to_string(),
            "sum": values.iter().sum::<f64>(),
            "bucketCounts": buckets.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "explicitBounds": bounds,
        })
    };
    let tokens = |kind: &str, of: fn(&Sample) -> u64| {
        let values: Vec<f64> =
            samples.iter().filter(|sample| !sample.error).map(|sample| of(sample) as f64).collect();
        point(TOKENS, &values, &[("gen_ai.token.type", json!(kind))])
    };
    let (failed, done): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.error);
    let seconds =
        |samples: &[&Sample]| samples.iter().map(|sample| sample.seconds).collect::<Vec<_>>();
    let mut durations = vec![point(SECONDS, &seconds(&done), &[])];
    if !failed.is_empty() {
        durations.push(point(SECONDS, &seconds(&failed), &[("error.type", json!("_OTHER"))]));
    }
    let histogram = |name: &str, unit: &str, points: Vec<Json>| {
        // Temporality 1 (delta): the values since the last export.
        json!({
            "name": name,
            "unit": unit,
            "histogram": {"aggregationTemporality": 1, "dataPoints": points},
        })
    };
    let all = [
        histogram(
            "gen_ai.client.token.usage",
            "{token}",
            vec![tokens("input", |sample| sample.input), tokens("output", |sample| sample.output)],
        ),
        histogram("gen_ai.client.operation.duration", "s", durations),
    ];
    json!({
        "resourceMetrics": [{
            "resource": resource(service),
            "scopeMetrics": [{"scope": scope(), "metrics": all}],
        }],
    })
}
