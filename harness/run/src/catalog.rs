//! The catalog of knobs of an installation: common ones, the lab's, each target's, each client's own.

use std::borrow::Cow;

use yieldpoint_terms::{Catalog, Kind, Knob};

use crate::Programs;

/// Builds the catalog. `common` are the knobs of every load client.
#[must_use]
pub fn catalog(common: &[Knob], programs: &Programs) -> Catalog {
    let mut all = Catalog::new();
    all.add(common.iter().cloned());
    all.add([target_kind(programs)]);
    for target in &programs.targets {
        all.add(
            target
                .hello
                .knobs
                .iter()
                .cloned()
                .map(|k| k.below("target.")),
        );
    }
    all.add(yieldpoint_lab::KNOBS.iter().cloned());
    for client in &programs.clients {
        let prefix = format!("options.{}.", client.name);
        all.add(client.hello.knobs.iter().cloned().map(|k| k.below(&prefix)));
    }
    all
}

/// Which server is under the load: one of the targets found, or a URL of the user's.
fn target_kind(programs: &Programs) -> Knob {
    let mut words: Vec<Cow<'static, str>> = programs
        .targets
        .iter()
        .map(|t| Cow::Owned(t.name.clone()))
        .collect();
    // The built-in target first: the first word is the default.
    words.sort_by_key(|w| (w != "static", w.clone()));
    words.push(Cow::Borrowed("url"));
    Knob {
        name: Cow::Borrowed("target.kind"),
        kind: Kind::Choice {
            of: Cow::Owned(words),
        },
        default: None,
        doc: Cow::Borrowed(
            "the server under the load: a program of ours, or \"url\" for one that runs already (set `url`)",
        ),
    }
}
