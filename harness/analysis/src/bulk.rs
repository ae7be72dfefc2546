//! The tables whose rows grow with the length of the trials: millions in a long run. They are made and written a few
//! trials at a time, and no figure reads them, so that none is ever whole in memory.

use std::fs::File;

use polars::prelude::{CsvWriter, DataFrame, ParquetCompression, ParquetWriter, SerWriter as _};
use yieldpoint_record::{Manifest, Trial};

use crate::{histograms, samples, timeline};

/// Trials whose rows are made at once: some MiB of them.
pub(crate) const PART: usize = 50;

/// A table that is written in parts.
pub(crate) struct Bulk {
    /// its name, which is also that of its files
    pub name: &'static str,
    /// whether it is written as CSV, too
    pub csv: bool,
    /// the rows of some trials
    pub rows: fn(&Manifest, &[Trial]) -> anyhow::Result<DataFrame>,
}

/// All of them, in order of their names.
pub(crate) const ALL: [Bulk; 3] = [
    Bulk {
        name: "histograms",
        // Millions of rows that nobody reads as text.
        csv: false,
        rows: |_, trials| histograms::table(trials),
    },
    Bulk {
        name: "samples",
        csv: true,
        rows: samples::table,
    },
    Bulk {
        name: "timeline",
        csv: true,
        rows: |_, trials| timeline::table(trials),
    },
];

impl Bulk {
    /// Writes the rows of all trials into both files, `part` trials at a time; without trials the columns alone.
    pub fn write(
        &self,
        manifest: &Manifest,
        trials: &[Trial],
        part: usize,
        parquet: &File,
        mut csv: Option<&File>,
    ) -> anyhow::Result<()> {
        let make = |trials: &[Trial]| {
            let mut rows = (self.rows)(manifest, trials)?;
            // The writers want the chunks of all columns to be the same.
            rows.align_chunks_par();
            Ok::<_, anyhow::Error>(rows)
        };
        let mut writer = ParquetWriter::new(parquet)
            .with_compression(ParquetCompression::Zstd(None))
            .batched(make(&[])?.schema())?;
        let mut parts = trials.chunks(part);
        let mut next = Some(parts.next().unwrap_or_default());
        let mut header = true;
        while let Some(trials) = next {
            let mut rows = make(trials)?;
            writer.write_batch(&rows)?;
            if let Some(file) = &mut csv {
                CsvWriter::new(file)
                    .include_header(header)
                    .finish(&mut rows)?;
            }
            header = false;
            next = parts.next();
        }
        writer.finish()?;
        Ok(())
    }
}
