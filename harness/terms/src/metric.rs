//! Metrics: what is sampled or counted, declared once with name, unit, source and meaning.

/// One metric. Schema, documentation and axis labels come from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Column name, with its unit as suffix where it has one ("client_rss_kib").
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Level or running total.
    pub behaviour: Behaviour,
    /// Where it is read.
    pub source: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// How the values of a metric behave over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// A level: it may rise and fall.
    Gauge,
    /// A running total: it never falls; its slope is a rate.
    Counter,
}

/// Units of metrics and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// a number of things
    Count,
    /// nanoseconds
    Nanos,
    /// 1,024 bytes
    Kib,
    /// bytes
    Bytes,
    /// events per second
    PerSecond,
    /// microseconds
    Micros,
    /// parts per thousand
    PerMille,
}

impl Unit {
    /// As written beside a number or an axis.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Nanos => "ns",
            Self::Kib => "KiB",
            Self::Bytes => "B",
            Self::PerSecond => "/s",
            Self::Micros => "µs",
            Self::PerMille => "‰",
        }
    }
}
