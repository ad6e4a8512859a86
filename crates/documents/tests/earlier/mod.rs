//! Documents as programs of an earlier version left them.

use perihelion_database::Database;
use perihelion_database::migrations::SQLITE;
use perihelion_documents::parse::Page;
use perihelion_documents::{Library, Limits, PageAt, Parser, Query};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use crate::support::{Adds as _, input, scope};

/// The last migration before texts were divided into segments.
const BEFORE: i64 = 23;

/// Puts rows of now into the tables of then.
const PUT_BACK: &str = "
    INSERT INTO recall_space SELECT id, tenant, owner, kind, items, length, next_number, revision, languages
        FROM now.recall_space;
    INSERT INTO recall_item SELECT space, number, parent || '/1/' || number, parent, attributes, at, payload, meaning,
        hash, terms, length FROM now.recall_item;
    INSERT INTO recall_posting SELECT * FROM now.recall_posting;
    INSERT INTO document SELECT tenant, owner, id, collection, path, title, format, hash, version, bytes, characters,
        chunks, description, warnings, added_at, changed_at, authors FROM now.document;
    INSERT INTO document_parent SELECT * FROM now.document_parent;
    INSERT INTO document_usage SELECT * FROM now.document_usage;
    INSERT INTO document_text SELECT tenant, owner, id, group_concat(body, ''), '{\"pages\": [
            {\"number\": 1, \"start\": 0, \"end\": CUT}, {\"number\": 2, \"start\": CUT, \"end\": END}]}'
        FROM (SELECT * FROM now.document_segment ORDER BY number) GROUP BY tenant, owner, id;";

/// Puts the rows that are not in lists now into the lists of then: terms with their postings, after the lengths of both.
async fn fill_lists(then: &mut SqliteConnection) {
    let read = "SELECT space, body FROM now.recall_part";
    let parts: Vec<(i64, Vec<u8>)> = sqlx::query_as(read).fetch_all(&mut *then).await.unwrap();
    for (space, body) in parts {
        let mut rest = body.as_slice();
        while !rest.is_empty() {
            let term = take_number(&mut rest);
            let postings = take_number(&mut rest);
            let (term, after) = rest.split_at(term);
            let (postings, after) = after.split_at(postings);
            rest = after;
            let insert = sqlx::query("INSERT INTO recall_posting VALUES ($1, $2, $3, $4)");
            let insert = insert.bind(space).bind(std::str::from_utf8(term).unwrap());
            let insert = insert.bind(take_number(&mut &*postings) as i64).bind(postings);
            insert.execute(&mut *then).await.unwrap();
        }
    }
}

fn take_number(bytes: &mut &[u8]) -> usize {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let (number, rest) = bytes.split_at(end + 1);
    *bytes = rest;
    number.iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f))
}

/// S3.05: nothing has to be added again after an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn documents_of_an_earlier_version_are_found_read_changed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let open = async |name: &str| {
        let database = Database::open(&path(name)).await.unwrap();
        Library::new(database, Parser::Here(Limits::default()), scope("ann"))
    };
    let part =
        |n: usize| format!("## Teil {n}\n\nÜber Nummer{n}. {}\n\n", "Und so fort. ".repeat(40));
    let text = format!("# Maße\n\n{}", (0..1_100).map(part).collect::<String>());
    let now = open("now.db").await;
    let mut prepared = now.prepare(input("long.md", &text)).await.unwrap();
    let body = prepared.parsed.text.clone();
    let cut = body.find("## Teil 90").unwrap();
    prepared.parsed.pages = vec![
        Page { number: 1, start: 0, end: cut },
        Page { number: 2, start: cut, end: body.len() },
    ];
    let document = now.flip(&prepared).await.unwrap();
    let asked = Query::new("Nummer100");
    let hits = now.search(&asked, None).await.unwrap().hits;
    let page = now.page(&document.id, PageAt::Number(2)).await.unwrap();
    now.close().await;

    let options = SqliteConnectOptions::new().filename(path("then.db")).create_if_missing(true);
    let mut then = options.connect().await.unwrap();
    let earlier = SQLITE.iter().filter(|(number, ..)| *number <= BEFORE);
    let applied = earlier.clone().count();
    for (_, _, sql) in earlier {
        sqlx::raw_sql(*sql).execute(&mut then).await.unwrap();
    }
    let put_back =
        PUT_BACK.replace("CUT", &cut.to_string()).replace("END", &body.len().to_string());
    let all = format!(
        "ATTACH '{}' AS now; {put_back} PRAGMA application_id = {}; PRAGMA user_version = {applied}",
        path("now.db"),
        0x7065_7269
    );
    sqlx::raw_sql(AssertSqlSafe(all)).execute(&mut then).await.unwrap();
    fill_lists(&mut then).await;
    then.close().await.unwrap();

    let library = open("then.db").await;
    assert_eq!(library.find("long.md").await.unwrap(), document);
    assert_eq!(library.body(&document.id).await.unwrap(), body);
    assert_eq!(library.search(&asked, None).await.unwrap().hits, hits);
    assert_eq!(library.page(&document.id, PageAt::Number(2)).await.unwrap(), page);
    let used = library.room().await.unwrap().used;
    assert_eq!(used.text_bytes, body.len() as u64);
    let changed = text.replacen("Über Nummer7.", "Über Nummer7 und Elefanten.", 1);
    let added = library.add(input("long.md", &changed), None, None, &|_| {}).await.unwrap();
    assert_eq!(added.document.version, 2);
    let after = library.search(&asked, None).await.unwrap().hits;
    assert_eq!((after.len(), &after[0].quote), (hits.len(), &hits[0].quote));
    assert_eq!(library.room().await.unwrap().used.text_bytes, used.text_bytes + 14);
    let deleted = library.delete("long.md").await.unwrap();
    assert_eq!(deleted.attempts.len(), 2, "that of the earlier program among them");
    assert_eq!(library.room().await.unwrap().used.documents, 0);
    library.close().await;
}
