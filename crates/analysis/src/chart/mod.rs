//! Charts of a result: a small closed type, from which a Vega-Lite specification and a picture are written.
//!
//! Enter at [`draw`]. Invariant: both show the same values side by side, all taken from the rows given (a pie adds its
//! smallest up); a specification has no expression and no address. Deliberately absent: anything a model could write into a
//! specification.

mod data;
mod svg;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use data::Values;

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
    #[error("a chart shows at most {most} series; choose or group them: {found}")]
    TooManySeries { found: usize, most: usize },
    #[error(
        "the result has several values for one x; name the column of the series, or aggregate: {0}"
    )]
    Repeated(String),
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
    if let Some(color) = color.filter(|_| chart.kind != Kind::Pie) {
        // Series are shown beside each other: stacked, the same numbers would be read as parts of a sum.
        if chart.kind == Kind::Bar {
            encoding["xOffset"] = json!({ "field": color["field"], "sort": null });
        }
        encoding["y"]["stack"] = Value::Null;
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

    fn drawn(kind: Kind, series: Option<&str>, rows: Vec<[Value; 3]>) -> Result<Drawn, Error> {
        let columns = ["month", "sales", "shop"].map(str::to_owned);
        let rows: Vec<Vec<Value>> = rows.into_iter().map(Vec::from).collect();
        draw(&Chart { series: series.map(str::to_owned), ..chart(kind) }, &columns, &rows)
    }

    #[test]
    fn numbers_and_dates_are_in_order_along_a_line_whatever_the_rows_order() {
        let gap = |x: fn(i64) -> Value| -> Vec<[Value; 3]> {
            let places = [(1, "a"), (3, "a"), (1, "b"), (2, "b"), (3, "b")];
            places.map(|(at, shop)| [x(at), json!(at), json!(shop)]).into()
        };
        let places: [fn(i64) -> Value; 2] = [|at| json!(format!("2024-0{at}")), |at| json!(at)];
        for x in places {
            for kind in [Kind::Line, Kind::Area] {
                let drawn = drawn(kind, Some("shop"), gap(x)).unwrap();
                let values = drawn.vega_lite["data"]["values"].as_array().unwrap();
                let months: Vec<&Value> = values.iter().map(|value| &value["sales"]).collect();
                assert_eq!(months, [1.0, 1.0, 2.0, 3.0, 3.0], "{kind:?}");
                for line in drawn.svg.split("<polyline points=\"").skip(1) {
                    let places = line.split('"').next().unwrap().split(' ');
                    let xs: Vec<f64> = places
                        .map(|place| place.split_once(',').unwrap().0.parse().unwrap())
                        .collect();
                    assert!(xs.is_sorted(), "{kind:?}: {xs:?}");
                }
            }
        }
        // Names of months and unpadded numbers do not sort as texts.
        for x in [["2024-Jan", "2024-Feb", "2024-Mar"], ["2024-8", "2024-9", "2024-10"]] {
            let rows = x.map(|at| [json!(at), json!(1), json!("a")]).into();
            let drawn = drawn(Kind::Line, None, rows).unwrap().vega_lite;
            let values = drawn["data"]["values"].as_array().unwrap();
            assert_eq!(values.iter().map(|one| &one["month"]).collect::<Vec<_>>(), x);
        }
        let rows = ["2024-W10", "2024-W09"].map(|at| [json!(at), json!(1), json!("a")]).into();
        let weeks = drawn(Kind::Line, None, rows).unwrap().vega_lite;
        assert_eq!(weeks["data"]["values"][0]["month"], "2024-W09");
        // The order of a ranking is that of its rows.
        let ranking = vec![
            [json!("2024-02"), json!(9), json!("a")],
            [json!("2024-01"), json!(1), json!("a")],
        ];
        let bars = drawn(Kind::Bar, None, ranking).unwrap();
        assert_eq!(bars.vega_lite["data"]["values"][0]["month"], "2024-02");
    }

    #[test]
    fn values_that_would_hide_each_other_are_refused_and_series_stand_side_by_side() {
        let twice = vec![
            [json!("2024-01"), json!(1), json!("a")],
            [json!("2024-01"), json!(2), json!("b")],
        ];
        for kind in [Kind::Bar, Kind::Line, Kind::Area, Kind::Pie] {
            assert_eq!(drawn(kind, None, twice.clone()), Err(Error::Repeated("2024-01".into())));
        }
        assert!(drawn(Kind::Scatter, None, twice.clone()).is_ok());
        let bars = drawn(Kind::Bar, Some("shop"), twice.clone()).unwrap().vega_lite;
        assert_eq!(bars["encoding"]["xOffset"]["field"], "shop");
        let areas = drawn(Kind::Area, Some("shop"), twice).unwrap().vega_lite;
        assert!(
            areas["encoding"]["y"]["stack"].is_null()
                && areas["encoding"]["y"].get("stack").is_some()
        );
        let many = |x: fn(u8) -> Value| -> Vec<[Value; 3]> {
            (0..9).map(|at| [x(at), json!(at + 1), json!(at.to_string())]).collect()
        };
        let error = Error::TooManySeries { found: 9, most: 8 };
        assert_eq!(drawn(Kind::Line, Some("shop"), many(|_| json!("x"))), Err(error));
        let pie = drawn(Kind::Pie, None, many(|at| json!(format!("s{at}")))).unwrap();
        let slices = pie.vega_lite["data"]["values"].as_array().unwrap();
        assert_eq!(slices.len(), 8);
        assert_eq!(slices[7], json!({ "month": "(other)", "sales": 3.0 }));
    }

    #[test]
    fn small_values_have_their_digits_on_the_axis_and_beside_a_slice() {
        let small = |high: f64| {
            vec![[json!("x"), json!(high), json!("")], [json!("y"), json!(high / 4.0), json!("")]]
        };
        for (high, labels) in [
            (0.004, vec!["0", "0.001", "0.002", "0.003", "0.004"]),
            (0.01, vec!["0", "0.002", "0.004", "0.006", "0.008", "0.01"]),
            (0.0125, vec!["0", "0.0025", "0.005", "0.0075", "0.01", "0.0125"]),
            (12_500.0, vec!["0", "2500", "5000", "7500", "10k", "12.5k"]),
        ] {
            let svg = drawn(Kind::Bar, None, small(high)).unwrap().svg;
            let axis = svg.split("text-anchor=\"end\">").skip(1);
            let found: Vec<&str> = axis.map(|rest| rest.split('<').next().unwrap()).collect();
            assert_eq!(found, labels, "{high}");
        }
        let pie = drawn(Kind::Pie, None, small(0.0012)).unwrap().svg;
        assert!(
            pie.contains("x — 0.0012 (80.0 %)") && pie.contains("y — 0.0003 (20.0 %)"),
            "{pie}"
        );
    }
}
