//! Names of knobs and their values, judged by the catalog.

use std::borrow::Cow;
use std::collections::BTreeSet;

use yieldpoint_terms::{Catalog, Kind, Knob, KnobError, Value, nearest};

use crate::problem::{Place, Problem};
use crate::reader::quoted;

/// Names that a later version will give a meaning; nobody should use them for something else.
const RESERVED: [&str; 5] = ["tls", "ipv6", "think_time", "ramp_up", "http2"];

/// The knobs of the catalog, and `client`, which is the matrix's own.
pub(crate) struct Names<'a> {
    catalog: &'a Catalog,
    client: Knob,
    clients: BTreeSet<String>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(catalog: &'a Catalog, clients: BTreeSet<String>) -> Self {
        let of: Vec<Cow<'static, str>> = clients.iter().cloned().map(Cow::Owned).collect();
        let client = Knob {
            name: Cow::Borrowed("client"),
            kind: Kind::Choice { of: Cow::Owned(of) },
            default: None,
            doc: Cow::Borrowed("the load client"),
        };
        Self {
            catalog,
            client,
            clients,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Knob> {
        if name == "client" {
            return Some(&self.client);
        }
        // The knob "lab.sysctl.*" answers to every name below it, but also to its own star.
        self.catalog.get(name).filter(|_| !name.ends_with('*'))
    }

    /// The names of all clients.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &str> {
        self.clients.iter().map(String::as_str)
    }

    /// The problem of a name that no knob answers to.
    pub(crate) fn unknown(&self, place: &Place, name: &str) -> Problem {
        let typed = matches!(place, Place::Argument(_));
        let prefix = format!("{name}.");
        let last = name.rsplit('.').next().unwrap_or(name);
        let knobs = self.catalog.iter().map(|k| k.name.as_ref());
        let knobs = knobs.filter(|k| !k.ends_with('*')).chain(["client"]);
        let fix = if matches!(name, "rounds" | "seed" | "run.rounds" | "run.seed") {
            if typed {
                format!("use --{last}")
            } else {
                format!("write {last} in [run]; it is never an axis")
            }
        } else if RESERVED.contains(&name) {
            "remove it; the name is reserved for a later version".to_owned()
        } else if let Some(below) = self.catalog.iter().find(|k| k.name.starts_with(&prefix)) {
            format!(
                "it is a prefix: write a whole name, such as \"{}\"",
                below.name
            )
        } else if let Some(owner) = owner(name).filter(|o| !self.clients.contains(*o)) {
            let clients: Vec<&str> = self.clients().collect();
            format!(
                "{} is not one of the clients {}",
                quoted(owner),
                clients.join(", ")
            )
        } else if let Some(near) = nearest(name, knobs) {
            format!("did you mean \"{near}\"?")
        } else {
            "see \"knobs\" in matrices/README.md".to_owned()
        };
        let what = format!("unknown knob {}", quoted(name));
        Problem::new(place, what, "the name of a knob", quoted(name), fix)
    }

    /// A value in the type of its knob.
    pub(crate) fn accept(
        &self,
        place: &Place,
        name: &str,
        value: &Value,
    ) -> Result<Value, Box<Problem>> {
        let knob = self
            .get(name)
            .ok_or_else(|| Box::new(self.unknown(place, name)))?;
        let accepted = knob.accept(name, value);
        accepted.map_err(|e| Box::new(wrong(place, knob, e, value)))
    }

    /// The same for a value that was typed, where everything is text.
    pub(crate) fn parse(
        &self,
        place: &Place,
        name: &str,
        text: &str,
    ) -> Result<Value, Box<Problem>> {
        let knob = self
            .get(name)
            .ok_or_else(|| Box::new(self.unknown(place, name)))?;
        let value = knob.parse(name, text);
        value.map_err(|e| Box::new(wrong(place, knob, e, &Value::Text(text.to_owned()))))
    }
}

/// The client in whose cells alone a knob exists ("options.isahc.tcp_nodelay" → "isahc").
pub(crate) fn owner(name: &str) -> Option<&str> {
    let (owner, _) = name.strip_prefix("options.")?.split_once('.')?;
    Some(owner)
}

fn wrong(place: &Place, knob: &Knob, error: KnobError, value: &Value) -> Problem {
    let typed = matches!(place, Place::Argument(_));
    let text = if let Value::Text(t) = value {
        Some(t)
    } else {
        None
    };
    let fix = match (&knob.kind, text) {
        (Kind::Choice { of }, Some(word)) => match nearest(word, of.iter().map(AsRef::as_ref)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "choose one of them".to_owned(),
        },
        (Kind::Choice { .. } | Kind::Text | Kind::Any, _) => "write a text in quotes".to_owned(),
        (Kind::Duration { .. }, None) => {
            "add a unit and quotes: \"250ms\", \"10s\", \"2m\"".to_owned()
        }
        (Kind::Duration { .. }, Some(_)) => {
            "give a number and a unit in that range: \"250ms\", \"10s\", \"2m\"".to_owned()
        }
        (Kind::Bool | Kind::Int { .. } | Kind::Float { .. }, Some(_)) if !typed => {
            format!("write {} without quotes", knob.kind)
        }
        (Kind::Bool | Kind::Int { .. } | Kind::Float { .. }, _) => format!("give {}", knob.kind),
    };
    let what = if knob.name == "client" && text.is_some() {
        format!("unknown client {}", error.got)
    } else {
        format!("knob {}", quoted(&error.knob))
    };
    Problem::new(place, what, error.expected, error.got, fix)
}
