//! API keys of the service: 256 random bits, shown once, stored as a hash, scoped, revocable.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, Transaction, query};
use serde::Serialize;
use uuid::Uuid;

use crate::principal::{Principal, ProvedBy, Scope};
use crate::secret::{Secret, digest};
use crate::users::{read_scopes, write_scopes};
use crate::{Error, People};

const PURPOSE: &str = "perihelion 2026-11 api key";

/// How every key begins, so that scanners of leaked secrets know it.
const PREFIX: &str = "ph_";

/// A key that is to be made.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// What it is called; unique among the keys of the tenant that are in force.
    pub name: &'a str,
    /// Whom it acts for; the key's own name where it is nobody.
    pub user: Option<&'a str>,
    /// The key by which it is made, where it is made by one of nobody's.
    pub made_by: Option<Uuid>,
    pub scopes: &'a [Scope],
    pub expires_at: Option<DateTime<Utc>>,
}

/// A key as it is listed: without its secret, which nobody has but its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiKey {
    pub id: Uuid,
    pub tenant: String,
    pub name: String,
    pub user: Option<String>,
    /// The key by which it was made, where that was one of nobody's.
    #[serde(skip)]
    pub made_by: Option<Uuid>,
    pub scopes: Vec<Scope>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A key that was made, with its secret.
#[derive(Clone, Debug)]
pub struct CreatedKey {
    pub key: ApiKey,
    pub secret: Secret,
}

fn read(row: &Row) -> Result<ApiKey, Error> {
    Ok(ApiKey {
        id: row.get(0)?,
        tenant: row.get(1)?,
        name: row.get(2)?,
        user: row.get(3)?,
        scopes: read_scopes(&row.get::<String>(4)?),
        created_at: row.get(5)?,
        expires_at: row.get(6)?,
        revoked_at: row.get(7)?,
        made_by: row.get(8)?,
    })
}

macro_rules! keys {
    ($which:literal) => {
        concat!(
            "SELECT id, tenant, name, person, scopes, created_at, expires_at, revoked_at, made_by
             FROM api_key WHERE ",
            $which
        )
    };
}

impl People {
    /// Lists the keys of a tenant, newest first, the revoked ones too.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn keys(&self, tenant: &str) -> Result<Vec<ApiKey>, Error> {
        let all = query(keys!("tenant = $1 ORDER BY created_at DESC, id DESC")).bind(tenant);
        self.of(tenant).fetch_all(&all).await?.iter().map(read).collect()
    }

    /// Finds who a key belongs to.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] when it is unknown, revoked or expired.
    pub async fn by_key(&self, secret: &str, now: DateTime<Utc>) -> Result<Principal, Error> {
        if !secret.starts_with(PREFIX) || secret.len() > 100 {
            return Err(Error::NotAccepted("this is not a key of this service"));
        }
        let find = query(keys!("token = $1")).bind(digest(PURPOSE, secret));
        let row = self.of_all().fetch_optional(&find).await?;
        let key = row.as_ref().map(read).transpose()?.ok_or(Error::NotAccepted("unknown key"))?;
        self.check_key(&key, now).await?;
        Ok(Principal {
            tenant: key.tenant,
            user: key.user.clone().unwrap_or(key.name),
            scopes: key.scopes,
            proved_by: ProvedBy::Key { id: key.id, owner: key.user },
        })
    }

    async fn check_key(&self, key: &ApiKey, now: DateTime<Utc>) -> Result<(), Error> {
        if key.revoked_at.is_some() {
            return Err(Error::NotAccepted("the key was revoked"));
        }
        if key.expires_at.is_some_and(|end| end <= now) {
            return Err(Error::NotAccepted("the key has expired"));
        }
        match &key.user {
            Some(user) if self.is_disabled(&key.tenant, user).await? => {
                Err(Error::NotAccepted("the user of the key was disabled"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a user of this name was shut out; one who logs in elsewhere is not known here.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn is_disabled(&self, tenant: &str, name: &str) -> Result<bool, Error> {
        let find = query(
            "SELECT 1 FROM person WHERE tenant = $1 AND name = $2 AND disabled_at IS NOT NULL",
        );
        Ok(self.of(tenant).fetch_optional(&find.bind(tenant).bind(name)).await?.is_some())
    }

    /// Checks whether somebody who proved who they are at an earlier time could do so still, as far as that is known
    /// here: tokens of other issuers are theirs to end.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] says why not.
    pub async fn is_still(&self, who: &Principal, now: DateTime<Utc>) -> Result<(), Error> {
        match &who.proved_by {
            ProvedBy::Loopback => Ok(()),
            ProvedBy::Key { id, .. } => {
                let find = query(keys!("id = $1")).bind(*id);
                let row = self.of_all().fetch_optional(&find).await?;
                let key = row.as_ref().map(read).transpose()?;
                let key = key.ok_or(Error::NotAccepted("unknown key"))?;
                self.check_key(&key, now).await
            }
            ProvedBy::Session | ProvedBy::Token => {
                if self.is_disabled(&who.tenant, &who.user).await? {
                    Err(Error::NotAccepted("the user was disabled"))
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Tells whether there ever was a key or a user, so that authentication is wanted: revoking the last key opens nothing.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn is_anybody_known(&self) -> Result<bool, Error> {
        let look = query("SELECT 1 FROM api_key UNION ALL SELECT 1 FROM person LIMIT 1");
        Ok(self.of_all().fetch_optional(&look).await?.is_some())
    }
}

/// Makes a key as part of a transaction.
pub(crate) async fn insert(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    new: NewKey<'_>,
    now: DateTime<Utc>,
) -> Result<CreatedKey, Error> {
    let name = new.name.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err(Error::Unfit("a key name needs 1 to 100 characters".to_owned()));
    }
    let secret = Secret::draw(PREFIX)?;
    let key = ApiKey {
        id: Uuid::now_v7(),
        tenant: tenant.to_owned(),
        name: name.to_owned(),
        user: new.user.map(str::to_owned),
        made_by: new.made_by,
        scopes: new.scopes.to_vec(),
        created_at: now,
        expires_at: new.expires_at,
        revoked_at: None,
    };
    let insert = query(
        "INSERT INTO api_key (id, tenant, name, person, scopes, token, created_at, expires_at, made_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .binds((key.id, &key.tenant, &key.name, key.user.clone(), write_scopes(&key.scopes)))
    .binds((digest(PURPOSE, secret.expose()), now, key.expires_at, key.made_by));
    match transaction.execute(&insert).await {
        Ok(_) => Ok(CreatedKey { key, secret }),
        Err(error) if error.is_duplicate() => Err(Error::Taken(key.name)),
        Err(error) => Err(error.into()),
    }
}

/// Revokes a key as part of a transaction.
pub(crate) async fn revoke(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let revoke = query(
        "UPDATE api_key SET revoked_at = $3 WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL",
    )
    .binds((tenant, name, now));
    match transaction.execute(&revoke).await? {
        0 => Err(Error::Unknown { what: "key", name: name.to_owned() }),
        _ => Ok(()),
    }
}
