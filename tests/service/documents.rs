//! Documents over HTTP: sent, listed, searched, cited with their pages, deleted.

#[path = "../../crates/parse/tests/support/pdf.rs"]
mod written;

use perihelion_test_database::TestDatabase;
use reqwest::Method;
use serde_json::{Value, json};

use super::on_both;
use super::people::{ask, key};
use super::served::Served;

on_both!(
    documents_of_a_tenant_respect_its_quotas,
    documents_are_sent_found_cited_with_their_page_and_deleted,
    old_documents_are_deleted_when_an_age_is_set,
);

/// Writes a PDF whose pages say a sentence again and again.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let streams: Vec<String> = pages
        .iter()
        .map(|text| {
            let lines = (0..40).map(|line| {
                let y = 700 - 14 * line;
                format!("BT /F 10 Tf 72 {y} Td ({text} This is line {line}.) Tj ET\n")
            });
            lines.collect()
        })
        .collect();
    written::pdf(&streams.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn sent(served: &Served, path: &str, kind: &str, body: Vec<u8>) -> (u16, Value) {
    let asked = served.http.post(format!("{}{path}", served.url)).header("content-type", kind);
    let answer = asked.body(body).send().await.unwrap();
    let code = answer.status().as_u16();
    (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
}

/// S3.05: what there is no room for is refused by name, with what is used and permitted, which a list shows as well.
async fn documents_of_a_tenant_respect_its_quotas(served: Served) {
    let served = served
        .again_with(&[
            ("PERIHELION_DOCUMENTS_MAX_DOCUMENTS", "2"),
            ("PERIHELION_DOCUMENTS_MAX_TEXT_BYTES", "1000"),
        ])
        .await;
    let send = async |name: &str, text: &str| {
        let path = format!("/v1/documents?name={name}");
        sent(&served, &path, "text/markdown", text.as_bytes().to_vec()).await
    };
    assert_eq!(send("a.md", "# One").await.0, 200);
    let (code, refused) = send("b.md", &"Too long to fit. ".repeat(100)).await;
    assert_eq!(code, 413, "{refused}");
    let message = refused.to_string();
    for part in ["bytes of text", "5 used", "1000 allowed", "documents.max_text_bytes"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(send("b.md", "# Two").await.0, 200);
    let (code, refused) = send("c.md", "# Three").await;
    assert_eq!(code, 429, "{refused}");
    let (_, listed) = served.get("/v1/documents").await;
    assert_eq!(listed["used"], json!({ "documents": 2, "text_bytes": 10, "chunks": 2 }));
    assert_eq!((&listed["usage"], &listed["limits"]), (&listed["used"], &listed["permitted"]));
    assert_eq!(listed["permitted"], json!({ "documents": 2, "text_bytes": 1000, "chunks": null }));
}

/// S3.05: the service deletes what is older than the settings permit, of all tenants.
async fn old_documents_are_deleted_when_an_age_is_set(served: Served) {
    let text = b"# Old\n\nNobody needs this.\n".to_vec();
    assert_eq!(sent(&served, "/v1/documents?name=old.md", "text/markdown", text).await.0, 200);
    let served = served.again_with(&[("PERIHELION_DOCUMENTS_MAX_AGE", "0s")]).await;
    served.until_got("/v1/documents", |listed| listed["used"]["documents"] == 0).await;
    let (_, listed) = served.get("/v1/documents").await;
    assert_eq!(listed["documents"], json!([]));
}

/// S3.08
async fn documents_are_sent_found_cited_with_their_page_and_deleted(served: Served) {
    let file = pdf(&[
        "This lease is made in spring.",
        "The rent is 1250 crowns a month.",
        "Notice is three months.",
    ]);
    let path = "/v1/documents?name=lease.pdf&collection=work";
    let (code, added) = sent(&served, path, "application/pdf", file.clone()).await;
    assert_eq!(code, 200, "{added}");
    assert_eq!(
        (&added["document"]["path"], &added["unchanged"]),
        (&json!("lease.pdf"), &json!(false))
    );
    let id = added["document"]["id"].as_str().unwrap().to_owned();
    let (_, again) = sent(&served, path, "application/pdf", file).await;
    assert_eq!((&again["document"]["id"], &again["unchanged"]), (&json!(id), &json!(true)));
    let form = "--x\r\ncontent-disposition: form-data; name=\"collection\"\r\n\r\nwork\r\n--x\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"../notes/garden.md\"\r\n\
        content-type: text/markdown\r\n\r\n# Garden\n\nTomatoes want sun.\n\r\n--x--\r\n";
    let (code, second) =
        sent(&served, "/v1/documents", "multipart/form-data; boundary=x", form.into()).await;
    assert_eq!(code, 200, "{second}");
    assert_eq!(second["document"]["path"], "garden.md");
    let (_, listed) = served.get("/v1/documents?collection=work").await;
    let pages: Value =
        listed["documents"].as_array().unwrap().iter().map(|one| one["pages"].clone()).collect();
    assert_eq!(pages, json!([0, 3]), "{listed}");
    let (_, found) = served.get("/v1/documents/search?text=rent&collection=work").await;
    let hit = &found["hits"][0];
    assert_eq!(hit["document"], json!(id), "{found}");
    for (filter, finds) in [
        ("format=pdf", true),
        ("format=markdown", false),
        (&format!("document={id}"), true),
        ("person=archer", true),
        ("person=Nobody", false),
        ("section=elsewhere", false),
        ("since=2020-01-01T00:00:00Z", true),
        ("until=2020-01-01T00:00:00Z", false),
    ] {
        let (code, found) = served.get(&format!("/v1/documents/search?text=rent&{filter}")).await;
        let is_found = !found["hits"].as_array().unwrap().is_empty();
        assert_eq!((code, is_found), (200, finds), "{filter}: {found}");
    }
    let exported = served.http.get(format!("{}/v1/documents/export?collection=work", served.url));
    let exported = exported.send().await.unwrap().text().await.unwrap();
    let lines: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{exported}");
    let lease = lines.iter().find(|line| line["document"]["id"] == json!(id)).unwrap();
    assert_eq!(lease["document"]["authors"], json!(["Ann Archer"]));
    assert!(lease["text"].as_str().unwrap().contains("1250 crowns"));
    let place = format!("/v1/documents/{id}/page?at={}", hit["start"]);
    let (_, page) = served.get(&place).await;
    assert_eq!((&page["number"], &page["pages"]), (&hit["page"], &json!(3)), "{page}");
    let text = page["text"].as_str().unwrap();
    let first = hit["quote"].as_str().unwrap().lines().next().unwrap();
    assert!(text.contains(first), "{page}");
    let (_, page) = served.get(&format!("/v1/documents/{id}/page?number=2")).await;
    assert!(page["text"].as_str().unwrap().contains("1250 crowns"), "{page}");
    for (path, code) in [
        (format!("/v1/documents/{id}/page?number=4"), 422),
        (format!("/v1/documents/{id}/page?at=99999"), 422),
        (format!("/v1/documents/{id}/page"), 422),
        (
            format!("/v1/documents/{}/page?number=1", second["document"]["id"].as_str().unwrap()),
            404,
        ),
        ("/v1/documents/nowhere/page?number=1".to_owned(), 404),
    ] {
        assert_eq!(served.get(&path).await.0, code, "{path}");
    }
    for (path, kind, body, code) in [
        ("/v1/documents", "application/pdf", b"x".to_vec(), 422),
        ("/v1/documents?name=x.pdf", "application/pdf", b"%PDF-1.7 rubbish".to_vec(), 422),
        ("/v1/documents?name=x.md&collection=a/b", "text/markdown", b"# x".to_vec(), 422),
        ("/v1/documents?name=x.md", "multipart/form-data", b"x".to_vec(), 400),
        ("/v1/documents?name=x.md", "text/plain", vec![b'x'; (64 << 20) + 1], 413),
    ] {
        let refused = sent(&served, path, kind, body).await;
        assert_eq!(refused.0, code, "{path}: {refused:?}");
    }
    assert_eq!(
        served.send(Method::DELETE, &format!("/v1/documents/{id}"), &json!({})).await.0,
        204
    );
    assert_eq!(served.get(&format!("/v1/documents/{id}")).await.0, 404);
}

/// What outlives a thread is opened once for all callers, and not for each of them.
#[tokio::test]
async fn callers_share_the_connections_to_what_outlives_a_thread() {
    let served = Served::postgres().await;
    let mut keys = Vec::new();
    for number in 0..20 {
        keys.push(key(&served, &[&format!("key-{number}"), "--scopes", "read,act_as"]).await);
    }
    let database: &TestDatabase = served.on_postgres();
    let mut admin = database.connect().await;
    let mut open = async || -> i64 {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1";
        sqlx::query_scalar(count).bind(&database.name).fetch_one(&mut admin).await.unwrap()
    };
    let before = open().await;
    for key in &keys {
        for path in ["/v1/documents", "/v1/skills", "/v1/memory?user=ann"] {
            let headers = [("x-api-key", key.as_str())];
            let (code, why) = ask(&served, "GET", path, &headers, None).await;
            assert_eq!(code, 200, "{path}: {why}");
        }
    }
    let after = open().await;
    assert!(after < before + 10, "{before} connections, and {after} after twenty callers");
}
