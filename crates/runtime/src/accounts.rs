//! Users and keys of a tenant, for their administrator.

use perihelion_database::Database;
use perihelion_people::{
    ApiKey, Change, CreatedKey, NewKey, NewUser, People, Scope, User, normal_name,
};
use perihelion_service_rows::Kept;

use super::Error;
use perihelion_engine::{checkpoint, clock};
use perihelion_settings::config::{DatabaseUrl, Settings};

/// The users and keys of the settings' database; each change is in the audit log, or has not happened.
pub struct Accounts {
    people: People,
    tenant: String,
    actor: String,
}

impl Accounts {
    /// Returns the users and keys of a tenant, which `actor` looks after.
    pub fn new(people: People, tenant: &str, actor: &str) -> Self {
        Self { people, tenant: tenant.to_owned(), actor: actor.to_owned() }
    }

    /// Opens the database of the settings for [`Accounts::new`].
    ///
    /// # Errors
    /// [`Error::InMemory`] when the threads are in memory alone, [`Error::Database`] when the database cannot be opened.
    pub async fn open(settings: &Settings, tenant: &str, actor: &str) -> Result<Self, Error> {
        let people = People::new(open_database(settings).await?);
        Ok(Self::new(people, tenant, actor))
    }

    /// Opens the database as [`Accounts::open`] does, but creates none: a missing default one counts as empty.
    pub async fn open_to_read(
        settings: &Settings,
        tenant: &str,
        actor: &str,
    ) -> Result<Self, Error> {
        if database_exists(settings)? {
            return Self::open(settings, tenant, actor).await;
        }
        let empty = Database::open(DatabaseUrl::in_memory().expose()).await?;
        Ok(Self::new(People::new(empty), tenant, actor))
    }

    /// Lists the keys, newest first, the revoked ones too.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, Error> {
        Ok(self.people.keys(&self.tenant).await?)
    }

    /// Makes a key of the tenant; its secret is returned here and nowhere else.
    ///
    /// # Errors
    /// [`Error::People`] if the name exists or is invalid.
    pub async fn create_key(&self, new: NewKey<'_>) -> Result<CreatedKey, Error> {
        self.change(async |change| change.create_key(new).await).await
    }

    /// Revokes a key, which is rejected from now on.
    ///
    /// # Errors
    /// [`Error::People`] when no key of this name is in force.
    pub async fn revoke_key(&self, name: &str) -> Result<(), Error> {
        self.change(async |change| change.revoke_key(name).await).await
    }

    /// Lists the users by name, without disabled ones.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        Ok(self.people.users(&self.tenant).await?)
    }

    /// Returns the user's name that a person means: that of a user here in any letter case, or another issuer's as typed.
    ///
    /// # Errors
    /// [`Error::People`] for a disabled user, whose keys are rejected.
    pub async fn user_meant(&self, typed: &str) -> Result<String, Error> {
        let name = normal_name(typed);
        if self.people.is_disabled(&self.tenant, &name).await? {
            let why = "the user is disabled, so the key would be rejected; name another user";
            return Err(perihelion_people::Error::Unfit(format!("{why}: {name}")).into());
        }
        let is_here = self.users().await?.iter().any(|user| user.name == name);
        Ok(if is_here { name } else { typed.trim().to_owned() })
    }

    /// Adds a user who can log in with a password.
    ///
    /// # Errors
    /// [`Error::People`] if the name exists, or if name or password is invalid.
    pub async fn add_user(
        &self,
        name: &str,
        password: &str,
        scopes: &[Scope],
    ) -> Result<User, Error> {
        let new = NewUser::prepare(name, password, scopes).await?;
        self.change(async |change| change.add_user(new).await).await
    }

    /// Changes the scopes of a user.
    ///
    /// # Errors
    /// [`Error::People`] when there is no user of this name, without scopes, and for a user of an identity provider.
    pub async fn change_scopes(&self, name: &str, scopes: &[Scope]) -> Result<User, Error> {
        self.change(async |change| change.change_scopes(name, scopes).await).await
    }

    /// Shuts a user out: ends their sessions and the runs of their threads, all in one transaction. Returns the name.
    ///
    /// A repeated call ends later sessions, too.
    ///
    /// # Errors
    /// [`Error::People`] when there is no user of this name.
    pub async fn disable_user(&self, name: &str) -> Result<String, Error> {
        let Self { people, tenant, actor, .. } = self;
        let now = clock::now();
        let disabled = people.change(tenant, actor, now, async |change| {
            let name = change.disable_user(name).await?;
            Kept::end_runs_of_user(change.transaction(), tenant, &name, now).await?;
            Ok(name)
        });
        disabled.await
    }

    async fn change<T>(
        &self,
        work: impl AsyncFnOnce(&mut Change<'_>) -> Result<T, perihelion_people::Error>,
    ) -> Result<T, Error> {
        Ok(self.people.change(&self.tenant, &self.actor, clock::now(), work).await?)
    }

    pub async fn close(self) {
        self.people.close().await;
    }
}

/// Returns whether callers of a service on this database must prove who they are.
pub async fn is_anybody_known(settings: &Settings) -> Result<bool, Error> {
    let database = open_database(settings).await?;
    let known = People::new(database.clone()).is_anybody_known().await;
    database.close().await;
    Ok(known?)
}

/// Returns settings that create no database: an empty one in memory takes the place of a missing default one.
pub fn to_read(mut settings: Settings) -> Result<Settings, Error> {
    if !database_exists(&settings)? {
        settings.store.database = DatabaseUrl::in_memory();
    }
    Ok(settings)
}

/// Returns whether the database of the settings exists.
///
/// A missing default database counts as empty; any other missing one is a mistyped name.
///
/// # Errors
/// [`checkpoint::Error::NoDatabase`] for a missing one that is not the default.
pub fn database_exists(settings: &Settings) -> Result<bool, Error> {
    let url = settings.store.database.expose();
    let exists = checkpoint::is_there(url).map_err(checkpoint::Error::from)?;
    if !exists && settings.store.database != DatabaseUrl::in_data_directory() {
        let url = checkpoint::redact_url(url);
        return Err(checkpoint::Error::NoDatabase { url }.into());
    }
    Ok(exists)
}

/// Opens the database of the settings, which is to outlive the program.
pub(super) async fn open_database(settings: &Settings) -> Result<Database, Error> {
    let url = settings.store.database.expose();
    if url.starts_with("memory:") {
        return Err(Error::InMemory);
    }
    Ok(Database::open(url).await?)
}
