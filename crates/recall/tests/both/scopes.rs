//! Nobody finds, counts or feels what others keep.

use perihelion_recall::{Error, Item, Scope, Search};

use crate::databases::on_each;
use crate::index::Index as _;

#[tokio::test(flavor = "multi_thread")]
async fn items_of_other_tenants_and_owners_do_not_appear_or_change_a_score() {
    on_each(|index| async move {
        let ada = Scope::new("acme", "ada").unwrap();
        let mine = [Item::new("a", "pay the invoice"), Item::new("b", "read the mail")];
        index.put(&ada, "note", &mine).await.unwrap();
        let ask = Search::new(&ada, "note", "invoice");
        let before = index.search(&ask).await.unwrap();
        let foreign: Vec<Item> =
            (0..300).map(|n| Item::new(format!("f{n}"), "invoice invoice of others")).collect();
        for scope in [Scope::new("rival", "ada"), Scope::new("acme", "bob")] {
            index.put(&scope.unwrap(), "note", &foreign).await.unwrap();
        }
        index.put(&ada, "skill", &foreign).await.unwrap();
        assert_eq!(index.search(&ask).await.unwrap(), before);
        assert_eq!(index.count(&ada, "note").await.unwrap(), 2);
        let ids = vec!["f1".to_owned()];
        assert_eq!(index.remove(&ada, "note", &ids).await.unwrap(), 0);
        let bob = Scope::new("acme", "bob").unwrap();
        let both = index.search(&ask.clone().and_in(&bob).limit(500)).await.unwrap();
        assert_eq!(both.hits.len(), 301, "with the other scope named, both are searched");
    })
    .await;
}

#[test]
fn a_scope_without_a_tenant_or_an_owner_does_not_exist() {
    for (tenant, owner) in [("", "ada"), ("acme", ""), (" ", "ada")] {
        assert!(matches!(Scope::new(tenant, owner), Err(Error::Nobody)));
    }
}
