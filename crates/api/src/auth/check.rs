//! Tries the issuers of the settings before a person logs in.

use perihelion_http::reach::cause;

use super::issuer::{Issuer, shown};
use super::oidc::{Failure, Provider};
use perihelion_settings::config::Serve;

/// Whether the documents of an issuer can be used.
pub struct IssuerCheck {
    /// The table of the settings.
    pub table: &'static str,
    pub issuer: String,
    /// `Err` names the document and the reason.
    pub outcome: Result<(), String>,
}

/// Reads the configuration and keys of each issuer of the settings, as a login or a token would; each read ends within
/// five seconds.
pub async fn check_issuers(settings: &Serve) -> Vec<IssuerCheck> {
    let mut checks = Vec::new();
    if let Some(oidc) = &settings.oidc {
        let outcome = match Provider::new(oidc.clone(), "").check().await {
            Ok(()) => Ok(()),
            Err(Failure::Provider(error)) => Err(text(error.as_ref())),
            Err(other) => Err(other.word().to_owned()),
        };
        let issuer = shown(oidc.issuer.as_str());
        checks.push(IssuerCheck { table: "serve.oidc", issuer, outcome });
    }
    if let Some(jwt) = &settings.jwt {
        let read = Issuer::new(jwt.clone(), "").check().await;
        let outcome = read.map_err(|error| text(&error));
        checks.push(IssuerCheck { table: "serve.jwt", issuer: shown(&jwt.issuer), outcome });
    }
    checks
}

/// Returns an error with its innermost cause.
fn text(error: &(dyn std::error::Error + 'static)) -> String {
    let text = error.to_string();
    let cause = cause(error);
    if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
}
