//! What a matrix becomes.

use std::fmt::Write as _;

use yieldpoint_matrix::{Changes, Matrix, RunSettings, describe_clients};
use yieldpoint_terms::Value;

use crate::catalog::{body, catalog, clients};

/// Everything that a file says, in a form a reviewer can read.
fn listing(matrix: &Matrix) -> String {
    let mut out = format!("{}\nrun: {:?}\n", matrix.question, matrix.run);
    for axis in &matrix.axes {
        let values: Vec<String> = axis.values.iter().map(Value::to_string).collect();
        let kind = if axis.bundle { "bundle axis" } else { "axis" };
        writeln!(out, "{kind} {}: {}", axis.name, values.join(" | ")).unwrap();
    }
    writeln!(out, "{} cells", matrix.cells.len()).unwrap();
    for cell in &matrix.cells {
        writeln!(out, "  {}", cell.id).unwrap();
    }
    let first = &matrix.cells[0];
    writeln!(out, "knobs of {}", first.id).unwrap();
    for (name, value) in &first.knobs.0 {
        writeln!(out, "  {name} = {value}").unwrap();
    }
    for claim in &matrix.claims {
        let side = |s: &[(String, Value)]| {
            let parts: Vec<String> = s.iter().map(|(axis, v)| format!("{axis}={v}")).collect();
            parts.join(",")
        };
        let (base, changed) = (side(&claim.base), side(&claim.changed));
        writeln!(
            out,
            "claim {}: {changed} ÷ {base} = {}",
            claim.id, claim.published_ratio
        )
        .unwrap();
    }
    for note in &matrix.notes {
        writeln!(out, "note: {note}").unwrap();
    }
    out
}

fn shipped(name: &str) -> Matrix {
    let path = format!("{}/../../matrices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let changes = Changes::default();
    Matrix::parse(name, &path, &text, &catalog(), &clients(), &changes)
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_shipped_matrices_expand_to_these_cells() {
    for name in ["quickstart", "keepalive", "ports"] {
        insta::assert_snapshot!(name, listing(&shipped(name)));
    }
}

#[test]
fn every_shipped_matrix_is_sound() {
    let folder = format!("{}/../../matrices", env!("CARGO_MANIFEST_DIR"));
    let names = std::fs::read_dir(folder).unwrap().filter_map(|f| {
        let name = f.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".toml").map(str::to_owned)
    });
    let cells: Vec<usize> = names.map(|name| shipped(&name).cells.len()).collect();
    assert!(cells.len() > 3 && cells.iter().all(|n| *n > 0), "{cells:?}");
}

/// Every feature of the format at once.
const FULL: &str = r#"
source   = "a test"
analysis = "none"

[run]
rounds = 2
seed   = 7

[knobs]
client     = ["mine", "isahc"]
"threads"  = [1, 2]
duration   = "2m"
target.workers = 2
lab.sysctl.net.ipv4.ip_local_port_range = "32768 60999"
options.isahc.tcp_nodelay = [true, false]

[knobs.expect]
status = "200,204"

[axis.kernel.default]
[axis.kernel.wide]
lab.sysctl.net.ipv4.ip_local_port_range = "1025 60999"
"lab.sysctl.net.ipv4.tcp_tw_reuse" = 1

[clients.mine]
command = ["./my-client", "--fast"]

[[exclude]]
threads = 2
kernel  = "wide"

[[exclude]]
client = "mine"
options.isahc.tcp_nodelay = true

[[claim]]
id = "x"
base    = { kernel = "default", threads = 1 }
changed = { kernel = "wide", threads = 1 }
published_ratio = 2
note = "so they say"
source = "a friend"
"#;

#[test]
fn the_whole_format() {
    let matrix = body(FULL).unwrap_or_else(|e| panic!("{e}"));
    insta::assert_snapshot!("full", listing(&matrix));
    assert_eq!(matrix.source.as_deref(), Some("a test"));
    assert_eq!(matrix.analysis.as_deref(), Some("none"));
    assert_eq!(matrix.clients["mine"].command, ["./my-client", "--fast"]);
    assert_eq!(matrix.claims[0].note.as_deref(), Some("so they say"));
    assert_eq!(matrix.claims[0].source.as_deref(), Some("a friend"));
    assert!(matrix.text.contains("so they say"));
}

#[test]
fn quoted_dotted_and_nested_names_are_the_same_key() {
    let forms = [
        "[knobs]\nclient = \"ureq\"\ntarget.workers = [2, 3]",
        "[knobs]\nclient = \"ureq\"\n\"target.workers\" = [2, 3]",
        "[knobs]\nclient = \"ureq\"\ntarget = { workers = [2, 3] }",
        "[knobs]\nclient = \"ureq\"\n[knobs.target]\nworkers = [2, 3]",
        "knobs.client = \"ureq\"\nknobs.target.\"workers\" = [2, 3]",
    ];
    let cells = forms.map(|text| body(text).unwrap_or_else(|e| panic!("{text}\n{e}")).cells);
    assert_eq!(cells[0].len(), 2);
    for (form, cells_of_form) in forms.iter().zip(&cells) {
        assert_eq!(*cells_of_form, cells[0], "{form}");
    }
}

#[test]
fn an_option_exists_in_the_cells_of_its_client_only() {
    let text = "[knobs]\nclient = [\"ureq\", \"isahc\"]\noptions.isahc.tcp_nodelay = [true, false]";
    let matrix = body(text).unwrap();
    let ids: Vec<&str> = matrix.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "test/client=ureq",
            "test/client=isahc,options.isahc.tcp_nodelay=true",
            "test/client=isahc,options.isahc.tcp_nodelay=false",
        ]
    );
    let option = |cell: usize| matrix.cells[cell].knobs.get("options.isahc.tcp_nodelay");
    assert_eq!(option(0), None);
    assert_eq!(option(2), Some(&Value::Bool(false)));
    assert_eq!(
        matrix.notes,
        [
            "1 cell collapsed: equal to another, such as where an axis is an option of another client"
        ]
    );
}

#[test]
fn an_option_that_is_not_set_has_its_default_where_its_client_is() {
    let matrix = body("[knobs]\nclient = [\"ureq\", \"isahc\"]").unwrap();
    let option = |cell: usize| matrix.cells[cell].knobs.get("options.isahc.tcp_nodelay");
    assert_eq!((option(0), option(1)), (None, Some(&Value::Bool(true))));
}

#[test]
fn what_is_written_in_vain_is_noted() {
    let text = "[knobs]\nclient = [\"ureq\", \"isahc\"]\noptions.isahc.tcp_nodelay = [true, false]\nthreads = [1, 2]\n\
                [[exclude]]\nclient = \"ureq\"\noptions.isahc.tcp_nodelay = false";
    let notes = body(text).unwrap().notes;
    let want = "[[exclude]] number 1 matches no cell: client=ureq,options.isahc.tcp_nodelay=false";
    assert_eq!(notes[1], want);
    let notes = body("[knobs]\nclient = \"ureq\"\noptions.isahc.tcp_nodelay = false")
        .unwrap()
        .notes;
    assert_eq!(
        notes,
        ["\"options.isahc.tcp_nodelay\" has no effect: no cell has its client"]
    );
}

#[test]
fn a_file_of_settings_alone_is_one_cell_named_after_it() {
    let matrix = body("[knobs]\nclient = \"ureq\"").unwrap();
    assert_eq!(matrix.cells.len(), 1);
    assert_eq!(matrix.cells[0].id, "test");
    assert_eq!(matrix.run, RunSettings::default());
}

#[test]
fn ids_tell_cells_apart_even_with_commas_inside_values() {
    let text = "[knobs]\nclient = \"ureq\"\nexpect.status = [\"200,204\", 200, \"\"]";
    let ids: Vec<String> = body(text)
        .unwrap()
        .cells
        .into_iter()
        .map(|c| c.id)
        .collect();
    let want = [
        r#"test/expect.status="200,204""#,
        "test/expect.status=200",
        r#"test/expect.status="""#,
    ];
    assert_eq!(ids, want);
}

#[test]
fn clients_are_read_before_there_is_a_catalog() {
    let text = "[knobs]\nnobody_knows = 1\noptions.mine.speed = 2\n[clients.mine]\ncommand = [\"./my-client\"]";
    let clients = describe_clients(text, "test.toml").unwrap();
    assert_eq!(clients["mine"].command, ["./my-client"]);
    assert_eq!(clients.len(), 1);
    let error = describe_clients("[clients.mine\n", "test.toml").unwrap_err();
    assert!(
        error.to_string().starts_with("test.toml:1:14: syntax"),
        "{error}"
    );
}
