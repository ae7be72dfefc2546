//! HDR histograms on the wire: HDR V2 without deflate, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Bytes before the counts in the format V2: cookie, length of the counts, offset, digits, low, high, ratio.
const HEAD: usize = 40;

/// An encoded HDR histogram of nanoseconds. Runner and record pass it on without looking inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(pub String);

/// A text that is not a histogram.
#[derive(Debug, thiserror::Error)]
#[error("not an HDR histogram (V2, base64): {0}")]
pub struct HistogramError(String);

impl Histogram {
    /// Least value that is told apart from 0, ns.
    pub const LOW_NS: u64 = 64;
    /// Greatest value, ns; longer times saturate and are counted.
    pub const HIGH_NS: u64 = 60_000_000_000;
    /// Significant decimal digits.
    pub const DIGITS: u8 = 3;

    /// An empty histogram with the range and precision that every client records with.
    #[must_use]
    pub fn recorder() -> hdrhistogram::Histogram<u64> {
        // The bounds are constants that the library accepts (low ≥ 1, high ≥ 2·low, digits ≤ 5).
        hdrhistogram::Histogram::new_with_bounds(Self::LOW_NS, Self::HIGH_NS, Self::DIGITS)
            .expect("constant bounds are valid")
    }

    /// Encodes.
    #[must_use]
    pub fn encode(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        // Writing to a Vec cannot fail, and counts are far below the format's limit.
        V2Serializer::new()
            .serialize(histogram, &mut bytes)
            .expect("a Vec takes every byte");
        Self(STANDARD.encode(bytes))
    }

    /// Decodes; an empty text is an empty histogram.
    pub fn decode(&self) -> Result<hdrhistogram::Histogram<u64>, HistogramError> {
        if self.0.is_empty() {
            return Ok(Self::recorder());
        }
        let bytes = STANDARD
            .decode(&self.0)
            .map_err(|e| HistogramError(e.to_string()))?;
        // The library takes as much memory as the head says that counts follow, up to 4 GiB, before it
        // looks for them; and it would inflate a compressed one.
        let counts = bytes.get(4..8).and_then(|b| b.try_into().ok());
        let counts = counts.map_or(0, u32::from_be_bytes) as usize;
        if bytes.len() < HEAD || counts != bytes.len() - HEAD {
            let why = format!(
                "expected {counts} bytes after a head of {HEAD}, got {} in all",
                bytes.len()
            );
            return Err(HistogramError(why));
        }
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError(e.to_string()))
    }

    /// The sum, slot by slot. Two empty texts (a time that the library hides) stay one.
    pub fn add(&self, other: &Self) -> Result<Self, HistogramError> {
        if self.0.is_empty() && other.0.is_empty() {
            return Ok(Self::default());
        }
        let mut sum = Self::recorder();
        for part in [self, other] {
            sum.add(part.decode()?)
                .map_err(|e| HistogramError(format!("its range is another: {e}")))?;
        }
        Ok(Self::encode(&sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_over_the_wire_changes_nothing() {
        let mut h = Histogram::recorder();
        for v in [64, 1_000, 22_000, 5_000_000, 60_000_000_000] {
            h.record(v).unwrap();
        }
        let back = Histogram::encode(&h).decode().unwrap();
        assert_eq!(back, h);
        assert!(Histogram("no".into()).decode().is_err());
        assert_eq!(Histogram::default().decode().unwrap().len(), 0);
    }

    #[test]
    fn a_head_that_promises_gigabytes_is_refused_before_they_are_taken() {
        let mut bytes = STANDARD
            .decode(Histogram::encode(&Histogram::recorder()).0)
            .unwrap();
        bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        let e = Histogram(STANDARD.encode(&bytes)).decode().unwrap_err();
        assert!(e.to_string().contains("4294967295 bytes after"), "{e}");
    }
}
