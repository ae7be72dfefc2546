//! What a target says it saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// Totals from `go` to `report`, and their course.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testimony {
    /// connections accepted
    pub connections: u64,
    /// complete requests read
    pub requests: u64,
    /// complete responses written, by status
    #[serde(deserialize_with = "by_status")]
    pub responses: BTreeMap<u16, u64>,
    /// bytes read from sockets
    pub bytes_in: u64,
    /// bytes written to sockets
    pub bytes_out: u64,
    /// connections whose first end-of-file came from the client
    pub closed_by_client: u64,
    /// connections that the target closed first (`Connection: close`, keep-alive limit or timeout)
    pub closed_by_target: u64,
    /// connections that ended by an error (reset)
    pub reset: u64,
    /// connections still open
    pub active: u64,
    /// greatest length of the accept queue seen (sampled every 100 ms)
    pub listen_queue_peak: u64,
    /// CPU time of the target since `go`, user and system, ns
    pub cpu_ns: u64,
    /// 100 ms series
    pub series: TargetSeries,
}

/// Counts in slots of equal length from the start that `go` carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSeries {
    /// CLOCK_MONOTONIC ns of the first slot
    pub start_ns: u64,
    /// length of a slot in ns (100 ms)
    pub slot_ns: u64,
    /// responses completed in each slot
    pub responses: Vec<u64>,
    /// connections accepted in each slot
    pub connections: Vec<u64>,
    /// bytes written in each slot
    pub bytes_out: Vec<u64>,
    /// connections open at the end of each slot
    pub active: Vec<u64>,
    /// length of the accept queue at the end of each slot
    pub listen_queue: Vec<u64>,
}

/// Keys of a JSON object are texts, and inside of a tagged message serde does not turn them into
/// numbers by itself.
fn by_status<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    BTreeMap::<String, u64>::deserialize(d)?
        .into_iter()
        .map(|(status, n)| Ok((status.parse().map_err(serde::de::Error::custom)?, n)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FromProgram;

    #[test]
    fn a_testimony_survives_the_trip_as_a_message() {
        let sent = Testimony {
            responses: [(200, 5), (404, 1)].into(),
            ..Testimony::default()
        };
        let line = serde_json::to_string(&FromProgram::Testimony(Box::new(sent.clone()))).unwrap();
        let heard: FromProgram = serde_json::from_str(&line).unwrap();
        assert_eq!(heard, FromProgram::Testimony(Box::new(sent)));
    }
}
