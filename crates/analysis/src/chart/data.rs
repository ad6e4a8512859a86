//! The values of a chart, taken from a result's rows.

use serde_json::Value;

use super::{Chart, Error, Kind};
use crate::numbers::number_of;

/// Most points, bars or slices.
const MOST: usize = 500;
const MOST_SLICES: usize = 24;

/// The values of a chart: one row per x and series.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub points: Vec<Point>,
    /// Different values of x, in the order of the rows.
    pub labels: Vec<String>,
    /// Different series, in the order of the rows; one unnamed if there are none.
    pub series: Vec<String>,
    /// The x values, where all are numbers.
    pub numeric_x: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub x: String,
    pub x_number: Option<f64>,
    pub y: f64,
    pub series: String,
}

impl Values {
    /// Reads the columns that a chart names; rows without a number are left out.
    pub fn read(chart: &Chart, columns: &[String], rows: &[Vec<Value>]) -> Result<Self, Error> {
        let find = |name: &str| {
            columns
                .iter()
                .position(|column| column == name)
                .or_else(|| columns.iter().position(|column| column.eq_ignore_ascii_case(name)))
                .ok_or_else(|| Error::NoColumn(name.to_owned()))
        };
        let x = find(&chart.x)?;
        let y = find(&chart.y)?;
        let series = chart.series.as_deref().map(find).transpose()?;
        let mut points = Vec::new();
        for row in rows {
            let cell = |at: usize| row.get(at).unwrap_or(&Value::Null);
            if cell(y).is_null() {
                continue;
            }
            let Some(number) = number_of(cell(y)) else {
                return Err(Error::NotNumbers(chart.y.clone()));
            };
            points.push(Point {
                x: label(cell(x)),
                x_number: cell(x).as_f64(),
                y: number,
                series: series.map_or_else(String::new, |at| label(cell(at))),
            });
        }
        if points.is_empty() {
            return Err(Error::Empty);
        }
        let most = if chart.kind == Kind::Pie { MOST_SLICES } else { MOST };
        if points.len() > most {
            return Err(Error::TooMany { found: points.len(), most });
        }
        if let Some(point) = points.iter().find(|point| point.y < 0.0)
            && chart.kind == Kind::Pie
        {
            return Err(Error::Negative(point.y.to_string()));
        }
        let mut labels: Vec<String> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for point in &points {
            if !labels.contains(&point.x) {
                labels.push(point.x.clone());
            }
            if !names.contains(&point.series) {
                names.push(point.series.clone());
            }
        }
        let numeric_x = points.iter().all(|point| point.x_number.is_some());
        Ok(Self { points, labels, series: names, numeric_x })
    }

    /// Returns the smallest and largest y, including zero.
    pub fn range(&self) -> (f64, f64) {
        let ys = self.points.iter().map(|point| point.y);
        let (low, high) = ys.fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
        if low == high { (low, high + 1.0) } else { (low, high) }
    }
}

fn label(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.chars().take(60).collect(),
        Value::Null => "(none)".to_owned(),
        other => other.to_string(),
    }
}
