//! API keys of the service: 256 random bits, shown once, stored as a hash, scoped, revocable.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Row, query};
use serde::Serialize;
use uuid::Uuid;

use crate::principal::{Principal, ProvedBy, Scope};
use crate::secret::{Secret, digest};
use crate::sign_on::NO_ROLE;
use crate::users::{normal_name, read_scopes, write_scopes};
use crate::{Change, Error, People, Result};

const DISABLED: Error = Error::NotAccepted("the user was disabled");

const PURPOSE: &str = "perihelion 2026-11 api key";

/// How every key begins, so that scanners of leaked secrets know it.
const PREFIX: &str = "ph_";

#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// Its name; unique among the active keys of the tenant.
    pub name: &'a str,
    /// The user it acts for; the key's own name for a key without a user.
    pub user: Option<&'a str>,
    /// The key that creates it, if that is a key without a user.
    pub made_by: Option<Uuid>,
    pub scopes: &'a [Scope],
    pub expires_at: Option<DateTime<Utc>>,
}

/// A key in lists: without its secret, which only its owner has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiKey {
    pub id: Uuid,
    pub tenant: String,
    pub name: String,
    pub user: Option<String>,
    /// The key that created it, if that was a key without a user; it is revoked with that key.
    pub made_by: Option<Uuid>,
    pub scopes: Vec<Scope>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    /// Whether the user is disabled, so that the key is rejected.
    pub user_disabled: bool,
}

#[derive(Clone, Debug)]
pub struct CreatedKey {
    pub key: ApiKey,
    pub secret: Secret,
}

fn read(row: &Row) -> Result<ApiKey> {
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
        user_disabled: row.get(9)?,
    })
}

/// Reads the scopes that a user has now, from three columns on; `None` for users who are unknown here.
///
/// # Errors
/// [`Error::NotAccepted`] for a disabled user, and for one who has lost all roles at the provider.
fn scopes_left(row: &Row, first: usize) -> Result<Option<Vec<Scope>>> {
    let Some(scopes) = row.get::<Option<String>>(first + 2)? else { return Ok(None) };
    if row.get(first)? {
        return Err(DISABLED);
    }
    let left = read_scopes(&scopes);
    if left.is_empty() && row.get(first + 1)? { Err(NO_ROLE) } else { Ok(Some(left)) }
}

macro_rules! keys {
    ($which:literal) => {
        concat!(
            "SELECT k.id, k.tenant, k.name, k.person, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.made_by,
                p.disabled_at IS NOT NULL, p.subject IS NOT NULL, p.scopes
             FROM api_key k LEFT JOIN person p ON p.tenant = k.tenant AND p.name = k.person WHERE ",
            $which
        )
    };
}

impl People {
    /// Lists the keys of a tenant, newest first, the revoked ones too.
    pub async fn keys(&self, tenant: &str) -> Result<Vec<ApiKey>> {
        let all = query(keys!("k.tenant = $1 ORDER BY k.created_at DESC, k.id DESC")).bind(tenant);
        let names = "SELECT name FROM person WHERE tenant = $1 AND disabled_at IS NOT NULL";
        let disabled = self.of(tenant).fetch_all(&query(names).bind(tenant)).await?;
        let disabled: Vec<String> =
            disabled.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
        let mut keys: Vec<ApiKey> =
            self.of(tenant).fetch_all(&all).await?.iter().map(read).collect::<Result<_>>()?;
        for key in &mut keys {
            // In any letter case, as each request is checked.
            let user = key.user.as_deref().map(normal_name);
            key.user_disabled = user.is_some_and(|user| disabled.contains(&user));
        }
        Ok(keys)
    }

    /// Finds who a key belongs to.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] when it is unknown, revoked or expired.
    pub async fn by_key(&self, secret: &str, now: DateTime<Utc>) -> Result<Principal> {
        if !secret.starts_with(PREFIX) || secret.len() > 100 {
            return Err(Error::NotAccepted("this is not a key of this service"));
        }
        let find = query(keys!("k.token = $1")).bind(digest(PURPOSE, secret));
        let key = self.valid_key(find, now).await?;
        Ok(Principal {
            tenant: key.tenant,
            user: key.user.clone().unwrap_or(key.name),
            scopes: key.scopes,
            proved_by: ProvedBy::Key { id: key.id, owner: key.user },
        })
    }

    async fn valid_key(&self, find: Query, now: DateTime<Utc>) -> Result<ApiKey> {
        let row = self.of_all().fetch_optional(&find).await?;
        let row = row.ok_or(Error::NotAccepted("unknown key"))?;
        let mut key = read(&row)?;
        if key.revoked_at.is_some() {
            return Err(Error::NotAccepted("the key was revoked"));
        }
        if key.expires_at.is_some_and(|end| end <= now) {
            return Err(Error::NotAccepted("the key has expired"));
        }
        let mut left = scopes_left(&row, 9)?;
        // A name in other letter case may be that of a user here, who limits the key then.
        if left.is_none()
            && let Some(user) = key.user.as_ref().filter(|user| normal_name(user) != **user)
        {
            left = self.scopes_of(&key.tenant, user).await?;
        }
        if let Some(left) = left {
            key.scopes.retain(|scope| left.contains(scope));
        }
        Ok(key)
    }

    /// Returns the scopes that a user has now; `None` for users who are unknown here.
    async fn scopes_of(&self, tenant: &str, name: &str) -> Result<Option<Vec<Scope>>> {
        let find = query(
            "SELECT disabled_at IS NOT NULL, subject IS NOT NULL, scopes FROM person WHERE tenant = $1 AND name = $2",
        );
        let row = self.of(tenant).fetch_optional(&find.binds((tenant, normal_name(name)))).await?;
        row.map_or(Ok(None), |row| scopes_left(&row, 0))
    }

    /// Returns whether a user of this name, in any letter case, was disabled; users of other issuers are unknown here.
    pub async fn is_disabled(&self, tenant: &str, name: &str) -> Result<bool> {
        let find = query(
            "SELECT 1 FROM person WHERE tenant = $1 AND name = $2 AND disabled_at IS NOT NULL",
        );
        Ok(self
            .of(tenant)
            .fetch_optional(&find.binds((tenant, normal_name(name))))
            .await?
            .is_some())
    }

    /// Returns an earlier caller with the scopes that they still have, as known here: tokens of other issuers end there.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] says why they are refused.
    pub async fn still(&self, mut who: Principal, now: DateTime<Utc>) -> Result<Principal> {
        let left = match &who.proved_by {
            ProvedBy::Loopback => None,
            ProvedBy::Key { id, .. } => {
                Some(self.valid_key(query(keys!("k.id = $1")).bind(*id), now).await?.scopes)
            }
            ProvedBy::Session => self.scopes_of(&who.tenant, &who.user).await?,
            ProvedBy::Token if self.is_disabled(&who.tenant, &who.user).await? => {
                return Err(DISABLED);
            }
            // The token has the scopes.
            ProvedBy::Token => None,
        };
        if let Some(left) = left {
            who.scopes.retain(|scope| left.contains(scope));
        }
        Ok(who)
    }

    /// Returns whether there ever was a key or a user, so that authentication is required: revoking the last key does
    /// not disable it.
    pub async fn is_anybody_known(&self) -> Result<bool> {
        let look = query("SELECT 1 FROM api_key UNION ALL SELECT 1 FROM person LIMIT 1");
        Ok(self.of_all().fetch_optional(&look).await?.is_some())
    }
}

impl Change<'_> {
    /// Makes a key of the tenant; its secret is returned here and nowhere else.
    ///
    /// # Errors
    /// [`Error::Taken`] when a key of this name is in force, [`Error::Unfit`] for an empty or long name.
    pub async fn create_key(&mut self, new: NewKey<'_>) -> Result<CreatedKey> {
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > 100 {
            return Err(Error::Unfit("a key name needs 1 to 100 characters".to_owned()));
        }
        let secret = Secret::draw(PREFIX)?;
        let key = ApiKey {
            id: Uuid::now_v7(),
            tenant: self.tenant.to_owned(),
            name: name.to_owned(),
            user: new.user.map(str::to_owned),
            made_by: new.made_by,
            scopes: new.scopes.to_vec(),
            created_at: self.now,
            expires_at: new.expires_at,
            revoked_at: None,
            user_disabled: false,
        };
        let insert = query(
            "INSERT INTO api_key (id, tenant, name, person, scopes, token, created_at, expires_at, made_by) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .binds((key.id, &key.tenant, &key.name, key.user.clone(), write_scopes(&key.scopes)))
        .binds((digest(PURPOSE, secret.expose()), self.now, key.expires_at, key.made_by));
        let inserted = self.transaction.execute(&insert).await;
        inserted.map_err(|error| Error::of_name(error, &key.name))?;
        self.note("key.created", &key.name).await?;
        Ok(CreatedKey { key, secret })
    }

    /// Revokes a key by its name, and the keys that it made; from its next check on, each is rejected.
    ///
    /// # Errors
    /// [`Error::Unknown`] when no key of this name is in force.
    pub async fn revoke_key(&mut self, name: &str) -> Result<()> {
        let revoke = query(
            "WITH RECURSIVE made (id) AS (SELECT id FROM api_key WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL \
                UNION SELECT k.id FROM api_key k JOIN made ON k.made_by = made.id WHERE k.tenant = $1) \
             UPDATE api_key SET revoked_at = $3 WHERE revoked_at IS NULL AND id IN (SELECT id FROM made)",
        );
        let revoke = revoke.binds((self.tenant, name, self.now));
        match self.transaction.execute(&revoke).await? {
            0 => Err(Error::Unknown { what: "key", name: name.to_owned() }),
            _ => self.note("key.revoked", name).await,
        }
    }
}
