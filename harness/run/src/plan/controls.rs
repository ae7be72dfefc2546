//! Which cells have an A/A twin: the same cell once more in every round, as if it were another.

/// One twin for so many cells.
const CELLS: usize = 8;
/// More would cost time and hardly sharpen the noise floor.
const MOST: usize = 8;

/// One cell for every 8 (at least 1, at most 8), each the middle of an equal stretch of the file's order, so
/// that slow and fast cells are both among them.
pub(super) fn controls(can_run: &[usize]) -> Vec<usize> {
    let cells = can_run.len();
    let twins = cells.div_ceil(CELLS).min(MOST);
    (0..twins)
        .map(|i| can_run[(2 * i + 1) * cells / (2 * twins)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_spread_over_the_cells() {
        // cells, those with a twin
        let table: [(usize, &[usize]); 7] = [
            (0, &[]), // nothing to run
            (1, &[0]),
            (2, &[1]),
            (8, &[4]),
            (9, &[2, 6]),
            (24, &[4, 12, 20]),
            (800, &[50, 150, 250, 350, 450, 550, 650, 750]), // no more than 8
        ];
        for (cells, want) in table {
            let all: Vec<usize> = (0..cells).collect();
            assert_eq!(controls(&all), want, "{cells}");
        }
        // Cells that no client can do have none.
        assert_eq!(controls(&[3, 5, 9]), [5]);
    }
}
