//! The figures, one file each.

mod clients;
mod memory;
mod plan;
mod recording;
mod report;
mod sampler;
mod servers;
mod trials;

use anyhow::bail;

use crate::bench::Bench;
use crate::row::Row;

/// Something that is measured.
pub struct Figure {
    /// as in `--only`
    pub name: &'static str,
    /// Measures it. An error leaves the whole figure unmeasured.
    rows: fn(&Bench) -> anyhow::Result<Vec<Row>>,
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "clients",
        rows: clients::rows,
    },
    Figure {
        name: "servers",
        rows: servers::rows,
    },
    Figure {
        name: "recording",
        rows: recording::rows,
    },
    Figure {
        name: "memory",
        rows: memory::rows,
    },
    Figure {
        name: "sampler",
        rows: sampler::rows,
    },
    Figure {
        name: "trials",
        rows: trials::rows,
    },
    Figure {
        name: "plan",
        rows: plan::rows,
    },
    Figure {
        name: "report",
        rows: report::rows,
    },
];

/// The figures of these names, in the order of the list; all without a name.
pub fn selected(only: &[String]) -> anyhow::Result<Vec<&'static Figure>> {
    for name in only {
        if !FIGURES.iter().any(|f| f.name == name) {
            let known: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
            bail!("--only \"{name}\": expected one of {}", known.join(", "));
        }
    }
    let wanted = |f: &&Figure| only.is_empty() || only.iter().any(|name| name == f.name);
    Ok(FIGURES.iter().filter(wanted).collect())
}

/// Measures them one after the other.
pub fn all(bench: &Bench, figures: &[&Figure]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for figure in figures {
        eprintln!("{} …", figure.name);
        let measured = (figure.rows)(bench);
        bench.stop().check()?;
        rows.extend(
            measured.unwrap_or_else(|e| vec![Row::unmeasured(figure.name, &format!("{e:#}"))]),
        );
    }
    Ok(rows)
}

/// Says which round it is, for whoever waits.
pub fn say_round(what: &str, round: usize, rounds: usize) {
    eprintln!("  {what}: round {round} of {rounds}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_in_the_order_of_the_list() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|n| (*n).to_owned()).collect();
            selected(&only).map(|f| f.iter().map(|f| f.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["plan", "clients"]).unwrap(), ["clients", "plan"]);
        assert_eq!(names(&[]).unwrap().len(), FIGURES.len());
        assert!(
            names(&["wrk"])
                .unwrap_err()
                .to_string()
                .contains("clients, servers")
        );
    }
}
