//! The values of a chart, taken from a result's rows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Chart, Error, Kind};
use crate::numbers::number_of;

/// Most points, bars or slices.
const MOST: usize = 500;
/// Most series, and slices of a pie: there are as many colors that people can distinguish.
pub const MOST_COLORS: usize = 8;
/// The slice of the smallest values, if a pie has too many.
const OTHERS: &str = "(other)";
/// The label of a value without one.
const NONE: &str = "(none)";

/// The values of a chart: one row per x and series.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub points: Vec<Point>,
    /// Different values of x: by number or date along a line, otherwise in the order of the rows.
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
        if points.len() > MOST {
            return Err(Error::TooMany { found: points.len(), most: MOST });
        }
        if let Some(point) = points.iter().find(|point| point.y < 0.0)
            && chart.kind == Kind::Pie
        {
            return Err(Error::Negative(point.y.to_string()));
        }
        let mut seen = HashSet::new();
        let place = |point: &Point| {
            let series = (chart.kind != Kind::Pie).then(|| point.series.clone());
            (point.x.clone(), series)
        };
        let repeated = points.iter().find(|point| !seen.insert(place(point)));
        if let Some(point) = repeated.filter(|_| chart.kind != Kind::Scatter) {
            return Err(Error::Repeated(point.x.clone()));
        }
        if chart.kind == Kind::Pie {
            points = with_others(points);
        }
        let series = different(points.iter().map(|point| &point.series));
        if series.len() > MOST_COLORS && chart.kind != Kind::Pie {
            return Err(Error::TooManySeries { found: series.len(), most: MOST_COLORS });
        }
        let numeric_x = points.iter().all(|point| point.x_number.is_some());
        let mut labels = different(points.iter().map(|point| &point.x));
        let is_line = matches!(chart.kind, Kind::Line | Kind::Area);
        if is_line || (chart.kind == Kind::Bar && series.len() > 1) {
            in_order(&mut labels, &points);
            let place = |point: &Point| labels.iter().position(|label| *label == point.x);
            points.sort_by_key(place);
        }
        Ok(Self { points, labels, series, numeric_x })
    }

    /// Returns the smallest and largest y, including zero.
    pub fn range(&self) -> (f64, f64) {
        let ys = self.points.iter().map(|point| point.y);
        let (low, high) = ys.fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
        if low == high { (low, high + 1.0) } else { (low, high) }
    }
}

/// Returns each text once, in order.
fn different<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(*text)).cloned().collect()
}

/// Puts labels in order if all are numbers or dates; other ones stay.
fn in_order(labels: &mut [String], points: &[Point]) {
    let numbers: HashMap<&str, f64> =
        points.iter().filter_map(|point| Some((point.x.as_str(), point.x_number?))).collect();
    if labels.iter().all(|label| numbers.contains_key(label.as_str())) {
        labels.sort_by(|one, other| numbers[one.as_str()].total_cmp(&numbers[other.as_str()]));
    } else if labels.iter().all(|label| is_date(label)) {
        labels.sort();
    }
}

/// Returns whether a text is a year, quarter, month, week or day in a form that sorts as text; `2024-Jan` does not.
fn is_date(text: &str) -> bool {
    let digits =
        |text: &str, most| text.len() == most && text.bytes().all(|byte| byte.is_ascii_digit());
    let after = |text: &str, letter, most| {
        text.strip_prefix(letter).is_some_and(|number| digits(number, most))
    };
    let is_part = |part: &str| digits(part, 2) || after(part, 'Q', 1) || after(part, 'W', 2);
    let mut parts = text.splitn(3, '-');
    parts.next().is_some_and(|year| digits(year, 4))
        && parts.next().is_none_or(is_part)
        && parts.next().is_none_or(|day| day.get(..2).is_some_and(|day| digits(day, 2)))
}

/// Makes one slice of the smallest, if there are too many.
fn with_others(mut points: Vec<Point>) -> Vec<Point> {
    if points.len() <= MOST_COLORS {
        return points;
    }
    let mut sizes: Vec<f64> = points.iter().map(|point| point.y).collect();
    sizes.sort_by(|one, other| other.total_cmp(one));
    let least = sizes[MOST_COLORS - 2];
    let mut kept = 0;
    let others = points.extract_if(.., |point| {
        let is_kept = point.y >= least && kept < MOST_COLORS - 1;
        kept += usize::from(is_kept);
        !is_kept
    });
    let y: f64 = others.map(|point| point.y).sum();
    points.push(Point { x: OTHERS.into(), x_number: None, y, series: String::new() });
    points
}

fn label(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.chars().take(60).collect(),
        Value::Null => NONE.to_owned(),
        other => other.to_string(),
    }
}
