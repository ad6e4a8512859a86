//! Where the tables of a sheet are: groups of cells that touch each other.

use std::collections::HashMap;

use calamine::{Data, Dimensions, Range};

/// A rectangle of cells, bounds included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub top: u32,
    pub left: u32,
    pub bottom: u32,
    pub right: u32,
}

/// The cells of a sheet that say something; merged ones say it in every place they cover.
pub(super) struct Sheet {
    cells: HashMap<(u32, u32), String>,
}

/// Most places that one merged cell fills.
const MOST_MERGED: u64 = 10_000;

impl Sheet {
    pub fn new(range: &Range<Data>, merged: &[Dimensions]) -> Self {
        let (top, left) = range.start().unwrap_or((0, 0));
        let mut cells = HashMap::new();
        for (y, x, value) in range.used_cells() {
            let text = super::shown(value);
            if !text.is_empty() {
                cells.insert((top + place(y), left + place(x)), text);
            }
        }
        for merge in merged {
            let Some(text) = cells.get(&merge.start).cloned() else { continue };
            if merge.len() > MOST_MERGED {
                continue;
            }
            for y in merge.start.0..=merge.end.0 {
                for x in merge.start.1..=merge.end.1 {
                    cells.insert((y, x), text.clone());
                }
            }
        }
        Self { cells }
    }

    pub fn cell(&self, y: u32, x: u32) -> &str {
        self.cells.get(&(y, x)).map_or("", String::as_str)
    }

    /// Returns the tables from top to bottom, and from left to right.
    pub fn regions(&self) -> Vec<Region> {
        let mut places: Vec<(u32, u32)> = self.cells.keys().copied().collect();
        places.sort_unstable();
        let mut owner: HashMap<(u32, u32), usize> = HashMap::with_capacity(places.len());
        let mut regions: Vec<Region> = Vec::new();
        for start in places {
            if owner.contains_key(&start) {
                continue;
            }
            let index = regions.len();
            let mut region =
                Region { top: start.0, left: start.1, bottom: start.0, right: start.1 };
            let mut open = vec![start];
            owner.insert(start, index);
            while let Some((y, x)) = open.pop() {
                region.top = region.top.min(y);
                region.left = region.left.min(x);
                region.bottom = region.bottom.max(y);
                region.right = region.right.max(x);
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
        let bounds = |read: fn(&Region) -> u32| regions.iter().map(read);
        let all = Region {
            top: bounds(|one| one.top).min().unwrap_or(0),
            left: bounds(|one| one.left).min().unwrap_or(0),
            bottom: bounds(|one| one.bottom).max().unwrap_or(0),
            right: bounds(|one| one.right).max().unwrap_or(0),
        };
        return vec![all];
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
                let own = &mut regions[index];
                own.top = own.top.min(taken.top);
                own.left = own.left.min(taken.left);
                own.bottom = own.bottom.max(taken.bottom);
                own.right = own.right.max(taken.right);
                index = 0;
            }
            None => index += 1,
        }
    }
    regions.sort_by_key(|region| (region.top, region.left));
    regions
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
