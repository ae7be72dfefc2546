//! What is seen of a target at the other end of a link.

use crate::common::{Scratch, rows, stderr};
use yieldpoint_record::{Status, Trial};
use yieldpoint_terms::SampleSeries;

fn column(s: &SampleSeries, metric: &str) -> Vec<i64> {
    let column = s.columns.get(metric).map_or(&[][..], Vec::as_slice);
    column.iter().flatten().copied().collect()
}

/// A running total at the end. The lab is fresh, so it began at 0; a first sample may come late.
fn total(s: &SampleSeries, metric: &str) -> i64 {
    *column(s, metric).last().expect("it was read")
}

#[test]
fn drops_at_the_accept_queue_are_seen_across_a_link() {
    let scratch = Scratch::new();
    // 200 users and room for two connections: on one CPU nobody accepts while the client connects. Each
    // connect that finds no room is dropped, and sent again a second later.
    let matrix = scratch.matrix(
        "link",
        "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nusers_per_thread = 200\nkeep_alive = false\nduration = \"1s\"\ntarget.backlog = 1\nlab.network = [\"loopback\", \"veth\"]\nlab.cpus.client = \"0\"\nlab.cpus.target = \"0\"\n",
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        let samples = row.samples.as_ref().expect("a trial is sampled");
        let drops = total(samples, "tcp_listen_drops");
        assert!(drops > 0, "{}: nothing was dropped", row.cell);
        assert!(column(samples, "listen_queue_limit").contains(&1));
        // Both ends of what was accepted, whatever namespace they are in.
        let target = row.testimony.as_ref().expect("ours testifies");
        let accepted = i64::try_from(target.connections).expect("it fits");
        assert!(total(samples, "tcp_passive_opens") >= accepted);
        assert!(total(samples, "tcp_active_opens") >= accepted);
        entries_of_the_target(row, samples);
    }
}

/// Over a link the entries of either end are apart; on loopback they are in one namespace.
fn entries_of_the_target(row: &Trial, samples: &SampleSeries) {
    let apart = column(samples, "sockets_time_wait_target");
    assert_eq!(!apart.is_empty(), row.cell.contains("veth"), "{}", row.cell);
}
