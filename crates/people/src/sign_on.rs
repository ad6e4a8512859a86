//! Single sign-on: users whom an OpenID provider names in its ID tokens.
//!
//! Invariant: a user is recognized by issuer and subject alone. A provider that gives a person the name of another user
//! does not give them that user's account. Deliberately absent: the provider's endpoints.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest as hash};
use serde_json::{Map, Value};

use crate::secret::{Secret, digest};
use crate::users::{self, NewUser, User};
use crate::{Error, People, Scope};

const STATE: &str = "perihelion 2026-11 OpenID state";
const NONCE: &str = "perihelion 2026-11 OpenID nonce";
const VERIFIER: &str = "perihelion 2026-11 OpenID code verifier";

pub(crate) const NO_ROLE: Error =
    Error::NotAccepted("the user has none of the roles that may log in");

/// How the secret of a login begins.
const PREFIX: &str = "phl_";

/// A login that a browser began: one secret in its cookie, of which everything else is made.
#[derive(Clone, Debug)]
pub struct LoginAttempt(Secret);

impl LoginAttempt {
    pub fn begin() -> Result<Self, Error> {
        Ok(Self(Secret::draw(PREFIX)?))
    }

    pub fn of_cookie(cookie: &str) -> Option<Self> {
        let is_one = cookie.starts_with(PREFIX) && cookie.len() > 40;
        is_one.then(|| Self(Secret::from_text(cookie)))
    }

    pub fn cookie(&self) -> &str {
        self.0.expose()
    }

    pub fn state(&self) -> String {
        self.made_for(STATE)
    }

    /// Returns the `nonce` that the ID token must have.
    pub fn nonce(&self) -> String {
        self.made_for(NONCE)
    }

    /// Returns the code verifier (RFC 7636), which only the token endpoint gets.
    pub fn verifier(&self) -> String {
        self.made_for(VERIFIER)
    }

    /// Returns the code challenge for `S256`.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(hash(&SHA256, self.verifier().as_bytes()))
    }

    fn made_for(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(digest(purpose, self.0.expose()))
    }
}

/// How claims of an ID token become a user.
#[derive(Clone, Debug)]
pub struct IdentityRules {
    pub client_id: String,
    pub user_claim: String,
    /// The claim with the roles: a list, or words separated by spaces.
    pub roles_claim: Option<String>,
    pub roles: BTreeMap<String, Vec<Scope>>,
    /// The scopes of users without such a role; without any, they are refused.
    pub default_scopes: Vec<Scope>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The issuer and its own ID of the user.
    pub subject: String,
    pub name: String,
    /// Without any, the user may not log in.
    pub scopes: Vec<Scope>,
}

impl IdentityRules {
    /// Reads the claims of a verified ID token that answers a login.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] for the token of another login or client, and for a name that is not verified.
    pub fn identity(&self, claims: &Map<String, Value>, nonce: &str) -> Result<Identity, Error> {
        let text =
            |name: &str| claims.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        if text("nonce") != Some(nonce) {
            return Err(Error::NotAccepted("the ID token belongs to another login"));
        }
        let has_others =
            claims.get("aud").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
        let party = text("azp").or((!has_others).then_some(&self.client_id));
        if party != Some(&self.client_id) {
            return Err(Error::NotAccepted("the ID token was issued to another client"));
        }
        if self.user_claim == "email" && claims.get("email_verified") == Some(&Value::Bool(false)) {
            return Err(Error::NotAccepted("the provider has not verified the email address"));
        }
        let (Some(issuer), Some(subject)) = (text("iss"), text("sub")) else {
            return Err(Error::NotAccepted("the ID token has no subject"));
        };
        let name = text(&self.user_claim);
        let name = name.ok_or(Error::NotAccepted("the ID token has no user name"))?;
        let scopes = self.scopes(claims);
        let subject = format!("{issuer} {subject}");
        Ok(Identity { subject, name: users::fit_name(name)?, scopes })
    }

    fn scopes(&self, claims: &Map<String, Value>) -> Vec<Scope> {
        let roles: Vec<&str> = match self.roles_claim.as_ref().and_then(|name| claims.get(name)) {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => text.split_whitespace().collect(),
            _ => Vec::new(),
        };
        let mut scopes: Vec<Scope> =
            roles.iter().filter_map(|role| self.roles.get(*role)).flatten().copied().collect();
        if scopes.is_empty() {
            scopes.clone_from(&self.default_scopes);
        }
        scopes.sort();
        scopes.dedup();
        scopes
    }
}

impl People {
    /// Finds the user whom a provider names, with the scopes of their present roles; the first time, adds them.
    ///
    /// # Errors
    /// [`Error::NotAccepted`] for a disabled user and for one without a role, who loses all sessions and scopes;
    /// [`Error::Taken`] if another user has the name.
    pub async fn signed_on(
        &self,
        tenant: &str,
        identity: Identity,
        now: DateTime<Utc>,
    ) -> Result<User, Error> {
        match self.sign_on(tenant, identity.clone(), now).await {
            // Perhaps by the same user, who has begun two logins.
            Err(Error::Taken(_)) => self.sign_on(tenant, identity, now).await,
            other => other,
        }
    }

    async fn sign_on(
        &self,
        tenant: &str,
        identity: Identity,
        now: DateTime<Utc>,
    ) -> Result<User, Error> {
        let actor = identity.name.clone();
        let user = self.change(tenant, &actor, now, async |change| {
            let Identity { subject, name, scopes } = identity;
            let Some((known, is_disabled)) = change.user_of_subject(&subject).await? else {
                if scopes.is_empty() {
                    return Err(NO_ROLE);
                }
                return change.add_user(NewUser::of_provider(subject, name, scopes)).await;
            };
            if is_disabled {
                return Err(Error::NotAccepted("the user is disabled"));
            }
            if known.scopes == scopes {
                return Ok(known);
            }
            change.give_scopes(User { scopes, ..known }).await
        });
        // After the change, so that the loss of the roles is stored.
        user.await.and_then(|user| if user.scopes.is_empty() { Err(NO_ROLE) } else { Ok(user) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> IdentityRules {
        IdentityRules {
            client_id: "us".into(),
            user_claim: "email".into(),
            roles_claim: Some("groups".into()),
            roles: [("ops".to_owned(), vec![Scope::Manage, Scope::Read])].into(),
            default_scopes: vec![Scope::Read],
        }
    }

    fn claims(more: Value) -> Map<String, Value> {
        let mut all = json!({ "iss": "https://id", "sub": "1", "aud": "us", "nonce": "n", "email": "Ann@x.org" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.as_object().unwrap().clone()
    }

    #[test]
    fn roles_of_the_provider_give_scopes() {
        let scopes = |more| rules().identity(&claims(more), "n").map(|one| one.scopes).ok();
        assert_eq!(scopes(json!({})), Some(vec![Scope::Read]));
        assert_eq!(
            scopes(json!({ "groups": ["x", "ops"] })),
            Some(vec![Scope::Read, Scope::Manage])
        );
        assert_eq!(scopes(json!({ "groups": "ops x" })), Some(vec![Scope::Read, Scope::Manage]));
        let without = IdentityRules { default_scopes: Vec::new(), ..rules() };
        assert_eq!(without.identity(&claims(json!({ "groups": ["x"] })), "n").unwrap().scopes, []);
    }

    #[test]
    fn an_id_token_of_another_login_or_client_is_refused() {
        let identity = rules().identity(&claims(json!({})), "n").unwrap();
        assert_eq!((&*identity.subject, &*identity.name), ("https://id 1", "ann@x.org"));
        for (wrong, nonce) in [
            (json!({}), "m"),
            (json!({ "nonce": null }), "n"),
            (json!({ "nonce": "" }), ""),
            (json!({ "aud": ["us", "them"] }), "n"),
            (json!({ "azp": "them" }), "n"),
            (json!({ "email_verified": false }), "n"),
            (json!({ "email": null }), "n"),
            (json!({ "email": "no names with spaces" }), "n"),
        ] {
            assert!(rules().identity(&claims(wrong.clone()), nonce).is_err(), "{wrong}");
        }
        let both = json!({ "aud": ["us", "them"], "azp": "us" });
        assert!(rules().identity(&claims(both), "n").is_ok());
    }

    #[test]
    fn everything_of_a_login_is_made_of_its_cookie_and_nothing_gives_it_away() {
        let login = LoginAttempt::begin().unwrap();
        let again = LoginAttempt::of_cookie(login.cookie()).unwrap();
        let parts =
            |one: &LoginAttempt| [one.state(), one.nonce(), one.verifier(), one.challenge()];
        assert_eq!(parts(&login), parts(&again));
        let all: std::collections::BTreeSet<String> = parts(&login).into();
        assert_eq!(all.len(), 4);
        assert!(!format!("{login:?}").contains(login.cookie()));
        assert!(login.verifier().len() >= 43, "RFC 7636");
        for none in ["", "phl_", "phs_0123456789012345678901234567890123456789012"] {
            assert!(LoginAttempt::of_cookie(none).is_none(), "{none}");
        }
    }
}
