//! Charts of a result: a small closed type, from which a Vega-Lite specification and a picture are written.
//!
//! Enter at [`draw`]. Invariant: both show the same values, all taken from the rows given; a specification holds
//! no expression and no address. Deliberately absent: anything a model could write into a specification.

mod data;
mod png;
mod svg;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use data::Values;
pub use png::{Error as PaintError, png};

/// The kinds of charts that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Bar,
    Line,
    Area,
    Scatter,
    Pie,
}

/// What to draw, by names of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    pub kind: Kind,
    /// The column along the bottom; the slices of a pie.
    #[schemars(length(max = 100))]
    pub x: String,
    /// The column of numbers.
    #[schemars(length(max = 100))]
    pub y: String,
    /// A column that tells several lines or bars apart.
    #[schemars(length(max = 100))]
    pub series: Option<String>,
    #[schemars(length(max = 200))]
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    pub vega_lite: Value,
    pub svg: String,
}

/// Why a chart cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the chart names a column that the result does not have: {0}")]
    NoColumn(String),
    #[error("the y column of the chart has values that are not numbers: {0}")]
    NotNumbers(String),
    #[error("the result has no values to draw")]
    Empty,
    #[error("a pie chart cannot show a negative value: {0}")]
    Negative(String),
    #[error("a chart shows at most {most} values; aggregate more coarsely: {found}")]
    TooMany { found: usize, most: usize },
}

/// Draws a chart of a result's rows.
///
/// # Errors
/// [`Error`] that names the column or bound at fault.
pub fn draw(chart: &Chart, columns: &[String], rows: &[Vec<Value>]) -> Result<Drawn, Error> {
    let values = Values::read(chart, columns, rows)?;
    Ok(Drawn { vega_lite: specification(chart, &values), svg: svg::picture(chart, &values) })
}

pub fn specification(chart: &Chart, values: &Values) -> Value {
    let rows: Vec<Value> = values
        .points
        .iter()
        .map(|point| {
            let mut row = Map::new();
            let x = point.x_number.filter(|_| values.numeric_x);
            row.insert(chart.x.clone(), x.map_or_else(|| json!(point.x), |x| json!(x)));
            row.insert(chart.y.clone(), json!(point.y));
            if let Some(series) = &chart.series {
                row.insert(series.clone(), json!(point.series));
            }
            Value::Object(row)
        })
        .collect();
    // A field's name with a dot would be read as a path.
    let field = |name: &str| name.replace('\\', "\\\\").replace('.', "\\.").replace('[', "\\[");
    let x_type =
        if values.numeric_x && chart.kind != Kind::Bar { "quantitative" } else { "ordinal" };
    let y = json!({ "field": field(&chart.y), "type": "quantitative", "title": chart.y });
    let color = chart
        .series
        .as_ref()
        .map(|series| json!({ "field": field(series), "type": "nominal", "title": series }));
    let mut encoding = match chart.kind {
        Kind::Pie => json!({
            "theta": y,
            "color": { "field": field(&chart.x), "type": "nominal", "title": chart.x },
        }),
        _ => json!({
            "x": { "field": field(&chart.x), "type": x_type, "title": chart.x, "sort": null },
            "y": y,
        }),
    };
    if let (Some(color), Kind::Bar | Kind::Line | Kind::Area | Kind::Scatter) = (color, chart.kind)
    {
        encoding["color"] = color;
    }
    let mark = match chart.kind {
        Kind::Bar => "bar",
        Kind::Line => "line",
        Kind::Area => "area",
        Kind::Scatter => "point",
        Kind::Pie => "arc",
    };
    json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": chart.title,
        "data": { "values": rows },
        "mark": mark,
        "encoding": encoding,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chart(kind: Kind) -> Chart {
        Chart {
            kind,
            x: "month".into(),
            y: "sales".into(),
            series: None,
            title: "Sales <by> month".into(),
        }
    }

    fn rows() -> (Vec<String>, Vec<Vec<Value>>) {
        let columns = vec!["month".to_owned(), "sales".to_owned(), "shop".to_owned()];
        let rows = vec![
            vec![json!("2024-01"), json!(10), json!("a")],
            vec![json!("2024-02"), json!(12.5), json!("a")],
            vec![json!("2024-03"), json!("7"), json!("b")],
        ];
        (columns, rows)
    }

    /// S4.08
    #[test]
    fn every_kind_shows_the_rows_values_in_both_forms_and_escapes_its_words() {
        let (columns, rows) = rows();
        for kind in [Kind::Bar, Kind::Line, Kind::Area, Kind::Pie] {
            let drawn = draw(&chart(kind), &columns, &rows).unwrap();
            assert_eq!(drawn.vega_lite["data"]["values"].as_array().unwrap().len(), 3, "{kind:?}");
            assert!(drawn.svg.starts_with("<svg ") && drawn.svg.ends_with("</svg>\n"), "{kind:?}");
            assert!(drawn.svg.contains("Sales &lt;by&gt; month"), "{kind:?}");
            assert!(drawn.svg.contains("2024-02"), "{kind:?}");
            let painted = png(&drawn.svg).unwrap();
            assert!(painted.starts_with(b"\x89PNG") && painted.len() > 5_000, "{kind:?}");
            assert!(!drawn.svg.contains("href") && !drawn.svg.contains("script"), "{kind:?}");
        }
    }

    #[test]
    fn series_are_distinguished_and_a_wrong_column_is_named() {
        let (columns, rows) = rows();
        let by_shop = Chart { series: Some("shop".into()), ..chart(Kind::Line) };
        let drawn = draw(&by_shop, &columns, &rows).unwrap();
        assert_eq!(drawn.vega_lite["encoding"]["color"]["field"], "shop");
        assert!(drawn.svg.contains(">a</text>") && drawn.svg.contains(">b</text>"));
        let wrong = Chart { y: "shop".into(), ..chart(Kind::Bar) };
        assert_eq!(draw(&wrong, &columns, &rows), Err(Error::NotNumbers("shop".into())));
        let absent = Chart { x: "week".into(), ..chart(Kind::Bar) };
        assert_eq!(draw(&absent, &columns, &rows), Err(Error::NoColumn("week".into())));
        assert_eq!(draw(&chart(Kind::Bar), &columns, &[]), Err(Error::Empty));
    }
}
