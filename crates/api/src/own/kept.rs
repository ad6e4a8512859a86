//! Data that outlives a thread, opened on first use: skills of agents, memories about a user, and documents.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::Principal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::http::{Body, JsonResult, Query, Refusal, StatusResult};
use perihelion_engine::clock;
use perihelion_runtime::{
    self as runtime, Documents, MemoryError, MemoryKind, Scope, Skill, Skills, UserMemory,
    open_memory, open_skills,
};
use perihelion_service::Service;

/// The skills, memories and documents of the service's database, as a caller sees them; cheap to clone.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) service: Service,
    pub(super) opened: Arc<Opened>,
}

/// Opened once for all callers, because each has connections to the database that it never closes.
#[derive(Default)]
pub(crate) struct Opened {
    skills: OnceCell<Skills>,
    memory: OnceCell<UserMemory>,
    documents: OnceCell<Documents>,
}

impl Kept {
    pub(super) fn who(&self) -> &Principal {
        self.service.who()
    }

    pub(super) fn tenant(&self) -> &str {
        self.service.tenant()
    }

    pub(super) async fn skills(&self) -> Result<&Skills, Refusal> {
        let settings = self.service.runtime().settings();
        Ok(self.opened.skills.get_or_try_init(|| open_skills(settings)).await?)
    }

    pub(super) async fn memory(&self) -> Result<&UserMemory, Refusal> {
        let settings = self.service.runtime().settings();
        Ok(self.opened.memory.get_or_try_init(|| open_memory(settings)).await?)
    }

    pub(super) async fn documents(&self) -> Result<Documents, Refusal> {
        let settings = self.service.runtime().settings();
        let opened = self.opened.documents.get_or_try_init(|| Documents::open(settings)).await?;
        Ok(opened.for_tenant(self.tenant())?)
    }
}

fn refused(error: MemoryError) -> Refusal {
    match error {
        MemoryError::UnknownSkill(_) | MemoryError::UnknownKey(_) => {
            Refusal::missing(error.to_string())
        }
        MemoryError::NoKey | MemoryError::TooLong { .. } => Refusal::invalid(error.to_string()),
        error => runtime::Error::from(error).into(),
    }
}

pub(super) fn without_document(error: runtime::Error) -> Refusal {
    let class = match &error {
        runtime::Error::Documents(error) => error.class(),
        runtime::Error::Document { class, .. }
            if ["full", "too_many", "external_parser"].contains(&class.as_str()) =>
        {
            class.as_str()
        }
        // What is wrong with a document is what its sender can change.
        runtime::Error::Document { .. } => "document",
        _ => "",
    };
    let status = match class {
        "external_parser" => {
            // Its path and its words are the operator's.
            tracing::warn!(%error, "the program that documents.parser names failed");
            let why = "the external parser failed; see the service's log";
            return Refusal(StatusCode::BAD_GATEWAY, why.to_owned());
        }
        "unknown" => StatusCode::NOT_FOUND,
        "full" => StatusCode::PAYLOAD_TOO_LARGE,
        "too_many" => StatusCode::TOO_MANY_REQUESTS,
        "range" | "empty_query" | "collection" | "document" => StatusCode::UNPROCESSABLE_ENTITY,
        _ => return error.into(),
    };
    Refusal(status, error.to_string())
}

/// Skills that a search gives.
const FOUND: usize = 50;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Words {
    /// None: all skills.
    text: Option<String>,
}

fn shown_skill(skill: &Skill) -> Value {
    let mut shown = json!(skill);
    shown["score"] = json!(skill.score(clock::now()));
    shown["solution"] = json!(skill.solution());
    shown
}

pub(super) async fn skills(kept: State<Kept>, Query(words): Query<Words>) -> JsonResult {
    let skills = kept.skills().await?;
    let found = match words.text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => skills.search(kept.tenant(), text, FOUND).await,
        None => skills.list(kept.tenant()).await,
    };
    let shown: Vec<Value> = found.map_err(refused)?.iter().map(shown_skill).collect();
    Ok(Json(json!({ "skills": shown })))
}

pub(super) async fn skill(kept: State<Kept>, Path(id): Path<String>) -> JsonResult {
    let skill = kept.skills().await?.show(kept.tenant(), &id).await.map_err(refused)?;
    Ok(Json(shown_skill(&skill)))
}

pub(super) async fn forget_skill(kept: State<Kept>, Path(id): Path<String>) -> StatusResult {
    kept.skills().await?.forget(kept.tenant(), &id).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The source of memories that a person enters.
const SOURCE: &str = "user";

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Whose {
    /// The user, as in a request or `run --user`; a caller who is a user sees only their own.
    user: String,
}

impl Whose {
    fn scope(&self, who: &Principal) -> Result<Scope, Refusal> {
        match who.acting_as(Some(&self.user))? {
            None => Err(Refusal::invalid("pass the user whose memories to use: ?user=NAME")),
            Some(user) => Scope::new(&who.tenant, &user).map_err(Refusal::invalid),
        }
    }
}

pub(super) async fn memories(kept: State<Kept>, Query(whose): Query<Whose>) -> JsonResult {
    let entries = kept.memory().await?.list(&whose.scope(kept.who())?).await.map_err(refused)?;
    Ok(Json(json!({ "memories": entries })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    value: String,
    /// Whether it is a preference, such as a tone or a language; a fact by default.
    #[serde(default)]
    preference: bool,
}

pub(super) async fn remember(
    kept: State<Kept>,
    Path(key): Path<String>,
    Query(whose): Query<Whose>,
    Body(Given { value, preference }): Body<Given>,
) -> StatusResult {
    let kind = if preference { MemoryKind::Preference } else { MemoryKind::Fact };
    let scope = whose.scope(kept.who())?;
    let entry = (kind, key.as_str(), value.as_str());
    kept.memory().await?.set(&scope, entry, SOURCE, clock::now()).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn forget_memory(
    kept: State<Kept>,
    Path(key): Path<String>,
    Query(whose): Query<Whose>,
) -> StatusResult {
    kept.memory()
        .await?
        .forget(&whose.scope(kept.who())?, &key, clock::now())
        .await
        .map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}
