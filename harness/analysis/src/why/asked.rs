//! What was asked of a trial: its knobs, and the sysctls as they were read back.

use yieldpoint_record::Trial;
use yieldpoint_terms::Value;

/// Requests per second of a load, not of what is loaded: equal targets may be loaded differently.
const LOAD: [&str; 8] = [
    "client",
    "threads",
    "users_per_thread",
    "processes",
    "rate",
    "arrival",
    "duration",
    "warmup",
];

/// How connections are used; with the target, the lab and what a good response is, all on which the rate of a
/// target depends. The reference client keeps these of a cell, and nothing else.
const CONNECTIONS: [&str; 3] = ["keep_alive", "same_user", "requests_per_iteration"];
const TARGET: [&str; 3] = ["target.", "lab.", "expect."];

/// The knobs and sysctls of a trial.
pub(super) struct Asked<'a>(pub &'a Trial);

impl Asked<'_> {
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.knobs.get(name)
    }
    pub fn number(&self, name: &str) -> Option<f64> {
        self.value(name)?.as_f64()
    }
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }
    pub fn is(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.0.sysctls.get(name).map(String::as_str)
    }

    /// Every knob but those of the load, as one text; `and` are kept.
    pub fn key(&self, and: &[&str]) -> String {
        let of_the_load = |name: &str| {
            let load = LOAD.contains(&name) && !and.contains(&name);
            let options = name.starts_with("options.") && !and.contains(&"client");
            load || options
        };
        let kept = self.0.knobs.0.iter().filter(|(name, _)| !of_the_load(name));
        kept.map(|(name, value)| format!("{name}={value};"))
            .collect()
    }

    /// Every knob on which the rate of a target depends, as one text.
    pub fn target_key(&self) -> String {
        let kept = |name: &str| {
            CONNECTIONS.contains(&name) || TARGET.iter().any(|prefix| name.starts_with(prefix))
        };
        let kept = self.0.knobs.0.iter().filter(|(name, _)| kept(name));
        kept.map(|(name, value)| format!("{name}={value};"))
            .collect()
    }

    /// The keep-alive limit of the target where the client would use a connection for longer.
    pub fn keepalive_limit(&self) -> Option<f64> {
        let limit = self.number("target.keepalive_requests")?;
        let per_iteration = self.number("requests_per_iteration").unwrap_or(1.0);
        let longer = self.is("same_user")? || per_iteration > limit;
        (self.is("keep_alive")? && longer).then_some(limit)
    }

    pub fn requests_per_connection(&self) -> Option<f64> {
        if !self.is("keep_alive")? || self.is("target.keep_alive") == Some(false) {
            return Some(1.0);
        }
        let limit = self.number("target.keepalive_requests");
        if self.is("same_user")? {
            return limit;
        }
        let per_iteration = self.number("requests_per_iteration")?;
        Some(limit.map_or(per_iteration, |l| l.min(per_iteration)))
    }

    /// Local ports × source addresses in use.
    pub fn ports(&self) -> Option<f64> {
        let range = self.sysctl("net.ipv4.ip_local_port_range")?;
        let mut ends = range.split_whitespace().map(str::parse::<f64>);
        let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
        (high >= low).then(|| (high - low + 1.0) * self.addresses())
    }

    /// Number of source addresses: "127.0.0.1-127.0.0.4" are four.
    pub fn addresses(&self) -> f64 {
        let Some(text) = self.text("source_addresses") else {
            return 1.0;
        };
        let count = |part: &str| -> Option<u32> {
            let parse = |t: &str| t.trim().parse::<std::net::Ipv4Addr>().ok().map(u32::from);
            match part.split_once('-') {
                Some((from, to)) => (parse(to)?.checked_sub(parse(from)?)?).checked_add(1),
                None => parse(part).map(|_| 1),
            }
        };
        let addresses: f64 = text.split(',').filter_map(count).map(f64::from).sum();
        // The users of a process take them in turn, so that no more are in use than it has users.
        let users = self.number("threads").zip(self.number("users_per_thread"));
        users
            .map_or(addresses, |(t, u)| addresses.min(t * u))
            .max(1.0)
    }

    /// When a port in TIME_WAIT may be taken again: with `tcp_tw_reuse` (1, or 2 on loopback) and
    /// timestamps, after `tcp_tw_reuse_delay`, which is 1 s where the kernel does not tell.
    pub fn reuse_after_s(&self) -> Option<f64> {
        let loopback = self.text("lab.network").is_none_or(|n| n == "loopback");
        let reuse = match self.sysctl("net.ipv4.tcp_tw_reuse")?.trim() {
            "1" => true,
            "2" => loopback,
            _ => false,
        };
        let timestamps = self
            .sysctl("net.ipv4.tcp_timestamps")
            .is_none_or(|t| t.trim() != "0");
        let delay = self.sysctl("net.ipv4.tcp_tw_reuse_delay");
        let delay = delay
            .and_then(|d| d.trim().parse::<f64>().ok())
            .unwrap_or(1_000.0);
        (reuse && timestamps).then_some(delay / 1e3)
    }

    pub fn backlog(&self) -> Option<f64> {
        let asked = self.number("target.backlog")?;
        let most = self
            .sysctl("net.core.somaxconn")
            .and_then(|s| s.trim().parse::<f64>().ok());
        Some(most.map_or(asked, |m| m.min(asked)))
    }
}

/// Number of CPUs of a list ("0", "1-3", "0,2"); `None` of a list that is none.
pub(super) fn cores(list: &str) -> Option<f64> {
    let count = |part: &str| -> Option<f64> {
        let parse = |t: &str| t.trim().parse::<f64>().ok();
        match part.split_once('-') {
            Some((from, to)) => Some(parse(to)? - parse(from)? + 1.0).filter(|n| *n >= 1.0),
            None => parse(part).map(|_| 1.0),
        }
    };
    list.split(',').map(count).sum()
}

/// "100mbit" → 10⁸.
pub(super) fn bit_per_s(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
    let (number, scale) = units
        .iter()
        .find_map(|(u, s)| Some((text.strip_suffix(u)?, s)))?;
    number.trim().parse::<f64>().ok().map(|n| n * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_or_nothing() {
        for (list, want) in [
            ("0", Some(1.0)),
            ("1-3", Some(3.0)),
            ("0,2-3", Some(3.0)),
            ("", None),
            ("3-1", None),
            ("all", None),
        ] {
            assert_eq!(cores(list), want, "{list}");
        }
        for (text, want) in [
            ("100mbit", Some(1e8)),
            ("1.5gbit", Some(1.5e9)),
            ("8kbit", Some(8e3)),
            ("64bit", Some(64.0)),
            ("fast", None),
            ("mbit", None),
        ] {
            assert_eq!(bit_per_s(text), want, "{text}");
        }
    }
}
