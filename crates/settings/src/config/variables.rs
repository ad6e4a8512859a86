//! The environment variables that are this program's own, so that a mistyped one does not go unseen.

use super::models::{RoleSettings, Roles};
use super::settings::Settings;
use super::strict::{Error, suggestion};

const PREFIX: &str = "PERIHELION_";

/// Variables that are read elsewhere than in the settings: by bundled servers, and for the settings themselves.
const OTHERS: &str = "
    PERIHELION_ANALYSIS_CORPORA PERIHELION_API_BASE_URL PERIHELION_API_KEY PERIHELION_API_PASSWORD
    PERIHELION_API_TOKEN PERIHELION_API_TOKEN_FILE PERIHELION_API_USERNAME PERIHELION_CONFIG
    PERIHELION_DOCUMENTS_PARSER_API_KEY PERIHELION_EMBEDDINGS_API_KEY PERIHELION_MAIL_IMAP
    PERIHELION_MAIL_JMAP PERIHELION_MAIL_PASSWORD PERIHELION_MAIL_SMTP PERIHELION_MAIL_TOKEN
    PERIHELION_MAIL_USER PERIHELION_MCP_PROCESS PERIHELION_SQL_DATABASE PERIHELION_SQL_TENANT
    PERIHELION_URL PERIHELION_WEB_SEARCH_KEY PERIHELION_WEB_SEARCH_URL
";

/// The prefix of the variables of agents with their own settings; their names are only in the settings file.
const AGENTS: &str = "PERIHELION_MODELS_AGENTS_";

/// Rejects the first variable with this program's prefix that does not exist; `texts` are the files in which the user's
/// own variables can be named.
///
/// # Errors
/// [`Error::UnknownVariable`] with the nearest existing one.
pub fn check(names: impl Iterator<Item = String>, texts: &[String]) -> Result<(), Error> {
    let mut names: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Ok(());
    }
    let known = known();
    let is_fine = |name: &String| {
        known.contains(name)
            || name.starts_with(AGENTS)
            || is_of_a_cluster(name)
            || texts.iter().any(|text| text.contains(name.as_str()))
    };
    let Some(variable) = names.iter().find(|name| !is_fine(name)) else { return Ok(()) };
    let hint = suggestion(variable, known.iter().map(String::as_str)).unwrap_or_else(|| {
        "; unset it, or rename it: names that begin with PERIHELION_ are this program's".to_owned()
    });
    Err(Error::UnknownVariable { variable: variable.clone(), hint })
}

fn known() -> Vec<String> {
    let settings = Settings::keys().map(|key| key.variable.to_owned());
    let roles = Roles::NAMES.iter().flat_map(|role| {
        RoleSettings::KEYS
            .iter()
            .map(move |key| format!("{PREFIX}MODELS_ROLES_{role}_{key}").to_uppercase())
    });
    settings.chain(roles).chain(OTHERS.split_whitespace().map(str::to_owned)).collect()
}

/// Returns whether Kubernetes sets such a variable in every container for a service that is named after the program.
fn is_of_a_cluster(name: &str) -> bool {
    let ends = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"];
    ends.iter().any(|end| name.ends_with(end))
        || ["_SERVICE_PORT_", "_PORT_"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(names: &[&str], text: &str) -> Result<(), Error> {
        check(names.iter().map(|name| (*name).to_owned()), &[text.to_owned()])
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_nearest_one() {
        let error = checked(&["PATH", "PERIHELION_LIMIT_MAX_STEPS"], "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown environment variable: PERIHELION_LIMIT_MAX_STEPS; did you mean PERIHELION_LIMITS_MAX_STEPS?"
        );
        let roles = ["PERIHELION_MODELS_ROLES_QA_URL", "PERIHELION_LOG", "PERIHELION_SQL_DATABASE"];
        checked(&roles, "").unwrap();
    }

    /// Users can set every variable that the program's own code names.
    #[test]
    fn every_variable_that_the_code_reads_is_known() {
        let known = known();
        let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut directories = vec![root.join("src"), root.join("crates")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let is_code = path.extension().is_some_and(|extension| extension == "rs")
                    && !path.ends_with("config/variables.rs")
                    && !path.to_string_lossy().contains("test");
                let text =
                    if is_code { std::fs::read_to_string(&path).unwrap() } else { String::new() };
                let strings = text.split('"').filter(|one| one.starts_with(PREFIX));
                let whole = |one: &&str| {
                    !one.ends_with('_') && one.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                };
                for name in strings.filter(whole) {
                    assert!(known.contains(&name.to_owned()), "{name} in {}", path.display());
                }
            }
        }
    }

    #[test]
    fn variables_that_a_file_names_or_a_cluster_sets_are_left_alone() {
        checked(&["PERIHELION_ZOO_KEY"], "bearer_token_env_var = \"PERIHELION_ZOO_KEY\"").unwrap();
        assert!(checked(&["PERIHELION_ZOO_KEY"], "").is_err());
        checked(&["PERIHELION_SERVICE_HOST", "PERIHELION_WORKER_PORT_8080_TCP_ADDR"], "").unwrap();
    }
}
