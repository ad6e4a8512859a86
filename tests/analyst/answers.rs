//! Questions that are answered, and what is said with the answer.

use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

use crate::world::{
    AGENT, BY_COUNTRY, CANARY, Kept, Shop, clear, draft, intent, interpretation, script,
};

/// S4.03: S2.04, S4.01–S4.07: every stage asks as the contract says, and the answer cites query and table.
#[tokio::test]
async fn a_question_is_answered_with_its_table_query_and_assumptions() {
    let answer = "Norway leads with 160.5, Chile has 40.0.";
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation(answer, json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What did customers order per country?").await;
    assert_eq!(report["status"], "done", "{report:#}");
    let result = &report["results"][0];
    assert_eq!(
        (&result["agent"], &result["reflection"]),
        (&json!(AGENT), &json!("APPROVED")),
        "{result:#}"
    );
    let output = result["output"].as_str().unwrap();
    for part in [answer, "Assumed: Totals are in euros", "From: orders, customers", "And by month?"]
    {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(!output.contains("Not found in the result"), "{output}");
    assert_eq!(
        report["data"],
        json!({ "columns": ["country", "total"], "rows": [["Norway", 160.5], ["Chile", 40.0]], "row_count": 2, "truncated": false })
    );
    let source = &result["sources"][0];
    assert_eq!(source["source"], "shop.query", "{result:#}");
    assert_eq!(source["quote"], BY_COUNTRY);
    assert_eq!(shop.stages(), ["intent", "clarify", "generate", "review", "interpret"]);
    for (stage, role) in [
        ("intent", "classifier"),
        ("clarify", "agent"),
        ("generate", "agent"),
        ("review", "reflector"),
        ("interpret", "agent"),
    ] {
        let [request] = shop.stage(stage).try_into().unwrap_or_else(|_| panic!("{stage}"));
        assert_eq!(request.role, role, "{stage}");
        assert_eq!(request.agent.as_deref(), Some(AGENT), "{stage}");
    }
    // What its stages asked counts where runs are compared.
    let compared = shop.perihelion(&["diff", "t", "t", "--json"]).await.stdout;
    let compared: Value = serde_json::from_slice(&compared).unwrap();
    assert_eq!(compared["a"]["totals"]["model_calls"], shop.model.requests().len(), "{compared:#}");
    // The statement stands on tables, fields and keys.
    let pack = shop.stage("generate")[0].last_text().to_owned();
    for part in ["[table:orders]", "[field:customers.country]", "orders.customer_id = customers.id"]
    {
        assert!(pack.contains(part), "{part} is not in {pack}");
    }
}

/// S4.06, S4.07: what is not in the preview reaches no model, and the reader hears that there is more.
#[tokio::test]
async fn a_row_beyond_the_preview_reaches_no_model() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft("SELECT order_id, product FROM lines ORDER BY order_id, line"))
        .rule(interpretation("The first rows are cakes and tea.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &["--max-rows", "4", "--no-profile"]).await;
    let report = shop.ask("List what was bought").await;
    let result = &report["results"][0];
    assert_eq!(report["data"]["truncated"], true, "{report:#}");
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("Only the first 4 rows were fetched"), "{output}");
    let requests = shop.model.requests();
    assert!(requests.len() >= 8);
    assert!(requests.iter().all(|request| !request.contains(CANARY)));
}

/// S4.07: A number that nothing supports is flagged, one that follows is marked, and a multiplied total is said.
#[tokio::test]
async fn numbers_that_are_not_in_the_result_and_totals_counted_twice_are_reported() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft("SELECT SUM(o.total) AS total FROM orders o JOIN lines l ON l.order_id = o.id"))
        .rule(interpretation("Orders sum to 300.5; last year it was 9,999.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What is the total of all orders?").await;
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(output.contains("Not found in the result: 9,999"), "{output}");
    assert!(
        output.contains("Caution: SUM(o.total) counts a row of o once per matching row of l"),
        "{output}"
    );
    assert!(output.contains("by a factor of 1.25 here"), "{output}");
}

/// S4.07: each aggregate is measured by itself, and one that its condition hides from the keys too.
#[tokio::test]
async fn a_join_that_repeats_rows_of_one_table_only_is_reported_for_that_table_only() {
    for (sql, expected) in [
        (
            "SELECT COUNT(l.line) AS n, SUM(o.total) AS total FROM orders o JOIN customers c ON c.id = o.customer_id \
             JOIN customers d ON d.name = c.name JOIN lines l ON l.order_id = o.id",
            "SUM(o.total) counts a row of o once per matching row of d, l",
        ),
        (
            "SELECT SUM(o.total) AS total FROM orders o JOIN lines l ON l.order_id = o.id + 0",
            "SUM(o.total) may count a row of o more than once: it is not known how many rows of l match",
        ),
        (
            "WITH j AS (SELECT o.total FROM orders o JOIN lines l ON l.order_id = o.id) SELECT SUM(total) AS total FROM j",
            "SUM(total) counts a row of o once per matching row of l",
        ),
    ] {
        let script = script()
            .rule(intent("DATA_QA"))
            .rule(clear())
            .rule(draft(sql))
            .rule(interpretation("They sum to 300.5.", json!(null)));
        let shop = Shop::open(Kept::Sqlite, script, &[]).await;
        let report = shop.ask("What is the total of all orders?").await;
        let output = report["results"][0]["output"].as_str().unwrap();
        assert_eq!(output.matches("Caution: ").count(), 1, "{output}");
        assert!(output.contains(&format!("Caution: {expected}")), "{output}");
        assert!(output.contains("by a factor of 1.25 here"), "{output}");
    }
}

/// S4.08: a report has a chart, in both forms and from the result's values.
#[tokio::test]
async fn a_report_includes_a_chart_of_the_result() {
    let chart = json!({ "kind": "bar", "x": "country", "y": "total", "series": null, "title": "Orders by country" });
    let script = script()
        .rule(intent("ANALYTICS_REPORT"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway leads with 160.5.", chart));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("Draw orders by country").await;
    let chart = &report["results"][0]["chart"];
    assert!(chart["svg"].as_str().unwrap().contains("Orders by country"), "{report:#}");
    assert_eq!(
        chart["vega_lite"]["data"]["values"][0],
        json!({ "country": "Norway", "total": 160.5 })
    );
}

/// S4.01: what needs no query gets none.
#[tokio::test]
async fn general_and_foreign_questions_are_answered_without_sql() {
    let script = script()
        .rule(intent("GENERAL_QA"))
        .rule(interpretation("It holds customers, orders and their lines.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What is in this database?").await;
    assert_eq!(
        report["results"][0]["output"], "It holds customers, orders and their lines.",
        "{report:#}"
    );
    assert_eq!(shop.stages(), ["intent", "interpret"]);

    let script = crate::world::script().rule(intent("OUT_OF_SCOPE"));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What is the weather?").await;
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(
        output.starts_with("This cannot be answered from the database: It is about orders."),
        "{output}"
    );
    assert_eq!(shop.stages(), ["intent"]);
}

/// A follow-up question sees the statement of the one before.
#[tokio::test]
async fn a_follow_up_refers_to_the_previous_turn() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway leads.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    shop.ask("What did customers order per country?").await;
    shop.ask("And only in 2024?").await;
    let [first, second] =
        shop.stage("generate").try_into().unwrap_or_else(|_| panic!("two drafts"));
    assert!(!first.contains("<previous>\n") && second.contains("<previous>\n"));
    assert!(second.contains("Norway leads."));
}

/// S3.09, S4.06: the answer describes the statement that a person made of the model's, which was run.
#[tokio::test]
async fn an_approved_statement_with_changes_is_the_one_that_is_explained() {
    let edited = "SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC";
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway has 2.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &["--no-profile"]).await;
    shop.gate();
    let mut report = shop.ask("What did customers order per country?").await;
    let mut asked = 0;
    while report["status"] == "interrupted" {
        asked += 1;
        assert!(asked < 9, "{report:#}");
        let mut arguments = report["interrupts"][0]["payload"]["arguments"].clone();
        let mut decision = json!({ "decision": "approve" });
        if arguments["sql"].as_str().unwrap().contains("SUM(o.total)") {
            arguments["sql"] = json!(edited);
            decision["arguments"] = arguments;
        }
        let answer = decision.to_string();
        let resumed = shop
            .perihelion(&["resume", "t", "--json", "--include-data", "--answer", &answer])
            .await;
        report = serde_json::from_slice(&resumed.stdout).unwrap();
    }
    let result = &report["results"][0];
    assert_eq!(report["data"]["columns"], json!(["country", "n"]), "{report:#}");
    assert_eq!(result["sources"][0]["quote"], edited, "{result:#}");
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("From: customers") && !output.contains("orders"), "{output}");
    let prompt = shop.stage("interpret")[0].last_text().to_owned();
    assert!(prompt.contains("COUNT(*)") && !prompt.contains("SUM(o.total)"), "{prompt}");
}

/// S4.07: numbers of an answer about the database itself have no row that supports them.
#[tokio::test]
async fn a_number_in_a_general_answer_is_named_as_unsupported() {
    let answer = "The table orders has about 12000 rows.";
    let rules = [intent("GENERAL_QA"), interpretation(answer, json!(null))];
    let script = rules.into_iter().fold(script(), perihelion::llm::scripted::Script::rule);
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("How big is the table of orders?").await;
    let result = &report["results"][0];
    assert_eq!(result["confidence"], 0.4, "{report:#}");
    let output = result["output"].as_str().unwrap();
    assert_eq!(output, format!("{answer}\n\nNot found in the result: 12000"));
}

/// S2.12: an answer that the budget leaves no verdict for is kept, and marked.
#[tokio::test]
async fn an_answer_that_spends_the_budget_is_kept_unverified() {
    let reply =
        json!({ "answer": "Norway leads.", "highlights": [], "follow_ups": [], "chart": null });
    let dear = Rule::new(Reply::json(reply).usage(200_000, 10)).stage("interpret");
    let script = script().rule(intent("DATA_QA")).rule(clear()).rule(draft(BY_COUNTRY)).rule(dear);
    let shop = Shop::open(Kept::Sqlite, script, &["--no-profile"]).await;
    shop.write("perihelion.toml", "[limits]\nmax_tokens = 150000\n");
    let report = shop.ask("What did customers order per country?").await;
    let result = &report["results"][0];
    assert_eq!(
        (&result["status"], &result["reflection"]),
        (&json!("success"), &json!("UNVERIFIED")),
        "{report:#}"
    );
    assert!(result["output"].as_str().unwrap().contains("Norway leads."), "{result:#}");
}

/// S1.05, S2.04: where few calls of tools are left, the statement and its check get them.
#[tokio::test]
async fn few_tool_calls_are_left_to_the_statement() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway leads with 160.5.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    shop.write("perihelion.toml", "[limits]\nmax_tool_calls = 3\n");
    let report = shop.ask("What did customers in \"Norway\" order per country?").await;
    let result = &report["results"][0];
    assert_eq!(result["status"], "success", "{report:#}");
    let called = result["tools"].as_array().unwrap().iter();
    let called: Vec<&str> = called.map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(called, ["shop.list_tables", "shop.validate", "shop.query"]);
}
