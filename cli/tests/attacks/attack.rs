//! Runs one attack.

use wattle_tests::provider::{Answer, Provider, Recorded};

use crate::files::{CANARY, Place, contains};
use crate::format::{Attack, Page, Row};
use crate::process::{self, Done};
use crate::server::{Served, TOKEN, status};
use crate::text::Values;
use crate::watch::Watch;

/// Runs an attack and returns the faults: the differences from the expectations in the attack's
/// row.
pub(crate) fn run(attack: &Attack) -> Vec<String> {
    let row = &*attack.row;
    let place = Place::new();
    let mut values = Values::default();
    attack.values.iter().for_each(|(name, value)| values.set(name, value));
    for (name, path) in [("work", "work"), ("home", "home"), ("outside", "outside")] {
        values.set(name, place.at(path).to_str().unwrap());
    }
    let web = web(row, &attack.values);
    values.set("web", web.host());
    let model = model(row, &values);
    values.set("model", model.base_url());
    values.set("token", TOKEN);
    place.fill(row, &values);
    let before = place.state();
    let mut faults = Vec::new();
    let served =
        row.serve.as_ref().map(|serve| Served::start(&place, serve, &model.base_url(), &values));
    if let Some(served) = &served {
        values.set("server", &served.address);
    }
    calls(&place, row, &values, &mut faults);
    if let Some(served) = served {
        requests(served, row, &values, &mut faults);
    }
    faults.extend(place.faults(&before, &row.after.changed));
    arrived(&web, &model, row, &values, &mut faults);
    faults
}

fn calls(place: &Place, row: &Row, values: &Values, faults: &mut Vec<String>) {
    for (at, call) in row.call.iter().enumerate() {
        let watch = Watch::start(&row.bounds);
        let Done { code, output } = process::run(place, call, values);
        let mut own = watch.end(&row.bounds);
        if !call.exit.accepts(code) {
            own.push(format!("ended with {code}"));
        }
        own.extend(words(&output, &call.says, &call.hides, values));
        if !own.is_empty() {
            let shown: String = String::from_utf8_lossy(&output).chars().take(2_000).collect();
            faults.push(format!("call {}: {}; its output:\n{shown}", at + 1, own.join("; ")));
        }
    }
}

fn requests(served: Served, row: &Row, values: &Values, faults: &mut Vec<String>) {
    for (at, request) in row.request.iter().enumerate() {
        let watch = Watch::start(&row.bounds);
        let answer = served.ask(&values.bytes(&request.raw));
        let mut own = watch.end(&row.bounds);
        let status = status(&answer);
        if status != request.status {
            own.push(format!("was answered with {status}"));
        }
        own.extend(words(&answer, &request.says, &request.hides, values));
        if !own.is_empty() {
            let shown: String = String::from_utf8_lossy(&answer).chars().take(2_000).collect();
            faults.push(format!("request {}: {}; the answer:\n{shown}", at + 1, own.join("; ")));
        }
    }
    faults.extend(served.stop());
}

/// Returns the faults in an output: missing or forbidden strings, the secret, or a panic.
fn words(output: &[u8], says: &[String], hides: &[String], values: &Values) -> Vec<String> {
    let mut faults = Vec::new();
    let has = |text: &str| contains(output, &values.bytes(text));
    faults.extend(
        says.iter().filter(|text| !has(text)).map(|text| format!("does not print {text:?}")),
    );
    faults.extend(hides.iter().filter(|text| has(text)).map(|text| format!("prints {text:?}")));
    if has(CANARY) {
        faults.push("prints the secret from outside".to_owned());
    }
    if has("panicked at") {
        faults.push("panicked".to_owned());
    }
    faults
}

/// Checks the requests that reached the web server and the model, and adds any faults to `faults`.
fn arrived(web: &Provider, model: &Provider, row: &Row, values: &Values, faults: &mut Vec<String>) {
    let received: Vec<String> =
        web.requests().iter().map(|one| format!("{} {}", one.method, one.path)).collect();
    if let Some(wanted) = &row.after.requests {
        let wanted: Vec<String> = wanted.iter().map(|text| values.text(text)).collect();
        if received != wanted {
            faults.push(format!("the web server received {received:?}"));
        }
    }
    let all = web.requests().into_iter().chain(model.requests());
    let text = |one: &Recorded| format!("{} {:?} {}", one.path, one.headers, one.body);
    if all.into_iter().any(|one| text(&one).contains(CANARY)) {
        faults.push("the secret from outside was sent".to_owned());
    }
}

/// Starts the web server. Its pages may contain the server's own address.
fn web(row: &Row, own: &std::collections::BTreeMap<String, String>) -> Provider {
    let (pages, own) = (row.page.clone(), own.clone());
    Provider::answering(move |request| {
        let mut values = Values::default();
        own.iter().for_each(|(name, value)| values.set(name, value));
        values.set("web", request.header("host").unwrap_or_default());
        let page = pages.iter().find(|page| values.text(&page.path) == request.path);
        page.map_or_else(|| Answer::status(404), |page| answer(page, &values))
    })
}

fn answer(page: &Page, values: &Values) -> Answer {
    let mut answer = Answer::body(values.bytes(&page.body)).with_status(page.status);
    if let Some(kind) = &page.kind {
        answer = answer.header("content-type", &values.text(kind));
    }
    for (name, value) in &page.headers {
        answer = answer.header(&values.text(name), &values.text(value));
    }
    answer
}

fn model(row: &Row, values: &Values) -> Provider {
    Provider::start(row.model.iter().map(|one| match (&one.text, &one.raw, one.status) {
        (Some(text), None, None) => Answer::text(values.text(text)),
        (None, Some(raw), None) => Answer::raw(values.bytes(raw)),
        (None, None, Some(status)) => Answer::status(status),
        _ => panic!("an answer of the model has one of `text`, `raw`, `status`"),
    }))
}
