//! Finds out who asks, and leads them to the routes that they may see.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use chrono::Duration;
use parking_lot::Mutex;
use perihelion_people::{Error, Principal, ProvedBy, Scope};
use tower_service::Service as _;

use super::Ends;
use super::credential::{CSRF_HEADER, Credential, needed_scope};
use super::issuer::Issuer;
use super::limits::{Logins, Place, Places, Rates, keeping, with_time};
use super::oidc::Provider;
use super::watch::Watches;
use super::{hosted, session, sign_on, unknown, watch};
use crate::http::Refusal;
use crate::refused_socket;
use perihelion_engine::clock;
use perihelion_runtime::Screens;
use perihelion_service::Service;
use perihelion_settings::config;

/// Maximum number of cached routes; further callers get new ones.
const KEPT: usize = 256;

pub(crate) struct Gate {
    /// The service as this process itself sees it.
    pub(super) service: Service,
    token: Option<blake3::Hash>,
    issuer: Option<Issuer>,
    pub(super) provider: Option<Provider>,
    registration: bool,
    pub(super) lasts: Duration,
    /// Whether only this machine can reach the service, so that no authentication is required while there are no users
    /// and keys.
    is_local: bool,
    /// Whether a key or a user is known; there is no way back.
    is_anybody_known: AtomicBool,
    pub(super) watches: Watches,
    rates: Rates,
    pub(super) logins: Logins,
    /// The places of open requests, if they are counted.
    open: Option<Places>,
    most_bytes: usize,
    routes: Box<dyn Fn(Service) -> Router + Send + Sync>,
    kept: Mutex<HashMap<String, Router>>,
}

/// The decision of the process of hosted graphs about a caller.
#[derive(Default)]
struct Known {
    /// The caller, if that process decided who it is.
    judged: Option<Principal>,
    /// The owner of the credential, if it was read for the decision.
    checked: Option<Principal>,
}

struct Admitted {
    seen: Service,
    credential: Option<Credential>,
    place: Option<Place>,
}

pub(super) enum AuthError {
    /// They did not prove who they are.
    Unknown(String),
    /// They did, and may not do this.
    Refused(Refusal),
}

impl From<Error> for AuthError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotAccepted(why) => Self::Unknown(why.to_owned()),
            other => Self::Refused(other.into()),
        }
    }
}

impl Gate {
    pub(crate) fn new(
        service: Service,
        settings: &config::Serve,
        routes: impl Fn(Service) -> Router + Send + Sync + 'static,
    ) -> Arc<Self> {
        let token = settings.token.as_ref();
        Arc::new(Self {
            watches: Watches::default(),
            rates: Rates::new(settings.requests_per_minute),
            logins: Logins::new(),
            open: settings.max_open_requests.map(|most| Places::new(most, u32::MAX)),
            most_bytes: settings.max_body_bytes,
            token: token.map(|token| blake3::hash(token.expose().as_bytes())),
            issuer: settings.jwt.clone().map(|jwt| Issuer::new(jwt, service.tenant())),
            provider: settings.oidc.clone().map(|oidc| Provider::new(oidc, service.tenant())),
            registration: settings.registration,
            lasts: Duration::milliseconds((settings.session_sec * 1e3) as i64),
            is_local: settings.addr.ip().is_loopback(),
            is_anybody_known: AtomicBool::new(false),
            service,
            routes: Box::new(routes),
            kept: Mutex::default(),
        })
    }

    /// Leads all requests that no route of `open` takes through the gate.
    pub(crate) fn before(self: Arc<Self>, open: Router) -> Router {
        let logins = session::routes().with_state(Arc::clone(&self));
        let open = open.merge(logins).merge(sign_on::routes().with_state(Arc::clone(&self)));
        open.fallback(move |request: Request| {
            let gate = Arc::clone(&self);
            async move { gate.pass(request).await }
        })
    }

    async fn pass(self: Arc<Self>, request: Request) -> Response {
        let (known, mut request) = match self.judged(request).await {
            Ok(judged) => judged,
            Err(refusal) => return refusal.into_response(),
        };
        let method = request.method();
        let admitted = self.admitted(method, request.uri(), request.headers(), known).await;
        let Admitted { seen, credential, place } = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return refused_socket::answer(request, *refusal).await,
        };
        let mut routes = self.routes_of(seen.clone());
        if let Some(credential) = &credential {
            request.extensions_mut().insert(Ends::new(Arc::clone(&self), credential.clone()));
        }
        if let Some(place) = &place {
            request.extensions_mut().insert(place.clone());
        }
        let is_safe = request.method().is_safe();
        let answer = async move {
            let called = routes.call(request);
            // A request that changes something runs to its end even if its client disconnects.
            let answered = if is_safe {
                called.await
            } else {
                tokio::spawn(called).await.unwrap_or_else(|error| {
                    tracing::error!(%error, "a request broke off");
                    Ok(Refusal::failed().into_response())
                })
            };
            match answered {
                Ok(response) => keeping(place, with_time(response, &seen).await),
                Err(never) => match never {},
            }
        };
        match credential {
            None => answer.await,
            Some(credential) => self.watched(credential, answer).await,
        }
    }

    /// Lets the process of hosted graphs decide about a request, unless there is nothing to decide.
    async fn judged(&self, request: Request) -> Result<(Known, Request), Refusal> {
        let graph = self.service.runtime().hosted_graph();
        let Some(graph) = graph.filter(|graph| graph.about().screens != Screens::Nothing) else {
            return Ok((Known::default(), request));
        };
        let checked = match Credential::of(request.headers()) {
            Some(credential) => self.check(&credential).await.ok(),
            None => None,
        };
        let is_known = checked.is_some();
        let graph = graph.as_ref();
        let (judged, request) =
            hosted::judged(&self.service, graph, request, is_known, self.most_bytes).await?;
        Ok((Known { judged, checked }, request))
    }

    /// Returns whether people can register: not beside another issuer, whose users have names in the same tenant.
    pub(super) fn can_register(&self) -> bool {
        self.registration && self.issuer.is_none() && !self.has_handler()
    }

    /// Returns whether the process of hosted graphs decides who may use the service.
    fn has_handler(&self) -> bool {
        let graph = self.service.runtime().hosted_graph();
        graph.is_some_and(|graph| graph.about().screens == Screens::Users)
    }

    async fn admitted(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        Known { judged, checked }: Known,
    ) -> Result<Admitted, Box<Response>> {
        if uri.path_and_query().is_some_and(|written| written.as_str().contains("%00")) {
            // Postgres keeps no such text.
            let why = "addresses must not contain the character U+0000";
            return Err(Box::new(Refusal::invalid(why).into_response()));
        }
        let known = match judged {
            Some(who) => Ok((who, None)),
            None => self.who(method, headers, checked).await,
        };
        let (who, credential) = match known {
            Ok(found) => found,
            Err(AuthError::Unknown(why)) => return Err(Box::new(unknown(why))),
            Err(AuthError::Refused(refusal)) => return Err(Box::new(refusal.into_response())),
        };
        if let Some(refused) = self.rates.refusal(&who.tenant) {
            return Err(Box::new(refused));
        }
        let place = self.open.as_ref().map(|open| open.for_request(&who.tenant)).transpose()?;
        let seen = self.service.seen_by(who);
        if let Some(scope) = needed_scope(method, uri.path()) {
            seen.permit(scope).map_err(|error| Box::new(Refusal::from(error).into_response()))?;
        }
        Ok(Admitted { seen, credential, place })
    }

    /// Answers while a credential is accepted, including streams.
    async fn watched(
        self: Arc<Self>,
        credential: Credential,
        answer: impl Future<Output = Response>,
    ) -> Response {
        let ended = watch::ended(Arc::clone(&self), credential.clone());
        let response = tokio::select! {
            biased;
            response = answer => response,
            () = ended => return unknown("the credentials are no longer accepted"),
        };
        watch::until(response, watch::ended(self, credential))
    }

    fn routes_of(&self, seen: Service) -> Router {
        let mut kept = self.kept.lock();
        let Ok(name) = serde_json::to_string(seen.who()) else { return (self.routes)(seen) };
        if let Some(routes) = kept.get(&name) {
            return routes.clone();
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        let routes = (self.routes)(seen);
        kept.insert(name, routes.clone());
        routes
    }

    /// Authenticates a request, and returns how to recognize its credential while it is answered.
    async fn who(
        &self,
        method: &Method,
        headers: &HeaderMap,
        checked: Option<Principal>,
    ) -> Result<(Principal, Option<Credential>), AuthError> {
        if self.is_open().await? {
            return Ok((self.service.who().clone(), None));
        }
        let Some(credential) = Credential::of(headers) else {
            let why = "authentication required: send an API key as x-api-key or as Authorization: Bearer, or log in";
            return Err(AuthError::Unknown(why.to_owned()));
        };
        if let (Credential::Session(cookie), false) = (&credential, method.is_safe()) {
            let who = self.by_cookie_and_header(cookie, headers).await?;
            return Ok((who, Some(credential)));
        }
        let who = match checked {
            Some(who) => who,
            None => self.check(&credential).await?,
        };
        let is_fixed = matches!(who.proved_by, ProvedBy::Loopback);
        Ok((who, (!is_fixed).then_some(credential)))
    }

    /// Returns whether no authentication is required.
    async fn is_open(&self) -> Result<bool, AuthError> {
        let has_issuer = self.issuer.is_some() || self.provider.is_some();
        let is_proved = self.token.is_some() || has_issuer || self.has_handler();
        let is_wanted = is_proved || !self.is_local;
        if is_wanted || self.is_anybody_known.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let is_known = self.service.people().is_anybody_known().await?;
        self.is_anybody_known.store(is_known, Ordering::Relaxed);
        Ok(!is_known)
    }

    pub(super) async fn check(&self, credential: &Credential) -> Result<Principal, AuthError> {
        let people = self.service.people();
        let now = clock::now();
        match credential {
            Credential::Key(key) => Ok(people.by_key(key, now).await?),
            Credential::Session(cookie) => Ok(people.by_session(cookie, None, now).await?),
            // Digests are compared, so that the time it takes says nothing of the token.
            Credential::Bearer(text) if self.token == Some(blake3::hash(text.as_bytes())) => {
                Ok(Principal { user: "token".to_owned(), ..self.service.who().clone() })
            }
            Credential::Bearer(text) => match &self.issuer {
                Some(issuer) => Ok(people.still(issuer.verify(text, now).await?, now).await?),
                None => Err(AuthError::Unknown(
                    "the credentials are not accepted: unknown key or token".to_owned(),
                )),
            },
        }
    }

    /// Finds out whose session it is, of a request that changes something: it needs the session's second secret.
    async fn by_cookie_and_header(
        &self,
        cookie: &str,
        headers: &HeaderMap,
    ) -> Result<Principal, AuthError> {
        let people = self.service.people();
        let now = clock::now();
        let given = headers.get(CSRF_HEADER).and_then(|text| text.to_str().ok());
        match people.by_session(cookie, Some(given), now).await {
            Ok(who) => Ok(who),
            Err(error @ Error::NotAccepted(why)) => {
                match people.by_session(cookie, None, now).await {
                    Ok(_) => {
                        Err(AuthError::Refused(Refusal(StatusCode::FORBIDDEN, why.to_owned())))
                    }
                    Err(_) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The scopes of users who register themselves.
pub(super) const REGISTERED: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Approve];
