//! Tables as files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use polars::prelude::{
    CsvWriter, DataFrame, ParquetCompression, ParquetWriter, PolarsResult, SerWriter as _,
};

use crate::Tables;

impl Tables {
    /// Every table with its name, in order of the names.
    pub(crate) fn named(&self) -> [(&'static str, &DataFrame); 11] {
        [
            ("breakpoints", &self.breakpoints),
            ("ceilings", &self.ceilings),
            ("confusion", &self.confusion),
            ("controls", &self.controls),
            ("effects", &self.effects),
            ("errors", &self.errors),
            ("histograms", &self.histograms),
            ("phases", &self.phases),
            ("samples", &self.samples),
            ("timeline", &self.timeline),
            ("trials", &self.trials),
        ]
    }

    /// Writes every table into `dir` as Parquet (zstd) and, but for the histograms, as CSV.
    /// Files that are there are replaced whole or not at all. Gives the files, in order of their names.
    pub fn write(&self, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
        fs::create_dir_all(dir).with_context(|| format!("\"{}\"", dir.display()))?;
        let mut written = Vec::new();
        for (name, table) in self.named() {
            // Millions of rows that nobody reads as text.
            let csv = name != "histograms";
            // Writers want the table for themselves (they join its chunks); a clone shares the data.
            if csv {
                written.push(aside(dir, &format!("{name}.csv"), |file| {
                    CsvWriter::new(file).finish(&mut table.clone())
                })?);
            }
            written.push(aside(dir, &format!("{name}.parquet"), |file| {
                ParquetWriter::new(file)
                    .with_compression(ParquetCompression::Zstd(None))
                    .finish(&mut table.clone())
                    .map(|_bytes| ())
            })?);
        }
        Ok(written)
    }
}

/// Writes beside the file and renames, so that a reader never sees half a table.
fn aside(
    dir: &Path,
    name: &str,
    write: impl FnOnce(File) -> PolarsResult<()>,
) -> anyhow::Result<PathBuf> {
    let path = dir.join(name);
    let beside = dir.join(format!(".{name}.{}", std::process::id()));
    let done = File::create(&beside)
        .map_err(anyhow::Error::from)
        .and_then(|file| Ok(write(file)?))
        .and_then(|()| Ok(fs::rename(&beside, &path)?));
    if done.is_err() {
        // The reason of the failure is worth more than a leftover that could not be removed either.
        let _ = fs::remove_file(&beside);
    }
    done.with_context(|| format!("\"{}\"", path.display()))?;
    Ok(path)
}

/// Reads a Parquet table back.
#[cfg(test)]
pub(crate) fn read_parquet(path: &Path) -> polars::prelude::DataFrame {
    use polars::prelude::{ParquetReader, SerReader as _};
    ParquetReader::new(File::open(path).unwrap())
        .finish()
        .unwrap()
}
