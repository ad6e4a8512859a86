//! The positions of a sheet's tables: groups of cells that touch each other.

use std::collections::HashMap;

use crate::builder::{Builder, Grid};
use crate::{Error, Limits};

/// A rectangle of cells, bounds included.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Region {
    top: u32,
    left: u32,
    bottom: u32,
    right: u32,
}

impl Region {
    fn at((y, x): (u32, u32)) -> Self {
        Self { top: y, left: x, bottom: y, right: x }
    }

    fn with(self, other: &Self) -> Self {
        Self {
            top: self.top.min(other.top),
            left: self.left.min(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
        }
    }
}

/// The cells of a sheet with content; merged ones have it in every covered position.
#[derive(Default)]
pub(crate) struct Sheet {
    cells: HashMap<(u32, u32), String>,
}

/// Most cells of a sheet; more are no reading matter.
const MOST_CELLS: usize = 4_000_000;

/// Most places that one merged cell fills.
const MOST_MERGED: u64 = 10_000;

/// A table has this many places at least for each of its cells; one with more is written row by row.
const SPARSEST: u64 = 20;

/// A table of up to this many places is written as one, however few of them say something.
const SMALL: u64 = 2_000;

impl Sheet {
    pub fn put(&mut self, y: u32, x: u32, text: String) {
        // One more is kept, which tells that there are too many.
        if !text.is_empty() && !self.is_full() {
            self.cells.insert((y, x), text);
        }
    }

    pub fn is_full(&self) -> bool {
        self.cells.len() > MOST_CELLS
    }

    /// Repeats the first content in every position between two.
    pub fn merge(&mut self, start: (u32, u32), end: (u32, u32)) {
        let Some(text) = self.cells.get(&start).cloned() else { return };
        let length = |from: u32, to: u32| u64::from(to.saturating_sub(from)) + 1;
        if length(start.0, end.0).saturating_mul(length(start.1, end.1)) > MOST_MERGED {
            return;
        }
        for y in start.0..=end.0 {
            for x in start.1..=end.1 {
                self.put(y, x, text.clone());
            }
        }
    }

    /// Writes the tables of a sheet of this name, and returns how many they are.
    pub fn write(
        &self,
        name: &str,
        builder: &mut Builder,
        limits: &Limits,
    ) -> Result<usize, Error> {
        if self.is_full() {
            return Err(Error::broken(builder.format(), format!("the sheet is too large: {name}")));
        }
        let regions = self.regions();
        for region in &regions {
            self.write_region(region, builder);
            limits.check_text(builder.len())?;
        }
        Ok(regions.len())
    }

    pub fn write_whole(&self, builder: &mut Builder) {
        let cells = self.cells.keys().map(|place| Region::at(*place));
        if let Some(region) = cells.reduce(|all, cell| all.with(&cell)) {
            self.write_region(&region, builder);
        }
    }

    fn write_region(&self, region: &Region, builder: &mut Builder) {
        let places =
            u64::from(region.bottom - region.top + 1) * u64::from(region.right - region.left + 1);
        let filled = self.cells.len() as u64;
        let is_sparse = places > SMALL && places / SPARSEST > filled;
        if is_sparse || places > MOST_CELLS as u64 {
            return self.write_rows(region, builder);
        }
        let cell = |y, x| self.cells.get(&(y, x)).cloned().unwrap_or_default();
        let rows = (region.top..=region.bottom)
            .map(|y| (region.left..=region.right).map(|x| cell(y, x)).collect::<Vec<_>>());
        let grid: Grid = rows.collect();
        match grid.as_slice() {
            [row] if row.len() == 1 => builder.paragraph(&row[0]),
            _ => builder.table(&grid),
        }
    }

    /// Writes the cells of a region whose places are empty for the most part.
    fn write_rows(&self, region: &Region, builder: &mut Builder) {
        let rows = region.top..=region.bottom;
        let columns = region.left..=region.right;
        let inside = |(y, x): &&(u32, u32)| rows.contains(y) && columns.contains(x);
        let mut places: Vec<&(u32, u32)> = self.cells.keys().filter(inside).collect();
        places.sort_unstable();
        for row in places.chunk_by(|a, b| a.0 == b.0) {
            let words = row.iter().filter_map(|place| self.cells.get(*place).map(String::as_str));
            builder.paragraph(&words.collect::<Vec<_>>().join(" | "));
        }
    }

    /// Returns the tables from top to bottom, and from left to right.
    fn regions(&self) -> Vec<Region> {
        let mut places: Vec<(u32, u32)> = self.cells.keys().copied().collect();
        places.sort_unstable();
        let mut owner: HashMap<(u32, u32), usize> = HashMap::with_capacity(places.len());
        let mut regions: Vec<Region> = Vec::new();
        for start in places {
            if owner.contains_key(&start) {
                continue;
            }
            let index = regions.len();
            let mut region = Region::at(start);
            let mut open = vec![start];
            owner.insert(start, index);
            while let Some((y, x)) = open.pop() {
                region = region.with(&Region::at((y, x)));
                let neighbors =
                    [(y.wrapping_sub(1), x), (y + 1, x), (y, x.wrapping_sub(1)), (y, x + 1)];
                for next in neighbors {
                    if self.cells.contains_key(&next) && !owner.contains_key(&next) {
                        owner.insert(next, index);
                        open.push(next);
                    }
                }
            }
            regions.push(region);
        }
        joined(regions)
    }
}

/// Joins regions whose rectangles overlap, so that a table with empty cells stays one.
fn joined(mut regions: Vec<Region>) -> Vec<Region> {
    /// Beyond this many, looking at every pair takes too long; such a sheet is one table.
    const MOST: usize = 2_000;
    if regions.len() > MOST {
        return regions.into_iter().reduce(|all, one| all.with(&one)).into_iter().collect();
    }
    let overlap = |a: &Region, b: &Region| {
        a.top <= b.bottom && b.top <= a.bottom && a.left <= b.right && b.left <= a.right
    };
    let mut index = 0;
    while index < regions.len() {
        let other =
            (index + 1..regions.len()).find(|&other| overlap(&regions[index], &regions[other]));
        match other {
            Some(other) => {
                let taken = regions.remove(other);
                regions[index] = regions[index].clone().with(&taken);
                index = 0;
            }
            None => index += 1,
        }
    }
    regions.sort_by_key(|region| (region.top, region.left));
    regions
}
