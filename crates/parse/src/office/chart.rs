//! Charts of office documents: their titles and the numbers behind them, as a table.

use roxmltree::Node;

use super::{Package, xml};
use crate::builder::{Builder, Grid};
use crate::sheet::number_text;
use crate::{Error, Warning};

/// Points of a chart that are read.
const MOST_POINTS: usize = 1_000;

pub(super) fn write(root: Node<'_, '_>, builder: &mut Builder) {
    let Some(chart) = xml::child(root, "chart") else { return };
    let title = xml::child(chart, "title").map(spoken).unwrap_or_default();
    builder.paragraph(&title);
    let series: Vec<Node<'_, '_>> =
        chart.descendants().filter(|node| xml::is(*node, "ser")).collect();
    let Some(first) = series.first() else { return };
    let read = |one: &Node<'_, '_>, names: [&str; 2]| {
        names.iter().find_map(|name| xml::child(*one, name)).map(points).unwrap_or_default()
    };
    let labels = read(first, ["cat", "xVal"]);
    let values: Vec<Vec<String>> = series.iter().map(|one| read(one, ["val", "yVal"])).collect();
    let rows = values.iter().map(Vec::len).chain([labels.len()]).max().unwrap_or(0);
    let names =
        series.iter().map(|one| xml::child(*one, "tx").map(points).unwrap_or_default().join(" "));
    let mut grid: Grid = vec![[String::new()].into_iter().chain(names).collect()];
    for row in 0..rows.min(MOST_POINTS) {
        let cell = |column: &Vec<String>| column.get(row).cloned().unwrap_or_default();
        grid.push([cell(&labels)].into_iter().chain(values.iter().map(cell)).collect());
    }
    builder.table(&grid);
    if rows > MOST_POINTS {
        let parts = vec![format!("a chart with {rows} points")];
        builder.warnings.push(Warning::PartsCut { parts });
    }
}

pub(crate) fn sheet_extras(
    package: &mut Package<'_>,
    sheet: &str,
    builder: &mut Builder,
) -> Result<(), Error> {
    for drawing in package.related(sheet, "drawing")? {
        for chart in package.related(&drawing, "chart")? {
            package.part(&chart, |root| write(root, builder))?;
        }
    }
    // Threaded comments leave a copy among the plain ones.
    let threaded = package.related(sheet, "threadedComment")?;
    let kinds = if threaded.is_empty() { package.related(sheet, "comments")? } else { threaded };
    for part in kinds {
        package.part(&part, |root| {
            let words = root
                .descendants()
                .filter(|node| xml::is(*node, "threadedComment") || xml::is(*node, "comment"));
            for comment in words {
                builder.paragraph(&spoken(comment));
            }
        })?;
    }
    Ok(())
}

fn points(node: Node<'_, '_>) -> Vec<String> {
    let values = node.descendants().filter(|node| xml::is(*node, "v"));
    let shown = |text: &str| match text.parse::<f64>() {
        // Others stay as they are written.
        Ok(number) if text.len() > 15 && number.fract() != 0.0 => number_text(number),
        _ => text.to_owned(),
    };
    values.filter_map(|value| value.text()).map(|text| shown(text.trim())).collect()
}

fn spoken(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(|node| xml::is(*node, "t") || xml::is(*node, "text"));
    let words: Vec<&str> = texts.filter_map(|text| text.text()).collect();
    crate::builder::one_line(&words.join(" "))
}
