//! Tests of the checks that are made before anything is sent. The checks recognize denied addresses
//! in any spelling and apply host rules and domain lists.

use wattle_egress::{DomainPattern, Egress, HostRule, Policy};

fn outcome(egress: &Egress, url: &str) -> String {
    match egress.check(url) {
        Ok(()) => "public".to_owned(),
        Err(why) => why.to_string(),
    }
}

/// Tests the rows of `data/urls.txt`. Each row has the form `URL => TEXT`. The outcome for the URL
/// must contain the text. The URL may span several lines.
#[test]
fn urls_are_judged_by_the_host_that_they_really_name() {
    let egress = Egress::new(Policy::default());
    let mut wrong = Vec::new();
    let mut rows = 0;
    let mut open = String::new();
    for line in include_str!("../data/urls.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((url, expected)) = line.split_once("=> ") else {
            if !line.is_empty() {
                open = format!("{open}{line}\n");
            }
            continue;
        };
        rows += 1;
        let url = format!("{}{}", std::mem::take(&mut open), url.strip_suffix(' ').unwrap_or(url));
        let got = outcome(&egress, &url);
        if !got.contains(expected) {
            wrong.push(format!("{url}\n  - {expected}\n  + {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {rows} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 140, "only {rows} rows were read");
}

#[test]
fn a_refusal_names_the_setting_that_permits_it_and_that_setting_does() {
    for url in
        ["http://127.1:8080/", "http://[::1]:9/x", "https://localhost/", "http://2852039166/"]
    {
        let refusal = Egress::new(Policy::default()).check(url).unwrap_err();
        assert!(refusal.is_refusal());
        let text = refusal.to_string();
        let rule =
            text.split("`--allow-host ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        let egress =
            Egress::new(Policy { allow: vec![rule.parse().unwrap()], ..Policy::default() });
        assert_eq!(egress.check(url), Ok(()), "{text}");
    }
}

#[test]
fn no_rule_helps_a_metadata_name() {
    let refusal =
        Egress::new(Policy::default()).check("http://metadata.google.internal/").unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "refused: metadata.google.internal is a cloud metadata name; no setting permits it"
    );
}

#[test]
fn a_rule_holds_for_its_host_and_port_only() {
    let egress = Egress::new(Policy {
        allow: vec!["127.1:8080".parse().unwrap(), "Intra.Example.".parse().unwrap()],
        ..Policy::default()
    });
    assert_eq!(outcome(&egress, "http://127.0.0.1:8080/"), "public");
    assert_eq!(outcome(&egress, "http://0x7f000001:8080/"), "public");
    assert!(outcome(&egress, "http://127.0.0.1:8081/").contains("loopback"));
    assert!(outcome(&egress, "http://127.0.0.1/").contains("loopback"));
    assert!(outcome(&egress, "http://127.0.0.2:8080/").contains("loopback"));
    assert!(outcome(&egress, "http://localhost:8080/").contains("loopback"));
    assert!(outcome(&egress, "http://[::ffff:127.0.0.1]:8080/").contains("loopback"));
}

#[test]
fn a_domain_list_leaves_its_domains_and_the_allowed_hosts() {
    let patterns = |list: &[&str]| {
        list.iter().map(|text| text.parse().unwrap()).collect::<Vec<DomainPattern>>()
    };
    let egress = Egress::new(Policy {
        only: Some(patterns(&["example.com", "*.example.org", "1.1.1.1"])),
        allow: vec!["127.0.0.1:8080".parse().unwrap()],
        ..Policy::default()
    });
    for url in [
        "http://example.com/",
        "https://EXAMPLE.com.:99/",
        "http://a.example.org/",
        "http://a.b.example.org/",
        "http://1.1.1.1/",
        "http://127.0.0.1:8080/",
    ] {
        assert_eq!(outcome(&egress, url), "public", "{url}");
    }
    for url in [
        "http://www.example.com/",
        "http://example.org/",
        "http://badexample.org/",
        "http://.example.org/",
        "http://example.com.evil.net/",
        "http://8.8.8.8/",
        "http://example.co/",
    ] {
        let got = outcome(&egress, url);
        assert!(
            got.contains(
                "is not one of the allowed domains (`example.com`, `*.example.org`, `1.1.1.1`)"
            ),
            "{url}: {got}"
        );
    }
    let nothing = Egress::new(Policy { only: Some(Vec::new()), ..Policy::default() });
    assert!(outcome(&nothing, "http://example.com/").contains("(none)"));
}

#[test]
fn rules_are_read_or_explained() {
    for (text, shown) in [
        ("example.com", "example.com"),
        (" Example.COM.:443 ", "example.com:443"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001:80", "127.0.0.1:80"),
        ("[::1]", "[::1]"),
        ("[0:0::1]:65535", "[::1]:65535"),
    ] {
        assert_eq!(text.parse::<HostRule>().unwrap().to_string(), shown);
    }
    for (text, word) in [
        ("", "empty host"),
        (".", "empty host"),
        (":80", "empty host"),
        ("http://example.com", "without a scheme"),
        ("example.com/path", "without user, path or query"),
        ("user@example.com", "without user, path or query"),
        ("*.example.com", "wildcard"),
        ("*", "wildcard"),
        ("::1", "brackets"),
        ("fe80::1:80", "brackets"),
        ("[::1", "brackets"),
        ("[::1]80", "port"),
        ("example.com:", "port"),
        ("example.com:0", "port"),
        ("example.com:+80", "port"),
        ("example.com:http", "port"),
        ("example.com:65536", "port"),
        ("[::zz]", "invalid IPv6 address"),
        ("999.1.1.1", "invalid IPv4 address"),
        ("exa mple", "invalid"),
    ] {
        let why = text.parse::<HostRule>().expect_err(text).to_string();
        assert!(why.contains(word), "{text}: {why}");
    }
    for text in ["a.*.example.com", "*", "*.127.0.0.1", "https://example.com", "", "*."] {
        assert!(text.parse::<DomainPattern>().is_err(), "{text}");
    }
}
