//! What the operator wrote down: found before SQL is written, named where it was used, and shown in the trace.

use serde_json::json;

use crate::world::{BY_COUNTRY, Kept, Shop, clear, draft, intent, interpretation, review, script};

const KNOWN: &str = "\
metrics:
  - name: turnover
    synonyms: [revenue]
    about: what customers ordered
    sql: SUM(orders.total)
    tables: [orders]
verified_queries:
  - question: What did customers order per country?
    verified_by: Ada
    sql: |
      SELECT c.country, SUM(o.total) AS total FROM orders o JOIN customers c ON c.id = o.customer_id
      GROUP BY c.country ORDER BY total DESC
freshness:
  - table: orders
    column: ordered_at
  - table: customers
    note: loaded every night
";

async fn shop(sql: &str) -> Shop {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(sql))
        .rule(review(true))
        .rule(interpretation("Norway leads with 160.5.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    shop.know(KNOWN);
    shop
}

/// S4.03, S2.08: a verified query is found first and named in the answer, and the answer says how fresh its tables are.
#[tokio::test]
async fn a_verified_query_is_found_first_and_named_when_used() {
    let shop = shop(BY_COUNTRY).await;
    let report = shop.ask("What did customers order per country?").await;
    let asked = &shop.stage("generate")[0];
    assert!(asked.contains("[verified:1] What did customers order per country?"), "{asked:?}");
    let output = report["results"][0]["output"].as_str().unwrap();
    for part in [
        "By the verified query “What did customers order per country?”, verified by Ada; the metric turnover = SUM(orders.total)",
        "orders reaches to 2024-03-01 (ordered_at)",
        "customers: loaded every night",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

/// S4.03: the newest of the first rows is not the newest of a long table.
#[tokio::test]
async fn the_freshness_of_a_long_table_is_that_of_all_its_rows() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(review(true))
        .rule(interpretation("Norway leads.", json!(null)));
    for is_declared in [false, true] {
        let shop = Shop::open(Kept::Sqlite, script.clone(), &[]).await;
        shop.change(
            "INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n WHERE i < 10100) \
             SELECT i, 1, 0, iif(i < 10050, '2020-01-01', '2025-06-01') FROM n",
        )
        .await;
        if is_declared {
            shop.know(KNOWN);
        }
        let report = shop.ask("What did customers order per country?").await;
        let output = report["results"][0]["output"].as_str().unwrap();
        assert!(output.contains("orders reaches to 2025-06-01 (ordered_at)"), "{output}");
    }
}

/// S4.03: a metric that the question names comes with its definition; another statement is not called verified.
#[tokio::test]
async fn a_metric_is_given_by_its_definition_and_only_verified_queries_are_called_verified() {
    let shop = shop("SELECT COUNT(*) AS n FROM orders").await;
    let report = shop.ask("How did revenue develop?").await;
    let asked = &shop.stage("generate")[0];
    assert!(asked.contains("[metric:turnover] turnover = SUM(orders.total)"), "{asked:?}");
    assert!(!asked.contains("[verified:"), "{asked:?}");
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(!output.contains("\nBy "), "{output}");
}

/// S2.11, S4.03: a file that says something else is an error that names file and key.
#[tokio::test]
async fn a_file_that_cannot_be_used_is_an_error_that_names_it() {
    let shop = shop(BY_COUNTRY).await;
    shop.write("shop.yaml", "metrics: [\n");
    let refused = shop.perihelion(&["run", "What?"]).await;
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(printed.contains("knowledge") && printed.contains("shop.yaml"), "{printed}");
    shop.write("shop.yaml", "metricks: []\n");
    let report = shop.ask("What did customers order per country?").await;
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "ConfigurationError", "{report:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("shop.yaml") && message.contains("metricks"), "{message}");
    let doctor = shop.perihelion(&["doctor"]).await;
    let printed = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(printed.contains("correct the knowledge file shop.yaml"), "{printed}");
    assert_eq!(doctor.status.code(), Some(1), "{printed}");
}

/// S4.10: the trace shows the panels of an analyst's turn.
#[tokio::test]
async fn the_trace_shows_the_steps_to_the_answer() {
    let shop = shop(BY_COUNTRY).await;
    let report = shop.ask("What did customers order per country?").await;
    assert_eq!(report["status"], "done", "{report:#}");
    let drawn = shop.perihelion(&["trace", "t"]).await;
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    let panels = drawn.split_once("ANALYSIS of mcp_agent_shop").unwrap().1;
    for part in [
        "grounding pack",
        "[verified:1]",
        "[join:orders.customer_id] orders.customer_id = customers.id, many to one",
        "SELECT c.country",
        "passed, reads orders, customers",
        "It may run",
        "2 rows: country | total",
        "Norway | 160.5",
    ] {
        assert!(panels.contains(part), "{part} is not in:\n{panels}");
    }
    let reference = report["results"][0]["sources"][1]["reference"].as_str().unwrap();
    assert!(panels.contains(reference), "{reference} is not in:\n{panels}");
}
