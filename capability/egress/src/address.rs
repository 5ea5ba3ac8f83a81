//! Tables of addresses that are not part of the public internet. In each table, the first matching
//! row determines the class.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use Class::*;

/// The class of an address that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An address of this machine.
    Loopback,
    /// An address in a private network (RFC 1918, local-use NAT64).
    Private,
    /// An address on a single network link. Routers do not forward its traffic.
    LinkLocal,
    /// An address in a network shared by customers behind a carrier's address translation.
    CarrierNat,
    /// An IPv6 unique local or (obsolete) site-local address.
    UniqueLocal,
    /// The address of a cloud metadata service, which returns the credentials and settings of an
    /// instance.
    Metadata,
    /// A multicast address, which reaches a group of receivers.
    Multicast,
    /// The broadcast address, which reaches all hosts on the link.
    Broadcast,
    /// The unspecified address, which systems treat as this machine.
    Unspecified,
    /// An address in a network reserved for benchmarks.
    Benchmark,
    /// An address in a network reserved for examples in documentation.
    Documentation,
    /// An address in a reserved or unassigned network.
    Reserved,
    /// An IPv6 address with an embedded IPv4 address (IPv4-compatible, 6to4, Teredo).
    Tunnel,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loopback => "loopback",
            Private => "private",
            LinkLocal => "link-local",
            CarrierNat => "carrier-grade NAT",
            UniqueLocal => "unique local",
            Metadata => "cloud metadata",
            Multicast => "multicast",
            Broadcast => "broadcast",
            Unspecified => "unspecified",
            Benchmark => "benchmark",
            Documentation => "documentation",
            Reserved => "reserved",
            Tunnel => "tunnel",
        })
    }
}

/// The IPv4 networks that are not public. Each row contains the network, the prefix length and the
/// class.
const V4: &[([u8; 4], u32, Class)] = &[
    ([169, 254, 169, 254], 32, Metadata),
    ([169, 254, 170, 2], 32, Metadata),
    ([169, 254, 170, 23], 32, Metadata),
    ([100, 100, 100, 200], 32, Metadata),
    ([168, 63, 129, 16], 32, Metadata),
    ([192, 0, 0, 192], 32, Metadata),
    ([0, 0, 0, 0], 8, Unspecified),
    ([10, 0, 0, 0], 8, Private),
    ([100, 64, 0, 0], 10, CarrierNat),
    ([127, 0, 0, 0], 8, Loopback),
    ([169, 254, 0, 0], 16, LinkLocal),
    ([172, 16, 0, 0], 12, Private),
    ([192, 0, 0, 0], 24, Reserved),
    ([192, 0, 2, 0], 24, Documentation),
    ([192, 88, 99, 0], 24, Reserved),
    ([192, 168, 0, 0], 16, Private),
    ([198, 18, 0, 0], 15, Benchmark),
    ([198, 51, 100, 0], 24, Documentation),
    ([203, 0, 113, 0], 24, Documentation),
    ([224, 0, 0, 0], 4, Multicast),
    ([255, 255, 255, 255], 32, Broadcast),
    ([240, 0, 0, 0], 4, Reserved),
];

/// The IPv6 networks that are not public. All other networks outside `2000::/3` are reserved.
const V6: &[([u16; 8], u32, Class)] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Metadata),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Metadata),
    ([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, Metadata),
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, Unspecified),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, Tunnel),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Private),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 8, Reserved),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Tunnel),
    ([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Benchmark),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Reserved),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Documentation),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Tunnel),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Documentation),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, UniqueLocal),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, UniqueLocal),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Multicast),
];

/// IPv6 networks whose addresses end in the IPv4 address to which traffic is sent. The class of
/// that IPv4 address applies. In order: IPv4-mapped, IPv4-translated, NAT64.
const EMBEDS_V4: &[[u16; 8]] = &[
    [0, 0, 0, 0, 0, 0xffff, 0, 0],
    [0, 0, 0, 0, 0xffff, 0, 0, 0],
    [0x64, 0xff9b, 0, 0, 0, 0, 0, 0],
];

/// Names of the metadata services of cloud platforms.
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Returns the class of an address, or `None` if it is public.
///
/// ```
/// use wattle_egress::{Class, classify};
/// assert_eq!(classify("::ffff:10.0.0.1".parse().unwrap()), Some(Class::Private));
/// assert_eq!(classify("1.1.1.1".parse().unwrap()), None);
/// ```
pub fn classify(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

/// Returns true if the host of a URL is `localhost` or a loopback address.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let address = match url.host() {
        Some(Host::Ipv4(v4)) => v4.into(),
        Some(Host::Ipv6(v6)) => v6.into(),
        Some(Host::Domain(name)) => return name == "localhost",
        None => return false,
    };
    classify(address) == Some(Class::Loopback)
}

fn classify_v4(address: Ipv4Addr) -> Option<Class> {
    let bits = u32::from(address);
    V4.iter()
        .find(|(net, len, _)| (bits ^ u32::from(Ipv4Addr::from(*net))).leading_zeros() >= *len)
        .map(|&(_, _, class)| class)
}

fn classify_v6(address: Ipv6Addr) -> Option<Class> {
    let bits = u128::from(address);
    let within =
        |net: [u16; 8], len: u32| (bits ^ u128::from(Ipv6Addr::from(net))).leading_zeros() >= len;
    if EMBEDS_V4.iter().any(|net| within(*net, 96)) {
        // The low 32 bits are the embedded address, so the truncation is intended.
        return classify_v4(Ipv4Addr::from(bits as u32));
    }
    let listed = V6.iter().find(|(net, len, _)| within(*net, *len)).map(|&(_, _, class)| class);
    listed.or((!within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3)).then_some(Reserved))
}

/// Returns the class of a name that is denied without resolving it, or `None` for every other
/// name. `name` is in lower case, without a final dot.
pub(crate) fn classify_name(name: &str) -> Option<Class> {
    if name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" {
        return Some(Loopback);
    }
    METADATA_NAMES.contains(&name).then_some(Metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that the first and the last address of each IPv4 row, and the last address of each
    /// IPv6 row, have the row's class, unless an earlier row matches.
    #[test]
    fn every_row_decides_its_network() {
        for &(net, len, class) in V4 {
            let first = u32::from(Ipv4Addr::from(net));
            let last = first | u32::MAX.checked_shr(len).unwrap_or(0);
            assert_eq!(classify_v4(first.into()), Some(class), "{}/{len}", Ipv4Addr::from(net));
            if !(len == 4 && class == Reserved) {
                assert_eq!(
                    classify_v4(last.into()),
                    Some(class),
                    "end of {}/{len}",
                    Ipv4Addr::from(net)
                );
            }
        }
        for &(net, len, class) in V6 {
            let first = u128::from(Ipv6Addr::from(net));
            let last = first | u128::MAX.checked_shr(len).unwrap_or(0);
            assert_eq!(
                classify_v6(last.into()),
                Some(class),
                "end of {}/{len}",
                Ipv6Addr::from(net)
            );
        }
    }

    /// Tests that the addresses just outside the networks in the tables are public.
    #[test]
    fn neighbours_are_public() {
        for text in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::1",
            "2001:db9::",
            "2003::1",
            "2606:4700:4700::1111",
            "3ffe::1",
            "3fff:1000::",
            "::ffff:8.8.8.8",
            "::ffff:0:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(classify(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn unassigned_ipv6_space_is_reserved() {
        for text in [
            "1::",
            "64:ff9b:2::",
            "200::",
            "400::1",
            "1fff:ffff::",
            "4000::",
            "5f00::1",
            "e000::",
            "fe00::1",
        ] {
            assert_eq!(classify(text.parse().unwrap()), Some(Reserved), "{text}");
        }
    }
}
