//! Tables as files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;

use anyhow::Context as _;
use polars::prelude::{CsvWriter, DataFrame, ParquetCompression, ParquetWriter, SerWriter as _};
use yieldpoint_record::{Manifest, Trial};

use crate::Tables;
use crate::bulk::{self, Bulk};

impl Tables {
    /// The tables that are whole in memory with their names, in order of these.
    pub(crate) fn named(&self) -> [(&'static str, &DataFrame); 8] {
        [
            ("breakpoints", &self.breakpoints),
            ("ceilings", &self.ceilings),
            ("confusion", &self.confusion),
            ("controls", &self.controls),
            ("effects", &self.effects),
            ("errors", &self.errors),
            ("phases", &self.phases),
            ("trials", &self.trials),
        ]
    }

    /// Writes every table of the run into `dir` as Parquet (zstd) and, but for the histograms, as CSV; manifest and
    /// trials are those that the tables were made of.
    /// Files that are there are replaced whole or not at all. Gives the files, in order of their names.
    pub fn write(
        &self,
        manifest: &Manifest,
        trials: &[Trial],
        dir: &Path,
    ) -> anyhow::Result<Vec<PathBuf>> {
        fs::create_dir_all(dir).with_context(|| format!("\"{}\"", dir.display()))?;
        let mut written = Vec::new();
        for (name, table) in self.named() {
            // Writers want the table for themselves (they join its chunks); a clone shares the data.
            written.push(aside(dir, &format!("{name}.csv"), |file| {
                Ok(CsvWriter::new(file).finish(&mut table.clone())?)
            })?);
            written.push(aside(dir, &format!("{name}.parquet"), |file| {
                ParquetWriter::new(file)
                    .with_compression(ParquetCompression::Zstd(None))
                    .finish(&mut table.clone())?;
                Ok(())
            })?);
        }
        // At the same time: while one makes its rows, another one packs them.
        let bulk: anyhow::Result<Vec<_>> = std::thread::scope(|scope| {
            let start =
                |table| scope.spawn(move || write_bulk(table, manifest, trials, bulk::PART, dir));
            let threads: Vec<_> = bulk::ALL.iter().map(start).collect();
            let end = |thread: ScopedJoinHandle<'_, anyhow::Result<_>>| match thread.join() {
                Ok(files) => files,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(end).collect()
        });
        written.extend(bulk?.into_iter().flatten());
        written.sort();
        Ok(written)
    }
}

/// Both files of one bulk table, side by side, so that its rows are made once.
pub(crate) fn write_bulk(
    table: &Bulk,
    manifest: &Manifest,
    trials: &[Trial],
    part: usize,
    dir: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let parquet = |csv: Option<&File>| {
        aside(dir, &format!("{}.parquet", table.name), |file| {
            table.write(manifest, trials, part, file, csv)
        })
    };
    if !table.csv {
        return Ok(vec![parquet(None)?]);
    }
    let mut beside = None;
    let csv = aside(dir, &format!("{}.csv", table.name), |file| {
        beside = Some(parquet(Some(file))?);
        Ok(())
    })?;
    Ok([Some(csv), beside].into_iter().flatten().collect())
}

/// Writes beside the file and renames, so that a reader never sees half a table.
fn aside(
    dir: &Path,
    name: &str,
    write: impl FnOnce(&File) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let path = dir.join(name);
    let beside = dir.join(format!(".{name}.{}", std::process::id()));
    let done = File::create(&beside)
        .map_err(anyhow::Error::from)
        .and_then(|file| write(&file))
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
