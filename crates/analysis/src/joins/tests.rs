//! The ways between tables, with each key as a way of its own.

use super::*;
use crate::ForeignKey;
use crate::sample::{catalogue, name};

#[test]
fn two_keys_from_one_table_to_another_are_two_join_paths() {
    let catalogue = catalogue();
    let graph = JoinGraph::new(&catalogue);
    let paths = graph.paths(&[name("flights"), name("airports")]).paths;
    let conditions: Vec<&str> = paths.iter().map(|path| path.joins[0].condition.as_str()).collect();
    assert_eq!(
        conditions,
        ["flights.origin = airports.code", "flights.destination = airports.code"]
    );
    assert!(paths.iter().all(|path| path.joins.len() == 1 && !path.joins[0].inferred));
}

#[test]
fn a_third_table_hides_no_key_and_a_table_joined_to_itself_has_an_alias() {
    let key = |column: &str, to: &str, of: &str| ForeignKey {
        columns: vec![column.into()],
        table: name(to),
        to: vec![of.into()],
    };
    let mut catalogue = catalogue();
    for table in &mut catalogue.tables {
        match table.name.name.as_str() {
            "airports" => table.foreign_keys.push(key("city", "customers", "id")),
            "orders" => table.foreign_keys.push(key("total", "orders", "id")),
            _ => {}
        }
    }
    let graph = JoinGraph::new(&catalogue);
    let conditions = |tables: &[&str]| -> Vec<Vec<String>> {
        let tables: Vec<TableName> = tables.iter().map(|table| name(table)).collect();
        let paths = graph.paths(&tables).paths.into_iter();
        paths.map(|path| path.joins.into_iter().map(|join| join.condition).collect()).collect()
    };
    let city = "airports.city = customers.id";
    assert_eq!(
        conditions(&["flights", "airports", "customers"]),
        [["flights.origin = airports.code", city], ["flights.destination = airports.code", city]]
    );
    assert_eq!(conditions(&["orders", "orders"])[0], ["orders.total = orders_2.id"]);
    assert_eq!(
        conditions(&["orders", "customers", "orders"]),
        [["orders.customer_id = customers.id", "orders.total = orders_2.id"]]
    );
    let three = &graph.paths(&[name("orders"), name("customers"), name("orders")]).paths[0];
    assert_eq!(three.tables, ["orders", "customers", "orders AS orders_2"]);
    let itself = &graph.paths(&[name("orders"), name("orders")]).paths[0];
    assert_eq!(itself.tables, ["orders", "orders AS orders_2"]);
    assert!(graph.joins().iter().any(|join| join.condition == "orders.total = orders_2.id"));
}

#[test]
fn tables_between_those_asked_for_are_named_and_inferred_keys_are_marked() {
    let catalogue = catalogue();
    let graph = JoinGraph::new(&catalogue);
    let way = &graph.paths(&[name("customers"), name("products")]).paths[0];
    assert_eq!(way.tables, ["customers", "orders", "lines", "products"]);
    assert_eq!(type_class("point_label (text)"), type_class("varchar (20)"));
    assert_eq!(type_class("text_length (number)"), type_class("int4"));
    let inferred: Vec<bool> = way.joins.iter().map(|join| join.inferred).collect();
    assert_eq!(inferred, [false, false, true]);
    let none = graph.paths(&[name("customers"), name("notes")]);
    assert_eq!((none.paths.len(), none.unreachable), (0, vec!["notes".to_owned()]));
}
