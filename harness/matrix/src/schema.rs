//! The format and a catalog of knobs as JSON Schema (draft 2020-12), for editors: names complete,
//! meanings show beside them, slips are underlined while they are typed.
//!
//! A schema says less than [`crate::Matrix::parse`]: it cannot compare two places of a file, and
//! it does not know the options of clients that the file itself brings.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use yieldpoint_terms::{Catalog, Kind, Knob, Value};

use crate::RunSettings;
use crate::document::{FORMAT, MAX_ROUNDS};
use crate::find::BREAKPOINT;

/// Number and unit as `Nanos` reads them; the range of a duration is left to the parser.
const DURATION: &str = r"^\s*[0-9.]+\s*(ns|us|ms|s|m|h)\s*$";
/// Names of axes and clients.
const WORD: &str = "^[A-Za-z0-9_-]+$";

/// The JSON Schema of a matrix file. `clients` are the installed ones; others may be named too,
/// since a file can bring its own.
#[must_use]
pub fn schema(catalog: &Catalog, clients: &[String]) -> Json {
    let mut tree = Node::default();
    for knob in catalog.iter() {
        tree.add(knob);
    }
    // A client of the file answers for its own options, and a schema cannot ask it.
    tree.children.entry("options".into()).or_default().open = Some(ANYTHING.into());
    let mut defs = Map::new();
    defs.insert(
        value_of(ANYTHING),
        json!({ "type": ["boolean", "number", "string"] }),
    );
    defs.insert(value_of("client"), client(clients));
    for knob in catalog.iter() {
        defs.insert(value_of(plain(&knob.name)), scalar(knob));
    }
    for form in [Form::Axis, Form::One, Form::Chosen] {
        tree.define("", form, catalog, &mut defs);
    }
    let root = |form: Form| reference(&form.table(""));
    let selection = json!({
        "description": "axis = value; all of them together",
        "allOf": [root(Form::Chosen)],
        "minProperties": 1,
    });
    let text = |doc: &str| json!({ "type": "string", "pattern": r"\S", "description": doc });
    let knob_names: Vec<&str> = catalog.iter().map(|k| k.name.as_ref()).collect();
    let run = RunSettings::default();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "yieldpoint matrix",
        "description": "An experiment as data: a question, the knobs that all trials share, the axes they differ in.",
        "type": "object",
        "required": ["format", "question", "knobs"],
        "additionalProperties": false,
        "properties": {
            "format": { "const": FORMAT, "description": "version of the format" },
            "question": text("what the run is to answer, in plain words"),
            "source": text("where the experiment comes from"),
            "analysis": text("what the results mean, for whoever reads the report"),
            "run": {
                "type": "object",
                "description": "how often and in which order; never axes",
                "additionalProperties": false,
                "properties": {
                    "rounds": {
                        "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_ROUNDS }, { "const": "auto" }],
                        "default": run.rounds,
                        "description": "passes over all cells, each in a new seeded order; \"auto\": until every comparison is decided",
                    },
                    "seed": { "type": "integer", "minimum": 0, "default": run.seed, "description": "decides the order of the trials within every round" },
                    "compare": text("with rounds = \"auto\", the axis whose values are compared with its first; the first axis with several values if not said"),
                    "find": { "const": BREAKPOINT, "description": "search along an axis of numbers for where throughput stops rising or falls, in at most a fifth of the trials of all its values" },
                    "along": text("with find, the axis that is searched; the only one of numbers if not said"),
                    "controls": { "type": "boolean", "default": run.controls, "description": "whether some cells run twice a round (A/A), so that the noise floor is known" },
                    "ceilings": { "type": "boolean", "default": run.ceilings, "description": "whether the reference client shows once a round what each target can do" },
                },
            },
            "knobs": { "description": "one value is a setting of every cell, a list is an axis", "$ref": format!("#/$defs/{}", Form::Axis.table("")) },
            "axis": {
                "type": "object",
                "description": "[axis.NAME.LABEL]: named sets of knobs; the sets of one NAME are one axis",
                "propertyNames": { "pattern": WORD, "not": { "enum": knob_names } },
                "additionalProperties": { "type": "object", "minProperties": 1, "additionalProperties": root(Form::One) },
            },
            "clients": {
                "type": "object",
                "description": "[clients.NAME]: a client of your own",
                "propertyNames": { "pattern": WORD },
                "additionalProperties": {
                    "type": "object",
                    "required": ["command"],
                    "additionalProperties": false,
                    "properties": { "command": {
                        "type": "array",
                        "description": "program and arguments",
                        "minItems": 1,
                        "prefixItems": [{ "type": "string", "minLength": 1 }],
                        "items": { "type": "string" },
                    } },
                },
            },
            "exclude": { "type": "array", "description": "cells to leave out: those that have all values of one [[exclude]]", "items": selection },
            "claim": {
                "type": "array",
                "description": "published ratios of throughput, to be tested again",
                "items": {
                    "type": "object",
                    "required": ["id", "base", "changed", "published_ratio"],
                    "additionalProperties": false,
                    "properties": {
                        "id": text("unique in this file"),
                        "base": selection,
                        "changed": selection,
                        "published_ratio": { "type": "number", "exclusiveMinimum": 0, "description": "throughput of changed ÷ throughput of base" },
                        "note": text("a remark for the report"),
                        "source": text("where it was published, if not where the whole matrix was"),
                    },
                },
            },
        },
        "$defs": defs,
    })
}

/// The name of any value of a knob that no catalog knows.
const ANYTHING: &str = "*";

/// What may stand behind a knob's name.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// below [knobs]: a value, or a list of them
    Axis,
    /// in a bundle: one value
    One,
    /// in an exclusion or claim: one value, and names of bundle axes among those of knobs
    Chosen,
}

impl Form {
    /// Key in `$defs` of the table of all knobs below a prefix.
    fn table(self, prefix: &str) -> String {
        let form = match self {
            Self::Axis => "knobs",
            Self::One => "bundle",
            Self::Chosen => "selection",
        };
        format!("{form}:{prefix}")
    }

    /// Schema of one knob.
    fn knob(self, name: &str, knob: Option<&Knob>) -> Json {
        let one = reference(&value_of(name));
        if self != Self::Axis {
            return one;
        }
        let mut schema = json!({ "anyOf": [one, { "type": "array", "minItems": 1, "uniqueItems": true, "items": one }] });
        // Editors show what stands at the property itself, not what it refers to.
        if let Some(knob) = knob {
            describe(knob, &mut schema);
        }
        schema
    }
}

fn value_of(name: &str) -> String {
    format!("value:{name}")
}

fn reference(definition: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{definition}") })
}

/// A name without the star of a wildcard.
fn plain(name: &str) -> &str {
    name.strip_suffix(".*").unwrap_or(name)
}

/// Names as a tree: "target.workers" is "workers" below "target".
#[derive(Default)]
struct Node {
    /// the knob of exactly this name
    knob: Option<String>,
    /// every name below this one is a knob, with values like those of this definition
    open: Option<String>,
    children: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, knob: &Knob) {
        let name = plain(&knob.name);
        let mut node = self;
        for part in name.split('.') {
            node = node.children.entry(part.to_owned()).or_default();
        }
        if name == knob.name {
            node.knob = Some(name.to_owned());
        } else {
            node.open = Some(name.to_owned());
        }
    }

    /// Every node below, with its dotted name from here: nested tables, quoted dotted keys and any
    /// mixture of the two are the same key.
    fn below<'a>(&'a self, prefix: &str, out: &mut Vec<(String, &'a Node)>) {
        for (part, node) in &self.children {
            let name = join(prefix, part);
            node.below(&name, out);
            out.push((name, node));
        }
    }

    /// Defines the table of this node, and those below it.
    fn define(&self, path: &str, form: Form, catalog: &Catalog, defs: &mut Map<String, Json>) {
        let mut properties = Map::new();
        let mut patterns = Map::new();
        let mut below = Vec::new();
        self.below("", &mut below);
        for (name, node) in below {
            let full = join(path, &name);
            let mut schemas = Vec::new();
            if node.knob.is_some() {
                schemas.push(form.knob(&full, catalog.get(&full)));
            }
            if node.open.is_some() || !node.children.is_empty() {
                schemas.push(reference(&form.table(&full)));
            }
            if let Some(values) = &node.open {
                let escaped = name.replace('.', r"\.");
                patterns.insert(format!(r"^{escaped}\..+$"), open(values, form));
            }
            let schema = match schemas.len() {
                // A knob whose name is also a prefix: either form.
                2 => json!({ "anyOf": schemas }),
                _ => schemas.into_iter().next().unwrap_or(Json::Bool(true)),
            };
            properties.insert(name, schema);
        }
        let others = match (&self.open, form, path) {
            (Some(values), ..) => open(values, form),
            // The axes of bundles have names that the file alone knows.
            (None, Form::Chosen, "") => reference(&value_of(ANYTHING)),
            _ => Json::Bool(false),
        };
        let mut table = json!({ "type": "object", "additionalProperties": others });
        if path.is_empty() && form != Form::One {
            properties.insert("client".into(), form.knob("client", None));
        }
        if path.is_empty() && form == Form::Axis {
            table["required"] = json!(["client"]);
        }
        table["properties"] = Json::Object(properties);
        if !patterns.is_empty() {
            table["patternProperties"] = Json::Object(patterns);
        }
        if let Some(values) = &self.open {
            defs.insert(below_of(values, form), anything_below(values, form));
        }
        defs.insert(form.table(path), table);
        for (part, node) in &self.children {
            if node.open.is_some() || !node.children.is_empty() {
                node.define(&join(path, part), form, catalog, defs);
            }
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

fn below_of(values: &str, form: Form) -> String {
    format!("{}:below", form.table(values))
}

fn open(values: &str, form: Form) -> Json {
    reference(&below_of(values, form))
}

/// A value, or tables of them to any depth.
fn anything_below(values: &str, form: Form) -> Json {
    let deeper = json!({ "type": "object", "additionalProperties": open(values, form) });
    json!({ "anyOf": [form.knob(values, None), deeper] })
}

fn client(known: &[String]) -> Json {
    json!({
        "description": "the load client; `yieldpoint clients` lists those that are installed, [clients.NAME] brings another",
        "anyOf": [{ "enum": known }, { "type": "string", "pattern": WORD }],
    })
}

/// A single value of a knob.
fn scalar(knob: &Knob) -> Json {
    let mut schema = match &knob.kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max: i64::MAX } => json!({ "type": "integer", "minimum": min }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Float { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Duration { .. } => json!({ "type": "string", "pattern": DURATION }),
        Kind::Choice { of } => json!({ "enum": of }),
        Kind::Any => json!({ "type": ["integer", "string"] }),
    };
    describe(knob, &mut schema);
    schema
}

/// Meaning and default.
fn describe(knob: &Knob, schema: &mut Json) {
    let meaning = match knob.doc.is_empty() {
        true => knob.kind.to_string(),
        false => format!("{} ({})", knob.doc, knob.kind),
    };
    schema["description"] = meaning.into();
    if let Some(default) = knob.default_value() {
        schema["default"] = match default {
            Value::Bool(b) => b.into(),
            Value::Int(i) => i.into(),
            Value::Float(x) => x.into(),
            text @ (Value::Text(_) | Value::Duration(_)) => text.to_string().into(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yieldpoint_terms::Nanos;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::new();
        let doc = "How long the window is.";
        let (ten, day) = (Nanos::from_secs(10), Nanos::from_secs(86_400));
        catalog.add([
            Knob::duration("duration", ten, Nanos::from_millis(1), day, doc),
            Knob::int("target.workers", 1, 1, 64, ""),
            // A name that is also a prefix.
            Knob::bool("target.close", true, ""),
            Knob::int("target.close.after", 0, 0, i64::MAX, ""),
            Knob::optional("lab.sysctl.*", Kind::Any, ""),
        ]);
        catalog
    }

    #[test]
    fn a_knob_carries_meaning_range_and_default() {
        let schema = schema(&catalog(), &["ureq".into()]);
        let duration = &schema["$defs"]["knobs:"]["properties"]["duration"];
        assert_eq!(duration["default"], "10s");
        assert_eq!(
            duration["description"],
            "How long the window is. (a duration from \"1ms\" to \"86400s\")"
        );
        let workers = &schema["$defs"]["value:target.workers"];
        assert_eq!(
            (&workers["minimum"], &workers["maximum"]),
            (&json!(1), &json!(64))
        );
        assert!(
            schema["$defs"]["value:target.close.after"]
                .get("maximum")
                .is_none()
        );
        assert_eq!(
            schema["$defs"]["value:client"]["anyOf"][0]["enum"],
            json!(["ureq"])
        );
    }

    #[test]
    fn nested_dotted_and_mixed_names_are_all_there() {
        let schema = schema(&catalog(), &[]);
        let properties = |table: &str| {
            let table = schema["$defs"][table]["properties"].as_object().unwrap();
            table.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            properties("knobs:"),
            [
                "client",
                "duration",
                "lab",
                "lab.sysctl",
                "options",
                "target",
                "target.close",
                "target.close.after",
                "target.workers"
            ]
        );
        assert_eq!(
            properties("bundle:target"),
            ["close", "close.after", "workers"]
        );
        let both = &schema["$defs"]["knobs:target"]["properties"]["close"]["anyOf"];
        assert_eq!(both.as_array().map(Vec::len), Some(2), "a knob and a table");
        assert!(schema["$defs"]["knobs:"]["patternProperties"][r"^lab\.sysctl\..+$"].is_object());
    }

    #[test]
    fn every_unit_of_a_duration_is_known() {
        for unit in ["ns", "us", "ms", "s", "m", "h"] {
            assert!(format!("1{unit}").parse::<Nanos>().is_ok(), "{unit}");
            assert!(
                DURATION.contains(&format!("{unit}|")) || DURATION.contains(&format!("{unit})"))
            );
        }
    }
}
