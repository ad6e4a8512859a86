//! Users, sessions, keys and the audit on SQLite and Postgres.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::{DateTime, Duration, Utc};
use perihelion_database::{Database, query};
use perihelion_people::{
    ApprovalRequest, ApprovalStatus, AuditEntry, AuditQuery, CreatedKey, EndedRun, Error, Identity,
    NewKey, People, Principal, ProvedBy, Scope, Taken,
};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use uuid::Uuid;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_000_000, 0).unwrap()
}

/// Runs a test on both databases; Postgres where `TEST_DATABASE_URL` names a server.
async fn on_both<F: Future<Output = ()>>(test: impl Fn(People) -> F) {
    let database = Database::open("memory:").await.unwrap();
    test(People::new(database.clone())).await;
    database.close().await;
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    test(People::new(database.clone())).await;
    database.close().await;
}

fn key(name: &str) -> NewKey<'_> {
    let scopes = &[Scope::Read, Scope::Run];
    NewKey { name, user: None, made_by: None, scopes, expires_at: None }
}

async fn create(people: &People, tenant: &str, new: NewKey<'_>) -> Result<CreatedKey, Error> {
    people.change(tenant, "boss", now(), async |change| change.create_key(new).await).await
}

/// Executes a statement about a thread.
async fn on_thread(people: &People, statement: &'static str, thread: Uuid) {
    let statement = query(statement).bind(thread).bind(now());
    let done = people.change("acme", "boss", now(), async |change| {
        change.transaction().execute(&statement).await
    });
    done.await.unwrap();
}

async fn add_thread(people: &People, thread: Uuid) {
    let insert = "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) \
                  VALUES ($1, $2, $2, 'swarm', '', 'acme')";
    on_thread(people, insert, thread).await;
}

async fn revoke(people: &People, name: &str) -> Result<(), Error> {
    people.change("acme", "boss", now(), async |change| change.revoke_key(name).await).await
}

async fn disable(people: &People, name: &str) -> Result<String, Error> {
    people.change("acme", "boss", now(), async |change| change.disable_user(name).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lets_its_owner_in_until_it_is_revoked_and_its_name_is_free_again() {
    on_both(|people| async move {
        let made = create(&people, "acme", key("ci")).await.unwrap();
        let who = people.by_key(made.secret.expose(), now()).await.unwrap();
        assert_eq!((who.tenant.as_str(), who.user.as_str()), ("acme", "ci"));
        assert_eq!(who.proved_by, ProvedBy::Key { id: made.key.id, owner: None });
        assert!(who.may(Scope::Run) && !who.may(Scope::Manage));
        assert!(matches!(create(&people, "acme", key("ci")).await, Err(Error::Taken(_))));
        create(&people, "other", key("ci")).await.unwrap();
        revoke(&people, "ci").await.unwrap();
        let refused = people.by_key(made.secret.expose(), now()).await.unwrap_err();
        assert!(refused.to_string().contains("revoked"), "{refused}");
        assert!(matches!(revoke(&people, "ci").await, Err(Error::Unknown { .. })));
        create(&people, "acme", key("ci")).await.unwrap();
        let listed = people.keys("acme").await.unwrap();
        assert_eq!(listed.len(), 2, "the revoked key stays in the list");
        assert!(!format!("{made:?}").contains(made.secret.expose()), "secrets are not printed");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_or_unknown_key_is_refused() {
    on_both(|people| async move {
        let expires_at = Some(now() + Duration::hours(1));
        let made = create(&people, "acme", NewKey { expires_at, ..key("brief") }).await.unwrap();
        assert!(people.by_key(made.secret.expose(), now()).await.is_ok());
        assert!(people.by_key(made.secret.expose(), now() + Duration::hours(1)).await.is_err());
        for wrong in ["", "ph_", "ph_unknown", "Bearer x", &"ph_x".repeat(1_000)] {
            assert!(
                matches!(people.by_key(wrong, now()).await, Err(Error::NotAccepted(_))),
                "{wrong}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_by_password_within_the_tenant_alone() {
    on_both(|people| async move {
        let scopes = [Scope::Read, Scope::Run, Scope::Approve];
        people.register("acme", " Ann ", "correct horse battery", &scopes, now()).await.unwrap();
        let ann = people.check_password("acme", "ANN", "correct horse battery").await.unwrap();
        assert_eq!(ann.name, "ann");
        for (tenant, name, password) in [
            ("acme", "ann", "wrong horse battery"),
            ("acme", "bob", "correct horse battery"),
            ("other", "ann", "correct horse battery"),
            ("acme", "ann", ""),
        ] {
            let refused = people.check_password(tenant, name, password).await.unwrap_err();
            assert_eq!(refused.to_string(), "wrong name or password", "the same words for all");
        }
        let again = people.register("acme", "ann", "another long password", &scopes, now()).await;
        assert!(matches!(again, Err(Error::Taken(_))));
        for (name, password) in
            [("eve", "short"), ("", "a long password"), ("a b", "a long password")]
        {
            let unfit = people.register("acme", name, password, &scopes, now()).await;
            assert!(matches!(unfit, Err(Error::Unfit(_))), "{name}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_the_same_in_any_letter_case() {
    on_both(|people| async move {
        for (typed, stored) in [("Ada", "ada"), (" ÄNNE ", "änne")] {
            let read = [Scope::Read];
            let all = [Scope::Read, Scope::Approve];
            people.register("acme", typed, "correct horse battery", &all, now()).await.unwrap();
            // A key whose user's name was stored as another issuer writes it.
            let new = NewKey { user: Some(typed.trim()), scopes: &all, ..key(stored) };
            let secret = create(&people, "acme", new).await.unwrap().secret;
            let change = people.change("acme", "boss", now(), async |change| {
                change.change_scopes(typed, &read).await
            });
            assert_eq!(change.await.unwrap().name, stored);
            let who = people.by_key(secret.expose(), now()).await.unwrap();
            assert_eq!(who.scopes, read, "{typed}");
            let token = Principal { proved_by: ProvedBy::Token, ..who };
            assert!(people.still(token.clone(), now()).await.is_ok());
            assert_eq!(disable(&people, typed).await.unwrap(), stored);
            assert!(people.by_key(secret.expose(), now()).await.is_err(), "{typed}");
            let listed = people.keys("acme").await.unwrap();
            let key = listed.iter().find(|key| key.name == stored).unwrap();
            assert!(key.user_disabled, "{typed}");
            assert!(people.still(token, now()).await.is_err(), "{typed}");
            let noted = people.audit("acme", &AuditQuery::default()).await.unwrap();
            assert_eq!((&*noted[0].action, &*noted[0].subject), ("user.disabled", stored));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_keys_have_at_most_the_scopes_that_their_user_has_now() {
    on_both(|people| async move {
        let all = [Scope::Read, Scope::Run];
        let ann = people.register("acme", "ann", "correct horse battery", &all, now()).await;
        let begun = people.begin_session(&ann.unwrap(), Duration::hours(8), now()).await.unwrap();
        let made = create(&people, "acme", NewKey { user: Some("ann"), ..key("laptop") }).await;
        let secret = made.unwrap().secret;
        let open = people.by_session(begun.cookie.expose(), None, now()).await.unwrap();
        let change = async |name: &str, scopes: &[Scope]| {
            let change = people.change("acme", "boss", now(), async |change| {
                change.change_scopes(name, scopes).await
            });
            change.await
        };
        change("ann", &[Scope::Read]).await.unwrap();
        let by_session = people.by_session(begun.cookie.expose(), None, now()).await.unwrap();
        let by_key = people.by_key(secret.expose(), now()).await.unwrap();
        let still = people.still(open, now()).await.unwrap();
        for who in [by_session, by_key, still] {
            assert_eq!(who.scopes, [Scope::Read], "{who:?}");
        }
        assert!(matches!(change("ann", &[]).await, Err(Error::Unfit(_))));
        assert!(matches!(change("bob", &all).await, Err(Error::Unknown { .. })));
        let entries = people.audit("acme", &AuditQuery::default()).await.unwrap();
        let changed: Vec<_> =
            entries.iter().filter(|one| one.action == "user.scopes_changed").collect();
        assert_eq!((changed.len(), &changed[0].details), (1, &json!({ "scopes": ["read"] })));
        disable(&people, "ann").await.unwrap();
        assert!(matches!(change("ann", &all).await, Err(Error::Unknown { .. })));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_by_time_by_logout_and_with_its_user() {
    on_both(|people| async move {
        let ann = people
            .register("acme", "ann", "correct horse battery", &[Scope::Read], now())
            .await
            .unwrap();
        let begun = people.begin_session(&ann, Duration::hours(8), now()).await.unwrap();
        let cookie = begun.cookie.expose();
        let csrf = begun.csrf.expose();
        let who = people.by_session(cookie, None, now()).await.unwrap();
        assert_eq!((who.user.as_str(), &who.proved_by), ("ann", &ProvedBy::Session));
        assert!(people.by_session(cookie, Some(Some(csrf)), now()).await.is_ok());
        assert!(
            people.by_session(cookie, Some(None), now()).await.is_err(),
            "a change needs the second secret"
        );
        assert!(people.by_session(cookie, Some(Some(cookie)), now()).await.is_err());
        assert!(people.by_session(cookie, None, now() + Duration::hours(8)).await.is_err());
        people.end_session(cookie).await.unwrap();
        assert!(people.by_session(cookie, None, now()).await.is_err());
        let begun = people.begin_session(&ann, Duration::hours(8), now()).await.unwrap();
        disable(&people, "ann").await.unwrap();
        assert!(people.by_session(begun.cookie.expose(), None, now()).await.is_err());
        assert!(people.check_password("acme", "ann", "correct horse battery").await.is_err());
        let again =
            people.register("acme", "ann", "correct horse battery", &[Scope::Read], now()).await;
        assert!(matches!(again, Err(Error::Taken(_))), "nobody takes a name over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_read_newest_first_for_a_tenant_and_a_thread() {
    on_both(|people| async move {
        let thread = Uuid::now_v7();
        for (number, tenant, thread) in
            [(1, "acme", Some(thread)), (2, "acme", None), (3, "other", Some(thread))]
        {
            let entry = AuditEntry {
                id: Uuid::now_v7(),
                at: now() + Duration::seconds(number),
                tenant: tenant.to_owned(),
                actor: "ann".to_owned(),
                action: "approval.approved".to_owned(),
                subject: format!("call {number}"),
                thread,
                details: json!({ "number": number }),
            };
            people.note(&entry).await.unwrap();
        }
        let all = people.audit("acme", &AuditQuery::default()).await.unwrap();
        assert_eq!(
            all.iter().map(|entry| entry.subject.as_str()).collect::<Vec<_>>(),
            ["call 2", "call 1"]
        );
        let of_thread = AuditQuery { thread: Some(thread), ..AuditQuery::default() };
        let found = people.audit("acme", &of_thread).await.unwrap();
        assert_eq!((found.len(), &found[0].details), (1, &json!({ "number": 1 })));
        let earlier =
            AuditQuery { before: Some(now() + Duration::seconds(2)), ..AuditQuery::default() };
        assert_eq!(people.audit("acme", &earlier).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_its_audit_entry_are_stored_together_or_not_at_all() {
    on_both(|people| async move {
        let ann =
            people.register("acme", "ann", "correct horse", &[Scope::Read], now()).await.unwrap();
        let begun = people.begin_session(&ann, Duration::hours(8), now()).await.unwrap();
        let cookie = begun.cookie.expose();
        let broken = people.change("acme", "boss", now(), async |change| {
            change.disable_user("ann").await?;
            change.create_key(key("ci")).await?;
            Err::<(), _>(Error::Unfit("what comes after it fails".to_owned()))
        });
        assert!(matches!(broken.await, Err(Error::Unfit(_))));
        assert!(people.by_session(cookie, None, now()).await.is_ok(), "she was shut out in part");
        assert!(people.keys("acme").await.unwrap().is_empty());
        let noted = people.audit("acme", &AuditQuery::default()).await.unwrap();
        let [added] = noted.as_slice() else { panic!("{noted:?}") };
        assert_eq!((&*added.actor, &*added.action, &*added.subject), ("ann", "user.added", "ann"));

        // What somebody was disabled for before may be done again, and ends what was begun since.
        for _ in 0..2 {
            disable(&people, "ann").await.unwrap();
        }
        assert!(people.by_session(cookie, None, now()).await.is_err());
        let noted = people.audit("acme", &AuditQuery::default()).await.unwrap();
        let noted: Vec<_> = noted
            .iter()
            .map(|one| (one.actor.as_str(), one.action.as_str(), one.subject.as_str()))
            .collect();
        let disabled = ("boss", "user.disabled", "ann");
        assert_eq!(noted, [disabled, disabled, ("ann", "user.added", "ann")]);
        assert!(matches!(disable(&people, "bob").await, Err(Error::Unknown { .. })));
    })
    .await;
}

fn identity(subject: &str, scopes: &[Scope]) -> Identity {
    Identity { subject: subject.to_owned(), name: "ann".to_owned(), scopes: scopes.to_vec() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_loses_roles_at_the_provider_loses_them_in_keys_sessions_and_cron_jobs() {
    on_both(|people| async move {
        let all = [Scope::Read, Scope::Run, Scope::Manage];
        let ann = people.signed_on("acme", identity("1", &all), now()).await.unwrap();
        let begun = people.begin_session(&ann, Duration::hours(8), now()).await.unwrap();
        let new = NewKey { user: Some("ann"), scopes: &all, ..key("laptop") };
        let laptop = create(&people, "acme", new).await.unwrap();
        let by_key = async || people.by_key(laptop.secret.expose(), now()).await;
        let by_session = async || people.by_session(begun.cookie.expose(), None, now()).await;
        let makers = [by_key().await.unwrap(), by_session().await.unwrap()];
        let still = async |maker: &Principal| people.still(maker.clone(), now()).await;
        for (left, session) in [(&all[..2], true), (&all[..0], false), (&all[..1], false)] {
            let signed_on = people.signed_on("acme", identity("1", left), now()).await;
            let lets_in = !left.is_empty();
            assert_eq!((signed_on.is_ok(), by_session().await.is_ok()), (lets_in, session));
            for found in [by_key().await, still(&makers[0]).await, still(&makers[1]).await] {
                assert_eq!(found.ok().map(|who| who.scopes), lets_in.then(|| left.to_vec()));
            }
        }
        let token = Principal { proved_by: ProvedBy::Token, ..makers[0].clone() };
        assert_eq!(still(&token).await.unwrap().scopes, all, "the token has its own scopes");
        disable(&people, "ann").await.unwrap();
        assert!(still(&token).await.is_err());
        let nobody = people.signed_on("acme", identity("2", &[]), now()).await;
        assert!(matches!(nobody, Err(Error::NotAccepted(_))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_logins_of_one_person_at_the_same_time_are_both_accepted() {
    on_both(|people| async move {
        let log_in = |subject| people.signed_on("acme", identity(subject, &[Scope::Read]), now());
        let (one, two) = tokio::join!(log_in("1"), log_in("1"));
        assert_eq!(one.unwrap().id, two.unwrap().id);
        assert!(matches!(log_in("2").await, Err(Error::Taken(_))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_read_page_by_page_without_a_gap() {
    on_both(|people| async move {
        // One change has one time.
        let made = people.change("acme", "boss", now(), async |change| {
            for name in ["one", "two", "three"] {
                change.create_key(key(name)).await?;
            }
            Ok::<_, Error>(())
        });
        made.await.unwrap();
        create(&people, "acme", key("four")).await.unwrap();
        let mut wanted = AuditQuery { limit: Some(1), ..AuditQuery::default() };
        let mut subjects = Vec::new();
        while let Some(entry) = people.audit("acme", &wanted).await.unwrap().pop() {
            wanted.before = Some(entry.at);
            wanted.before_id = Some(entry.id);
            subjects.push(entry.subject);
        }
        subjects.sort_unstable();
        assert_eq!(subjects, ["four", "one", "three", "two"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_in_time_replaces_a_mark_that_the_request_has_expired() {
    on_both(|people| async move {
        let thread = Uuid::now_v7();
        add_thread(&people, thread).await;
        let asked = ApprovalRequest {
            id: Uuid::now_v7(),
            tenant: "acme".to_owned(),
            thread,
            agent: "mail".to_owned(),
            tool: "mail.send".to_owned(),
            status: ApprovalStatus::Pending,
            asked_at: now(),
            expires_at: now() + Duration::hours(1),
            decided_at: None,
            decided_by: None,
        };
        people.approval_asked(&asked).await.unwrap();
        let ended =
            async |status, by| people.approval_ended(thread, asked.id, status, by, now()).await;
        assert!(ended(ApprovalStatus::Expired, None).await.unwrap());
        assert!(!ended(ApprovalStatus::Withdrawn, None).await.unwrap());
        assert!(ended(ApprovalStatus::Approved, Some("ann")).await.unwrap());
        assert!(!ended(ApprovalStatus::Denied, Some("bob")).await.unwrap());
        let of = async |thread| people.approvals("acme", thread, None).await.unwrap();
        assert!(of(Some(Uuid::now_v7())).await.is_empty());
        let listed = of(Some(thread)).await;
        assert_eq!(of(None).await, listed);
        assert_eq!(
            (listed[0].status, listed[0].decided_by.as_deref()),
            (ApprovalStatus::Approved, Some("ann"))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_took_is_counted_once_and_never_given_back() {
    on_both(|people| async move {
        let thread = Uuid::now_v7();
        let note = async |part: u64, run: u128, tokens: u64| {
            let tenant = "acme".to_owned();
            let run = EndedRun { tenant, thread, part, run: Uuid::from_u128(run), at: now() };
            people.note_taken(&run, Taken { tokens, ..Taken::default() }).await.unwrap();
            people.taken_on("acme", now().date_naive()).await.unwrap().tokens
        };
        assert_eq!(note(2, 1, 10_000).await, 10_000);
        assert_eq!(note(2, 2, 12_000).await, 12_000, "the run continued the first one");
        assert_eq!(note(2, 2, 12_000).await, 12_000, "it is written down already");
        assert_eq!(note(9, 3, 3_000).await, 15_000, "it did the work again");
        assert_eq!(note(2, 4, 1_000).await, 15_000, "it took less than is counted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_revoked_with_the_key_that_made_it_and_no_other() {
    on_both(|people| async move {
        let first = create(&people, "acme", key("first")).await.unwrap();
        let made_by = |made: &CreatedKey| Some(made.key.id);
        let new = NewKey { made_by: made_by(&first), ..key("second") };
        let second = create(&people, "acme", new).await.unwrap();
        let new = NewKey { made_by: made_by(&second), ..key("third") };
        let third = create(&people, "acme", new).await.unwrap();
        let other = create(&people, "acme", key("other")).await.unwrap();
        revoke(&people, "second").await.unwrap();
        let lets_in =
            async |made: &CreatedKey| people.by_key(made.secret.expose(), now()).await.is_ok();
        assert!(lets_in(&first).await && lets_in(&other).await);
        assert!(!lets_in(&second).await && !lets_in(&third).await);
        // One that is revoked already leads on to those that it made.
        let new = NewKey { made_by: made_by(&third), ..key("fourth") };
        let fourth = create(&people, "acme", new).await.unwrap();
        revoke(&people, "first").await.unwrap();
        assert!(!lets_in(&fourth).await && lets_in(&other).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_pauses_for_longer_than_usage_is_stored_is_counted_once() {
    on_both(|people| async move {
        let thread = Uuid::now_v7();
        add_thread(&people, thread).await;
        let set = "UPDATE thread SET status = 'interrupted', updated_at = $2 WHERE id = $1";
        on_thread(&people, set, thread).await;
        let later = now() + Duration::days(45);
        let note = async |run: u128, at: DateTime<Utc>, tokens: u64| {
            let tenant = "acme".to_owned();
            let run = EndedRun { tenant, thread, part: 1, run: Uuid::from_u128(run), at };
            people.note_taken(&run, Taken { tokens, ..Taken::default() }).await.unwrap();
            people.taken_on("acme", at.date_naive()).await.unwrap().tokens
        };
        assert_eq!(note(1, now(), 100).await, 100);
        people.forget_taken(later).await.unwrap();
        assert_eq!(note(2, later, 150).await, 50);
        let set = "UPDATE thread SET status = 'idle', updated_at = $2 WHERE id = $1";
        on_thread(&people, set, thread).await;
        people.forget_taken(later).await.unwrap();
        let taken = async |at: DateTime<Utc>| people.taken_on("acme", at.date_naive()).await;
        assert_eq!(taken(now()).await.unwrap().tokens, 0);
        assert_eq!(taken(later).await.unwrap().tokens, 50);
    })
    .await;
}
