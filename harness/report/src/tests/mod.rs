//! Tests of whole pictures and of the page. Every figure here is made up.

mod extremes;
mod golden;
mod pictures;
mod synthetic;

use yieldpoint_figures::Report;

use crate::drawing::Drawing;
use crate::files::charts;
use crate::frame::Frame;

/// Every chart of a report in every frame that is used, with its name.
fn drawings(report: &Report) -> Vec<(String, Drawing)> {
    let frames = [(356.0, false), (960.0, false), (900.0, true)];
    let mut out = Vec::new();
    for chart in charts(report) {
        for (width, title) in frames {
            let name = format!("{} at {width}", chart.id);
            out.push((name, (chart.draw)(Frame { width, title })));
        }
    }
    out
}

/// Parses a document and panics where it is not well-formed; gives the number of elements.
fn elements(svg: &str) -> usize {
    // The parser lets pass what the standard forbids.
    let odd = svg.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(odd, None);
    let mut reader = quick_xml::Reader::from_str(svg);
    let mut count = 0;
    loop {
        use quick_xml::events::Event;
        match reader.read_event().unwrap() {
            Event::Eof => return count,
            Event::Start(e) | Event::Empty(e) => {
                count += 1;
                assert!(e.attributes().all(|a| a.is_ok()), "{e:?}");
            }
            _ => {}
        }
    }
}
