//! What is on the pictures: nothing overlaps, nothing is cut, colours are those of the theme.

use std::fs;
use std::path::Path;

use super::{drawings, elements, synthetic};
use crate::theme::{Ink, Theme};
use crate::{paint, write};

#[test]
fn no_text_overlaps_another_or_leaves_the_picture() {
    for (name, drawing) in drawings(&synthetic::report()) {
        assert_eq!(drawing.overlaps(), [], "{name}");
        assert_eq!(drawing.cut(), [] as [&str; 0], "{name}");
    }
}

#[test]
fn overlaps_and_cuts_are_seen() {
    // The test above proves nothing if these two cannot fail.
    use crate::drawing::{Drawing, Label};
    let mut d = Drawing::new(100.0);
    d.height = 100.0;
    d.text(Label::new((10.0, 50.0), "one", 12.0));
    d.text(Label::new((20.0, 55.0), "two", 12.0));
    d.text(Label::new((90.0, 10.0), "three", 12.0));
    assert_eq!(d.overlaps(), [("one".to_owned(), "two".to_owned())]);
    assert_eq!(d.cut(), ["three"]);
}

#[test]
fn svg_is_well_formed_and_in_theme_colours() {
    let known: Vec<String> = Ink::all().map(|i| Theme::LIGHT.hex(i)).collect();
    for (name, drawing) in drawings(&synthetic::report()) {
        let file = paint::standalone(&drawing, &name).unwrap();
        assert!(elements(&file) > 20, "{name}");
        assert!(
            elements(&paint::inline(&drawing, &name).unwrap()) > 20,
            "{name}"
        );
        let body = file.split_once("</style>").unwrap().1;
        for colour in body.split("=\"#").skip(1) {
            let colour = format!("#{}", &colour[..6]);
            assert!(
                known.contains(&colour),
                "{name}: {colour} is no colour of the theme"
            );
        }
    }
}

#[test]
fn files_are_complete_and_only_they_are_left() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    // Twice: the second must replace the first.
    let report = synthetic::report();
    assert_eq!(
        write(&report, dir.path()).unwrap(),
        write(&report, dir.path()).unwrap()
    );
    let charts = [
        "confusion",
        "cpu",
        "map",
        "throughput-by-requests",
        "timeline-alpha",
    ];
    assert_eq!(names_in(dir.path()), files_of(&charts));
    // A page shows every picture in both schemes.
    let markdown = fs::read_to_string(dir.path().join("report.md")).unwrap();
    for chart in charts {
        assert!(markdown.contains(&format!("srcset=\"{chart}-dark.png\"")));
        assert!(markdown.contains(&format!("src=\"{chart}.png\"")));
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What a folder holds that had a file of somebody else's before.
fn files_of(charts: &[&str]) -> Vec<String> {
    let of = |c: &&str| [".png", ".svg", "-dark.png"].map(|end| format!("{c}{end}"));
    let mut want: Vec<String> = charts.iter().flat_map(of).collect();
    let others = ["charts.json", "index.html", "notes.txt", "report.md"];
    want.extend(others.map(str::to_owned));
    want.sort();
    want
}

#[test]
fn charts_of_an_earlier_report_go_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("notes.txt"), "not ours").unwrap();
    write(&synthetic::report(), dir.path()).unwrap();
    let mut later = synthetic::report();
    later.timelines.clear();
    later.bars[0].id = "memory".into();
    write(&later, dir.path()).unwrap();
    let charts = ["confusion", "map", "memory", "throughput-by-requests"];
    assert_eq!(names_in(dir.path()), files_of(&charts));
    // A list that somebody edited reaches neither other folders nor other files.
    let outside = tempfile::NamedTempFile::with_suffix(".png").unwrap();
    let list = serde_json::json!(["notes.txt", "../x.png", outside.path(), ".png", "gone.svg"]);
    fs::write(at("charts.json"), list.to_string()).unwrap();
    write(&later, dir.path()).unwrap();
    assert_eq!(names_in(dir.path()), files_of(&charts));
    assert!(outside.path().exists());
    // Without a list, or with a broken one, nothing is removed.
    fs::write(at("old.png"), "an older version left it").unwrap();
    fs::write(at("charts.json"), "{").unwrap();
    write(&later, dir.path()).unwrap();
    assert!(at("old.png").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write(&synthetic::report(), &file.join("below")).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

#[test]
fn png_shows_everything_in_both_schemes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.png");
    let all = drawings(&synthetic::report());
    for (name, drawing) in all.into_iter().filter(|(n, _)| n.ends_with(" 900")) {
        for theme in [Theme::LIGHT, Theme::DARK] {
            paint::png(&drawing, &theme, &path).unwrap();
            let pixels = pixels(&path);
            let count = |ink| {
                let want = theme.rgb(ink);
                pixels.chunks_exact(3).filter(|p| **p == want).count()
            };
            let all = pixels.len() / 3;
            assert_eq!(
                all,
                (2.0 * drawing.width) as usize * (2.0 * drawing.height).ceil() as usize
            );
            let drawn = all - count(Ink::Surface);
            let heat = name.starts_with("map") || name.starts_with("confusion");
            let least = if heat { 20 } else { 1 };
            assert!(
                drawn * 100 > least * all && drawn * 2 < all,
                "{name}: {drawn} of {all} pixels are drawn on"
            );
            let inks = if heat {
                vec![
                    Ink::Heat(1),
                    Ink::Heat(4),
                    Ink::Heat(8),
                    Ink::OnHeat(0),
                    Ink::OnHeat(8),
                ]
            } else {
                (0..3).map(Ink::Series).collect()
            };
            for ink in inks {
                assert!(count(ink) > 100, "{name}: {ink:?} is missing");
            }
            assert!(
                count(Ink::Text) + count(Ink::Muted) > 100,
                "{name}: no text"
            );
        }
    }
}

/// Reads a PNG through plotters' own image library.
fn pixels(path: &std::path::Path) -> Vec<u8> {
    let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(path).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut out = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut out).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    out
}
