//! The addresses that can be connected to, decided when the connection is made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::Error;

/// Reads an address as everything here does that goes to one, or asks before.
pub(crate) fn parsed(text: &str) -> Option<Url> {
    Url::parse(text.trim()).ok()
}

#[derive(Clone, Default)]
pub struct Addresses {
    /// Hosts, optionally with a port, that the operator permits although they are not public.
    allowed: Arc<Vec<String>>,
    /// The resolver of names; the system's by default.
    names: Option<Arc<dyn Resolve>>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Addresses {
    /// Allows hosts that are not public, as `name` or `name:port`.
    #[must_use]
    pub fn allowing(hosts: &[String]) -> Self {
        let allowed = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { allowed: Arc::new(allowed), names: None }
    }

    /// Uses another resolver than the system's; its results are checked as well.
    #[must_use]
    pub fn looked_up_by(mut self, names: Arc<dyn Resolve>) -> Self {
        self.names = Some(names);
        self
    }

    /// Checks what can be seen of an address before its name is looked up.
    ///
    /// # Errors
    /// [`Error::NotAnAddress`], [`Error::Credentials`], and [`Error::NotPublic`] for a literal that is not.
    pub fn check(&self, text: &str) -> Result<Url, Error> {
        let mut url = parsed(text).ok_or_else(|| Error::NotAnAddress(text.to_owned()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::NotAnAddress(text.to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            return Err(Error::Credentials(url.into()));
        }
        let is_public = match url.host() {
            None => return Err(Error::NotAnAddress(text.to_owned())),
            Some(Host::Ipv4(ip)) => is_public(ip.into()),
            Some(Host::Ipv6(ip)) => is_public(ip.into()),
            // Its addresses are not checked later, so a port that the operator names is the only one.
            Some(Host::Domain(name)) => !is_local_name(name) && !self.allows_name(name),
        };
        if is_public || self.allows(&url) {
            url.set_fragment(None);
            return Ok(url);
        }
        Err(Error::NotPublic(url.into()))
    }

    pub fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        self.allowed.iter().any(|allowed| *allowed == host || Some(allowed) == with_port.as_ref())
    }

    fn allows_name(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed.split(':').next() == Some(name))
    }
}

/// Yields only the public addresses of a name, at the moment of the connection.
impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.clone();
        Box::pin(async move {
            let asked = name;
            let name = asked.as_str().to_ascii_lowercase();
            let found: Vec<SocketAddr> = match &addresses.names {
                Some(names) => names.resolve(asked).await?.collect(),
                None => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
            };
            let is_allowed = addresses.allows_name(&name);
            let kept: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_allowed || is_public(address.ip())).collect();
            if kept.is_empty() {
                return Err(format!("the name leads to no public address: {name}").into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let endings = [".localhost", ".local", ".internal", ".home.arpa", ".lan", ".intranet", ".corp"];
    name == "localhost"
        || !name.contains('.')
        || endings.iter().any(|ending| name.ends_with(ending))
}

pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        // Shared by carriers, of the protocol's own, for benchmarks, and of relays that are gone.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 88 && c == 99);
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    // A network's own translation, which can put the address elsewhere than at the end.
    if ip.segments().starts_with(&[0x64, 0xff9b, 1]) {
        return false;
    }
    // An address that carries one of the older kind leads where that leads.
    if let Some(inner) = embedded(ip) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = ip.segments();
    let is_global = first & 0xe000 == 0x2000;
    let is_documentation = first == 0x2001 && second == 0x0db8;
    // Protocol assignments, with the tunnels that carry other addresses in themselves.
    let is_protocol = first == 0x2001 && second < 0x0200;
    is_global && !is_documentation && !is_protocol && first != 0x3fff
}

/// Returns the address of the older kind that an address carries.
pub fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = ip.segments();
    let last = || {
        let [.., high, low] = segments;
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // Mapped, compatible, translated, and both prefixes of network translation.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            Some(last())
        }
        [0x64, 0xff9b, ..] => Some(last()),
        [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_addresses_are_refused_in_every_spelling() {
        let addresses = Addresses::default();
        for inside in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[64:ff9b:1:a00:0:100:808:808]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/",
            "http://10.0.0.1/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest",
            "http://100.100.100.200/",
            "http://198.18.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://240.0.0.1/",
            "http://metadata.google.internal/",
            "http://router.lan/",
            "http://intranet/",
            "http://①②⑦.⓪.⓪.①/",
            "http://[::127.0.0.1]/",
            "http://[2001:db8::1]/",
            "http://192.0.2.1/",
            "http://[2001:0:7f00:1::]/",
        ] {
            let refused = addresses.check(inside);
            assert!(
                matches!(refused, Err(Error::NotPublic(_) | Error::NotAnAddress(_))),
                "{inside}: {refused:?}"
            );
        }
        for text in [
            "file:///etc/passwd",
            "gopher://x.test/",
            "ftp://x.test/",
            "javascript:alert(1)",
            "data:text/html,x",
            "//x.test",
            "x",
        ] {
            assert!(matches!(addresses.check(text), Err(Error::NotAnAddress(_))), "{text}");
        }
        let refused = addresses.check("http://user:secret@example.org/").unwrap_err().to_string();
        assert!(!refused.contains("secret"), "{refused}");
        for outside in [
            "http://93.184.216.34/",
            "https://example.org/a#b",
            "http://[2606:2800:220:1::1]/",
            "http://8.8.8.8:8080/",
        ] {
            assert!(addresses.check(outside).is_ok(), "{outside}");
        }
    }

    #[test]
    fn hosts_and_ports_that_the_operator_allows_are_allowed() {
        let addresses = Addresses::allowing(&["127.0.0.1:8080".into(), "wiki.lan".into()]);
        assert!(addresses.check("http://127.0.0.1:8080/").is_ok());
        assert!(addresses.check("http://127.0.0.1/").is_err());
        assert!(addresses.check("https://wiki.lan/x").is_ok());
        let addresses = Addresses::allowing(&["wiki.example.com:8080".into()]);
        assert!(addresses.check("http://wiki.example.com:8080/").is_ok());
        assert!(addresses.check("http://WIKI.example.com:22/").is_err());
        assert!(addresses.check("http://example.com/").is_ok());
    }
}
