//! Writes the Vega-Lite 6 specification.

use serde_json::{Map, Value, json};

use super::{Chart, Kind, Values};

/// Returns the specification, with the values in it.
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
