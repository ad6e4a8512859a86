//! Users of a tenant.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, Transaction, query};
use serde::Serialize;
use uuid::Uuid;

use crate::principal::Scope;
use crate::{Error, People, Result, secret};

/// Characters of a name at most.
const LONGEST: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    pub id: Uuid,
    pub tenant: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub created_at: DateTime<Utc>,
}

/// A new user: the name is valid, and the password is hashed.
pub struct NewUser {
    name: String,
    /// Empty for a user of an identity provider, who has no password.
    hash: String,
    scopes: Vec<Scope>,
    subject: Option<String>,
}

impl NewUser {
    /// Checks a name, and hashes a password, which takes a while and so comes before any transaction.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a name or password that cannot be used.
    pub async fn prepare(name: &str, password: &str, scopes: &[Scope]) -> Result<Self> {
        let name = fit_name(name)?;
        let hash = secret::hash(password).await?;
        Ok(Self { name, hash, scopes: scopes.to_vec(), subject: None })
    }

    pub(crate) fn of_provider(subject: String, name: String, scopes: Vec<Scope>) -> Self {
        Self { name, hash: String::new(), scopes, subject: Some(subject) }
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
    ) -> Result<User> {
        let new = NewUser::prepare(name, password, scopes).await?;
        let database = self.of(tenant);
        let mut transaction = database.begin().await?;
        let added = insert(&mut transaction, tenant, new, now).await;
        transaction.settle(added).await
    }

    /// Finds the user with a name and password; takes as long without one.
    ///
    /// # Errors
    /// [`Error::WrongPassword`].
    pub async fn check_password(&self, tenant: &str, name: &str, password: &str) -> Result<User> {
        let found = query(
            "SELECT id, name, scopes, created_at, password FROM person WHERE tenant = $1 AND name = $2 AND disabled_at IS NULL",
        )
        .bind(tenant)
        .bind(normal_name(name));
        let row = self.of(tenant).fetch_optional(&found).await?;
        let stored = row.as_ref().map(|row| row.get::<String>(4)).transpose()?;
        let stored = stored.filter(|hash| !hash.is_empty());
        if !secret::fits(password, stored).await? {
            return Err(Error::WrongPassword);
        }
        read(&row.ok_or(Error::WrongPassword)?, tenant)
    }

    pub async fn has_passwords(&self, tenant: &str) -> Result<bool> {
        let find = query(
            "SELECT 1 FROM person WHERE tenant = $1 AND password <> '' AND disabled_at IS NULL LIMIT 1",
        );
        Ok(self.of(tenant).fetch_optional(&find.bind(tenant)).await?.is_some())
    }

    /// Lists the users of a tenant by name.
    pub async fn users(&self, tenant: &str) -> Result<Vec<User>> {
        let all = query("SELECT id, name, scopes, created_at FROM person WHERE tenant = $1 AND disabled_at IS NULL ORDER BY name")
            .bind(tenant);
        let rows = self.of(tenant).fetch_all(&all).await?;
        rows.iter().map(|row| read(row, tenant)).collect()
    }
}

fn read(row: &Row, tenant: &str) -> Result<User> {
    Ok(User {
        id: row.get(0)?,
        tenant: tenant.to_owned(),
        name: row.get(1)?,
        scopes: read_scopes(&row.get::<String>(2)?),
        created_at: row.get(3)?,
    })
}

pub(crate) async fn insert(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    new: NewUser,
    now: DateTime<Utc>,
) -> Result<User> {
    let NewUser { name, hash, scopes, subject } = new;
    let tenant = tenant.to_owned();
    let user = User { id: Uuid::now_v7(), tenant, name, scopes, created_at: now };
    let insert = query(
        "INSERT INTO person (id, tenant, name, password, scopes, created_at, subject) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .binds((user.id, &user.tenant, &user.name, hash, write_scopes(&user.scopes), now, subject));
    transaction.execute(&insert).await.map_err(|error| Error::of_name(error, &user.name))?;
    Ok(user)
}

/// Finds the user whom an identity provider names, and whether they are disabled.
pub(crate) async fn by_subject(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    subject: &str,
) -> Result<Option<(User, bool)>> {
    let find = query(
        "SELECT id, name, scopes, created_at, disabled_at IS NOT NULL FROM person WHERE tenant = $1 AND subject = $2",
    );
    let row = transaction.fetch_optional(&find.binds((tenant, subject))).await?;
    row.map(|row| Ok((read(&row, tenant)?, row.get(4)?))).transpose()
}

/// Finds a user by name, and whether an identity provider names them.
///
/// # Errors
/// [`Error::Unknown`], also for a disabled user.
pub(crate) async fn by_name(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    name: &str,
) -> Result<(User, bool)> {
    let find = query(
        "SELECT id, name, scopes, created_at, subject IS NOT NULL FROM person \
         WHERE tenant = $1 AND name = $2 AND disabled_at IS NULL",
    );
    let row = transaction.fetch_optional(&find.binds((tenant, normal_name(name)))).await?;
    let row = row.ok_or_else(|| Error::Unknown { what: "user", name: name.to_owned() })?;
    Ok((read(&row, tenant)?, row.get(4)?))
}

pub(crate) async fn give_scopes(transaction: &mut Transaction<'_>, user: &User) -> Result<()> {
    let give = query("UPDATE person SET scopes = $1 WHERE id = $2");
    transaction.execute(&give.binds((write_scopes(&user.scopes), user.id))).await?;
    if user.scopes.is_empty() {
        let end = query("DELETE FROM session WHERE tenant = $1 AND person = $2");
        transaction.execute(&end.binds((&user.tenant, user.id))).await?;
    }
    Ok(())
}

/// Disables a user, and returns their name as it is stored.
pub(crate) async fn disable(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<String> {
    let stored = normal_name(name);
    let disable = query(
        "UPDATE person SET disabled_at = COALESCE(disabled_at, $3) WHERE tenant = $1 AND name = $2",
    )
    .binds((tenant, &stored, now));
    if transaction.execute(&disable).await? == 0 {
        return Err(Error::Unknown { what: "user", name: name.to_owned() });
    }
    let end = query("DELETE FROM session WHERE tenant = $1 AND person IN (SELECT id FROM person WHERE tenant = $1 AND name = $2)")
        .bind(tenant)
        .bind(&stored);
    transaction.execute(&end).await?;
    Ok(stored)
}

/// Returns a typed name as names of users are stored. Other issuers' names have no such form.
pub fn normal_name(name: &str) -> String {
    name.trim().to_lowercase()
}

pub(crate) fn fit_name(name: &str) -> Result<String> {
    let name = normal_name(name);
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
