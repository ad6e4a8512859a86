//! Users of a tenant.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, Transaction, query};
use serde::Serialize;
use uuid::Uuid;

use crate::principal::Scope;
use crate::{Error, People, secret};

/// Characters of a name at most.
const LONGEST: usize = 64;

/// Somebody who can log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    pub id: Uuid,
    pub tenant: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub created_at: DateTime<Utc>,
}

/// Somebody who is to be added: the name fits, and the password is hashed already.
pub struct NewUser {
    name: String,
    hash: String,
    scopes: Vec<Scope>,
}

impl NewUser {
    /// Checks a name, and hashes a password, which takes a while and so comes before any transaction.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a name or password that cannot be used.
    pub async fn prepare(name: &str, password: &str, scopes: &[Scope]) -> Result<Self, Error> {
        let name = fit_name(name)?;
        let hash = secret::hash(password).await?;
        Ok(Self { name, hash, scopes: scopes.to_vec() })
    }
}

impl People {
    /// Registers a user.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a name or password that cannot be used, [`Error::Taken`].
    pub async fn register(
        &self,
        tenant: &str,
        name: &str,
        password: &str,
        scopes: &[Scope],
        now: DateTime<Utc>,
    ) -> Result<User, Error> {
        let new = NewUser::prepare(name, password, scopes).await?;
        let database = self.of(tenant);
        let mut transaction = database.begin().await?;
        let added = insert(&mut transaction, tenant, new, now).await;
        transaction.settle(added).await
    }

    /// Finds the user whom name and password belong to; takes as long when there is none.
    ///
    /// # Errors
    /// [`Error::WrongPassword`].
    pub async fn check_password(
        &self,
        tenant: &str,
        name: &str,
        password: &str,
    ) -> Result<User, Error> {
        let found = query(
            "SELECT id, name, scopes, created_at, password FROM person WHERE tenant = $1 AND name = $2 AND disabled_at IS NULL",
        )
        .bind(tenant)
        .bind(name.trim().to_lowercase());
        let row = self.of(tenant).fetch_optional(&found).await?;
        let stored = row.as_ref().map(|row| row.get::<String>(4)).transpose()?;
        if !secret::fits(password, stored).await? {
            return Err(Error::WrongPassword);
        }
        read(&row.ok_or(Error::WrongPassword)?, tenant)
    }

    /// Lists the users of a tenant by name.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn users(&self, tenant: &str) -> Result<Vec<User>, Error> {
        let all = query("SELECT id, name, scopes, created_at FROM person WHERE tenant = $1 AND disabled_at IS NULL ORDER BY name")
            .bind(tenant);
        let rows = self.of(tenant).fetch_all(&all).await?;
        rows.iter().map(|row| read(row, tenant)).collect()
    }
}

fn read(row: &Row, tenant: &str) -> Result<User, Error> {
    Ok(User {
        id: row.get(0)?,
        tenant: tenant.to_owned(),
        name: row.get(1)?,
        scopes: read_scopes(&row.get::<String>(2)?),
        created_at: row.get(3)?,
    })
}

/// Adds a user as part of a transaction.
pub(crate) async fn insert(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    new: NewUser,
    now: DateTime<Utc>,
) -> Result<User, Error> {
    let NewUser { name, hash, scopes } = new;
    let tenant = tenant.to_owned();
    let user = User { id: Uuid::now_v7(), tenant, name, scopes, created_at: now };
    let insert = query(
        "INSERT INTO person (id, tenant, name, password, scopes, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .binds((user.id, &user.tenant, &user.name, hash, write_scopes(&user.scopes), now));
    match transaction.execute(&insert).await {
        Ok(_) => Ok(user),
        Err(error) if error.is_duplicate() => Err(Error::Taken(user.name)),
        Err(error) => Err(error.into()),
    }
}

/// Shuts a user out as part of a transaction.
pub(crate) async fn disable(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let disable = query(
        "UPDATE person SET disabled_at = COALESCE(disabled_at, $3) WHERE tenant = $1 AND name = $2",
    )
    .binds((tenant, name, now));
    if transaction.execute(&disable).await? == 0 {
        return Err(Error::Unknown { what: "user", name: name.to_owned() });
    }
    let end = query("DELETE FROM session WHERE tenant = $1 AND person IN (SELECT id FROM person WHERE tenant = $1 AND name = $2)")
        .bind(tenant)
        .bind(name);
    transaction.execute(&end).await?;
    Ok(())
}

/// Checks a name and brings it into the form that it is kept in.
fn fit_name(name: &str) -> Result<String, Error> {
    let name = name.trim().to_lowercase();
    let fits = |c: char| c.is_alphanumeric() || "._-@+".contains(c);
    if name.is_empty() || name.chars().count() > LONGEST || !name.chars().all(fits) {
        return Err(Error::Unfit(format!(
            "a user name needs 1 to {LONGEST} letters, digits, or any of . _ - @ +"
        )));
    }
    Ok(name)
}

pub(crate) fn write_scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn read_scopes(text: &str) -> Vec<Scope> {
    text.split_whitespace().filter_map(Scope::from_name).collect()
}
