//! Sessions: the credentials of a browser after a login.

use chrono::{DateTime, Duration, Utc};
use perihelion_database::query;

use crate::principal::{Principal, ProvedBy};
use crate::secret::{Secret, digest};
use crate::users::{User, read_scopes};
use crate::{Error, People, Result};

const PURPOSE: &str = "perihelion 2026-11 session cookie";

#[derive(Clone, Debug)]
pub struct Session {
    /// Goes into a cookie that scripts cannot read.
    pub cookie: Secret,
    /// Required with every request that changes something, in a header that no other site can set.
    pub csrf: Secret,
    pub expires_at: DateTime<Utc>,
}

impl People {
    pub async fn begin_session(
        &self,
        user: &User,
        lasts: Duration,
        now: DateTime<Utc>,
    ) -> Result<Session> {
        let session = Session {
            cookie: Secret::draw("phs_")?,
            csrf: Secret::draw("phc_")?,
            expires_at: now + lasts,
        };
        let clean = query("DELETE FROM session WHERE tenant = $1 AND expires_at < $2");
        let clean = clean.binds((&user.tenant, now));
        self.of(&user.tenant).execute(&clean).await?;
        let insert = query(
            "INSERT INTO session (token, tenant, person, csrf, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .binds((digest(PURPOSE, session.cookie.expose()), &user.tenant, user.id))
        .binds((digest(PURPOSE, session.csrf.expose()), now, session.expires_at));
        self.of(&user.tenant).execute(&insert).await?;
        Ok(session)
    }

    /// Finds the owner of a cookie; `csrf` is given if the request changes something.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] when the session is unknown or over, or the second secret is missing or wrong.
    pub async fn by_session(
        &self,
        cookie: &str,
        csrf: Option<Option<&str>>,
        now: DateTime<Utc>,
    ) -> Result<Principal> {
        let find = query(
            "SELECT session.tenant, person.name, person.scopes, session.csrf, session.expires_at FROM session \
             JOIN person ON person.id = session.person WHERE session.token = $1 AND person.disabled_at IS NULL",
        )
        .bind(digest(PURPOSE, cookie));
        let row = self.of_all().fetch_optional(&find).await?;
        let row = row.ok_or(Error::NotAccepted("unknown session; log in"))?;
        if row.get::<DateTime<Utc>>(4)? <= now {
            return Err(Error::NotAccepted("the session has expired; log in"));
        }
        if let Some(given) = csrf {
            let expected: Vec<u8> = row.get(3)?;
            // Both are hashes of secrets, so the duration of a comparison reveals nothing.
            if given.is_none_or(|given| digest(PURPOSE, given) != expected) {
                return Err(Error::NotAccepted(
                    "the header x-csrf-token is missing or belongs to another session",
                ));
            }
        }
        Ok(Principal {
            tenant: row.get(0)?,
            user: row.get(1)?,
            scopes: read_scopes(&row.get::<String>(2)?),
            proved_by: ProvedBy::Session,
        })
    }

    /// Ends a session, and returns whether an identity provider had authenticated its user.
    pub async fn end_session(&self, cookie: &str) -> Result<bool> {
        let end = query(
            "DELETE FROM session WHERE token = $1 RETURNING EXISTS \
             (SELECT 1 FROM person WHERE person.id = session.person AND person.subject IS NOT NULL)",
        );
        let ended = self.of_all().execute_returning(&end.bind(digest(PURPOSE, cookie))).await?;
        Ok(ended.map(|row| row.get(0)).transpose()?.unwrap_or(false))
    }
}
