//! Generates the OpenAPI document from the routes and the types of their bodies.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use crate::error::ErrorBody;
use crate::route::{Content, Route, SchemaOf, schema};

/// Returns the OpenAPI 3.1 document of these routes as JSON.
pub(crate) fn document(routes: &[Route]) -> String {
    let mut text = serde_json::to_string_pretty(&build(routes)).unwrap_or_default();
    text.push('\n');
    text
}

fn build(routes: &[Route]) -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut document = |of: SchemaOf| of(&mut generator).to_value();
    let mut paths = Map::new();
    for route in routes {
        let path = route.path.replace("{*", "{");
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        if let Some(operations) = operations.as_object_mut() {
            operations.insert(route.method.to_lowercase(), operation(route, &mut document));
        }
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Wattle",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of agents whose model answers each step with a small program.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, document: &mut dyn FnMut(SchemaOf) -> Json) -> Json {
    let mut parameters: Vec<Json> = names(route.path)
        .map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        })
        .collect();
    if let Some(query) = route.query {
        parameters.extend(fields(query));
    }
    let mut responses = Map::new();
    for answer in &route.answers {
        let mut response = json!({"description": answer.description});
        if let (Some(content), Some(object)) = (answer.content, response.as_object_mut()) {
            object.insert("content".to_owned(), media(content, document));
        }
        responses.insert(answer.status.to_string(), response);
    }
    let error = |description: &str, document: &mut dyn FnMut(SchemaOf) -> Json| {
        json!({
            "description": description,
            "content": media(Content::Json(schema::<ErrorBody>), document),
        })
    };
    let mut common = vec![
        (400, "The request is not valid HTTP, or its `Host` or its path is invalid."),
        (403, "The host or the origin is not allowed, or the token lacks the scope."),
        (500, "The server failed, or has no memory for its response."),
        (503, "The server is full or about to stop."),
    ];
    if route.scope.is_some() {
        common.extend([
            (401, "The token is missing or wrong."),
            (429, "The token made too many requests."),
        ]);
    }
    if route.scope.is_some() && route.method != "GET" {
        common.push((507, "The tenant or the store keeps as many bytes as it may."));
    }
    if route.body.is_some() {
        common.extend([
            (408, "The body did not arrive in time."),
            (413, "The body is too large."),
            (415, "The body is not declared as JSON."),
        ]);
    }
    for (status, description) in common {
        if !responses.contains_key(&status.to_string()) {
            responses.insert(status.to_string(), error(description, document));
        }
    }
    let mut operation = json!({
        "summary": route.summary,
        "operationId": format!("{} {}", route.method.to_lowercase(), route.path),
        "parameters": parameters,
        "responses": responses,
        "security": match route.scope {
            Some(_) => json!([{"bearer": []}]),
            None => json!([]),
        },
    });
    if let Some(object) = operation.as_object_mut() {
        if let Some(scope) = route.scope {
            object.insert("x-scope".to_owned(), json!(scope.name()));
        }
        if let Some(body) = route.body {
            let content = media(body, document);
            object.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
    }
    operation
}

/// Returns the names of a path's parameters.
fn names(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next().map(|name| name.trim_start_matches('*')))
}

/// Returns the fields of a query as parameters.
fn fields(query: SchemaOf) -> Vec<Json> {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let whole = query(&mut generator).to_value();
    let required = |name: &str| {
        let names = whole.get("required").and_then(Json::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = whole.get("properties").and_then(Json::as_object).cloned().unwrap_or_default();
    properties
        .into_iter()
        .map(|(name, mut schema)| {
            let description = schema.get("description").cloned().unwrap_or_default();
            // A query cannot contain null: an optional field is omitted.
            remove_null(&mut schema);
            let required = required(&name);
            json!({
                "name": name,
                "in": "query",
                "required": required,
                "description": description,
                "schema": schema,
            })
        })
        .collect()
}

fn remove_null(schema: &mut Json) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("description");
    if let Some(Json::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Json::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    }
}

fn media(content: Content, document: &mut dyn FnMut(SchemaOf) -> Json) -> Json {
    match content {
        Content::Json(of) => json!({"application/json": {"schema": document(of)}}),
        Content::Events(of) => json!({"text/event-stream": {"schema": document(of)}}),
        Content::Bytes(media) => {
            json!({media: {"schema": {"type": "string", "format": "binary"}}})
        }
    }
}
