//! Checks arbitrary URLs with the egress guard. A URL that the guard allows must lead to a public
//! address or to a host named in a rule. This test classifies addresses independently of the guard.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use wattle_capability::egress::{Egress, Policy, Url, classify};

static PUBLIC: LazyLock<Egress> = LazyLock::new(|| Egress::new(Policy::default()));
static NAMED: LazyLock<Egress> = LazyLock::new(|| {
    let allow = ["127.0.0.1:8080", "intra.example", "[::1]:9"]
        .iter()
        .map(|rule| rule.parse().unwrap())
        .collect();
    Egress::new(Policy { allow, ..Policy::default() })
});

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let refused = matches!(a, 0 | 10 | 127 | 224..=255)
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && (b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99)))
        || (a == 198 && (b == 18 || b == 19 || (b == 51 && c == 100)))
        || (a == 203 && b == 0 && c == 113);
    !refused && !["100.100.100.200", "168.63.129.16"].contains(&address.to_string().as_str())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let low = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => {
            is_public_v4(low)
        }
        _ => {
            (0x2000..0x4000).contains(&a)
                && !(a == 0x2001 && (b < 0x200 || b == 0xdb8))
                && a != 0x2002
                && !(a == 0x3fff && b < 0x1000)
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(sixteen) = bytes.first_chunk::<16>() {
        let v6 = IpAddr::from(*sixteen);
        let v4 = IpAddr::from([sixteen[0], sixteen[1], sixteen[2], sixteen[3]]);
        for address in [v4, v6] {
            assert_eq!(classify(address).is_none(), is_public(address), "{address}");
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for (egress, named) in [(&*PUBLIC, false), (&*NAMED, true)] {
        if egress.check(text).is_err() {
            continue;
        }
        let url = Url::parse(text).unwrap();
        assert!(
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none(),
            "{url}"
        );
        let host = url
            .host_str()
            .unwrap()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .trim_end_matches('.')
            .to_owned();
        let port = url.port_or_known_default().unwrap();
        let rule = named
            && (host == "intra.example"
                || (host == "127.0.0.1" && port == 8080)
                || (host == "::1" && port == 9));
        match IpAddr::from_str(&host) {
            Ok(address) => assert!(rule || is_public(address), "{url}"),
            Err(_) => {
                let local = host == "localhost"
                    || host.ends_with(".localhost")
                    || host == "localhost.localdomain";
                let metadata = host.starts_with("metadata.google")
                    || host == "metadata"
                    || host == "instance-data";
                assert!(
                    rule || !(local
                        || host == "metadata.google.internal"
                        || (metadata && !host.contains('.'))),
                    "{url}"
                );
            }
        }
    }
});
