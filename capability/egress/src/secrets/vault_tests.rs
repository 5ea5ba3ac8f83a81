//! Tests that references in requests are replaced, and that responses are cleaned.

use super::*;
use crate::client::{HeaderMap, Method};

fn vault() -> Vault {
    let hosts = |list: &[&str]| list.iter().map(|host| host.parse().unwrap()).collect::<Vec<_>>();
    let secret = |name: &str, value: &str, list: &[&str]| {
        (name.to_owned(), Ok(Secret::new(name, value, hosts(list)).unwrap()))
    };
    Vault::new(Arc::new(SecretList::new([
        secret("api", "s3cr3t-value", &["api.example.com", "*.example.org"]),
        secret("lines", "first line\nsecond", &["api.example.com"]),
        (
            "gone".to_owned(),
            Err("the variable `GONE`, which holds the secret `gone`, is not set".to_owned()),
        ),
    ])))
}

fn request(url: &str, header: &str, body: &str) -> Request {
    let mut headers = HeaderMap::new();
    if !header.is_empty() {
        headers.insert("authorization", header.parse().unwrap());
    }
    Request {
        method: Method::POST,
        url: url.to_owned(),
        headers,
        body: body.as_bytes().to_vec().into(),
    }
}

#[tokio::test]
async fn references_are_replaced_in_headers_and_bodies() {
    for (header, body, expected_header, expected_body, in_body) in [
        ("Bearer ${secret:api}", "", "Bearer s3cr3t-value", "", false),
        ("", "a=${secret:api}&b=${secret:api}", "", "a=s3cr3t-value&b=s3cr3t-value", true),
        (
            "",
            "${secret:} ${secret:a b} ${secret:api $${secret:api}",
            "",
            "${secret:} ${secret:a b} ${secret:api $s3cr3t-value",
            true,
        ),
        (
            "x",
            "$secret {secret:api} ${SECRET:api}",
            "x",
            "$secret {secret:api} ${SECRET:api}",
            false,
        ),
    ] {
        let mut request = request("https://api.example.com/v1", header, body);
        let filled = vault().fill(&mut request, None).await.unwrap();
        let got = request
            .headers
            .get("authorization")
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default();
        assert_eq!(
            (got, &*request.body, filled.body),
            (expected_header, expected_body.as_bytes(), in_body)
        );
        let sensitive = request.headers.values().any(HeaderValue::is_sensitive);
        assert_eq!(sensitive, expected_header.contains("s3cr3t"), "{header}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_setting_that_decides() {
    for (url, header, body, words) in [
        (
            "https://evil.example/",
            "${secret:api}",
            "",
            "the secret `api` is not for evil.example; the operator adds that to `hosts` of \
             `[secrets.api]`",
        ),
        (
            "https://api.example.com.evil.example/",
            "",
            "${secret:api}",
            "is not for api.example.com.evil.example",
        ),
        ("https://example.org/", "", "${secret:api}", "is not for example.org"),
        ("https://notexample.org/", "", "${secret:api}", "is not for notexample.org"),
        ("http://api.example.com/", "${secret:api}", "", "goes over https only"),
        ("https://api.example.com/?k=${secret:api}", "", "", "a URL carries no secret"),
        (
            "https://api.example.com/",
            "",
            "${secret:other}",
            "there is no secret `other`; the operator defines it as `[secrets.other]`",
        ),
        ("https://api.example.com/", "", "${secret:gone}", "the variable `GONE`"),
        (
            "https://api.example.com/",
            "${secret:lines}",
            "",
            "a character that headers cannot carry",
        ),
        ("nowhere", "", "${secret:api}", "needs a URL"),
    ] {
        let mut request = request(url, header, body);
        let why = vault().fill(&mut request, None).await.unwrap_err().to_string();
        assert!(why.contains(words) && !why.contains("s3cr3t"), "{url}: {why}");
    }
    for url in
        ["https://a.example.org/", "https://API.example.com./", "https://api.example.com:8443/"]
    {
        assert!(
            vault().fill(&mut request(url, "", "${secret:api}"), None).await.unwrap().body,
            "{url}"
        );
    }
}

#[tokio::test]
async fn responses_are_cleaned_of_secrets_of_their_host_and_of_sent_ones() {
    let vault = vault();
    let clean = async |url: &str| {
        vault
            .known()
            .await
            .unwrap()
            .cleaner(&[url.parse().unwrap()])
            .clean_text("you sent s3cr3t-value!")
    };
    assert_eq!(clean("https://other.example/").await, "you sent s3cr3t-value!");
    for url in
        ["https://api.example.com/", "https://a.example.org:8443/", "http://api.example.com/"]
    {
        assert_eq!(clean(url).await, "you sent ${secret:api}!", "{url}");
    }
    vault.fill(&mut request("https://api.example.com/", "${secret:api}", ""), None).await.unwrap();
    assert_eq!(clean("https://other.example/").await, "you sent ${secret:api}!");
}

#[tokio::test]
async fn a_secret_that_is_set_during_the_run_is_known_once_it_was_sent() {
    let vault = vault();
    let before = vault.known().await.unwrap();
    vault.mark_sent(&Secret::new("late", "later-value", Vec::new()).unwrap()).await.unwrap();
    assert!(before.refuse("the body", b"later-value").is_ok());
    let why = vault
        .known()
        .await
        .unwrap()
        .refuse("the body", b"x=later%2Dvalue")
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("the body contains the value of the secret `late`") && !why.contains("later-"),
        "{why}"
    );
}
