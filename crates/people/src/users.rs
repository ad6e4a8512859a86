//! Users of a tenant.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::principal::Scope;
use crate::{Change, Error, People, Result, secret};

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
    /// Registers a user, on their own behalf.
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
        let actor = new.name.clone();
        self.change(tenant, &actor, now, async |change| change.add_user(new).await).await
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

impl Change<'_> {
    /// Adds a user, as [`People::register`] does.
    ///
    /// # Errors
    /// [`Error::Taken`].
    pub async fn add_user(&mut self, new: NewUser) -> Result<User> {
        let NewUser { name, hash, scopes, subject } = new;
        let tenant = self.tenant.to_owned();
        let user = User { id: Uuid::now_v7(), tenant, name, scopes, created_at: self.now };
        let insert = query(
            "INSERT INTO person (id, tenant, name, password, scopes, created_at, subject) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        let scopes = write_scopes(&user.scopes);
        let insert =
            insert.binds((user.id, self.tenant, &user.name, hash, scopes, self.now, subject));
        let inserted = self.transaction.execute(&insert).await;
        inserted.map_err(|error| Error::of_name(error, &user.name))?;
        self.note("user.added", &user.name).await?;
        Ok(user)
    }

    /// Finds the user whom an identity provider names, and whether they are disabled.
    pub(crate) async fn user_of_subject(&mut self, subject: &str) -> Result<Option<(User, bool)>> {
        let find = query(
            "SELECT id, name, scopes, created_at, disabled_at IS NOT NULL FROM person WHERE tenant = $1 AND subject = $2",
        );
        let row = self.transaction.fetch_optional(&find.binds((self.tenant, subject))).await?;
        row.map(|row| Ok((read(&row, self.tenant)?, row.get(4)?))).transpose()
    }

    /// Gives a user other scopes; without any, all sessions end.
    pub(crate) async fn give_scopes(&mut self, user: User) -> Result<User> {
        let give = query("UPDATE person SET scopes = $1 WHERE id = $2");
        self.transaction.execute(&give.binds((write_scopes(&user.scopes), user.id))).await?;
        if user.scopes.is_empty() {
            let end = query("DELETE FROM session WHERE tenant = $1 AND person = $2");
            self.transaction.execute(&end.binds((&user.tenant, user.id))).await?;
        }
        let details = json!({ "scopes": user.scopes });
        self.note_details("user.scopes_changed", &user.name, details).await?;
        Ok(user)
    }

    /// Changes the scopes of a user by name; sessions and keys have at most these from their next check on.
    ///
    /// # Errors
    /// [`Error::Unknown`], also for a disabled user; [`Error::Unfit`] without scopes, and for a user whose scopes come
    /// from an identity provider.
    pub async fn change_scopes(&mut self, name: &str, scopes: &[Scope]) -> Result<User> {
        if scopes.is_empty() {
            let why = "a user needs at least one scope; disable the user to remove all access";
            return Err(Error::Unfit(why.to_owned()));
        }
        let find = query(
            "SELECT id, name, scopes, created_at, subject IS NOT NULL FROM person \
             WHERE tenant = $1 AND name = $2 AND disabled_at IS NULL",
        );
        let find = find.binds((self.tenant, normal_name(name)));
        let row = self.transaction.fetch_optional(&find).await?;
        let row = row.ok_or_else(|| Error::Unknown { what: "user", name: name.to_owned() })?;
        if row.get(4)? {
            let why =
                "the scopes of this user come from the identity provider; change the roles there";
            return Err(Error::Unfit(format!("{why}: {name}")));
        }
        let user = read(&row, self.tenant)?;
        self.give_scopes(User { scopes: scopes.to_vec(), ..user }).await
    }

    /// Disables a user, with all sessions, and returns the stored name; it stays in use, so that no other person gets it.
    ///
    /// A disabled user stays so, since the time of the first call.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub async fn disable_user(&mut self, name: &str) -> Result<String> {
        let stored = normal_name(name);
        let disable = query(
            "UPDATE person SET disabled_at = COALESCE(disabled_at, $3) WHERE tenant = $1 AND name = $2",
        );
        let disable = disable.binds((self.tenant, &stored, self.now));
        if self.transaction.execute(&disable).await? == 0 {
            return Err(Error::Unknown { what: "user", name: name.to_owned() });
        }
        let end = query(
            "DELETE FROM session WHERE tenant = $1 AND person IN (SELECT id FROM person WHERE tenant = $1 AND name = $2)",
        );
        self.transaction.execute(&end.binds((self.tenant, &stored))).await?;
        self.note("user.disabled", &stored).await?;
        Ok(stored)
    }
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
