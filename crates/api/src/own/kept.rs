//! What outlives a thread, opened when it is first asked for and open from then on.

use std::sync::Arc;

use axum::http::StatusCode;
use perihelion_people::Principal;
use tokio::sync::OnceCell;

use crate::http::Refusal;
use perihelion_runtime::{
    self as runtime, Documents, MemoryError, Skills, UserMemory, open_memory, open_skills,
};
use perihelion_service::Service;

/// The skills, memories and documents of the service's database; cheap to clone.
#[derive(Clone)]
pub(super) struct Kept {
    service: Service,
    opened: Arc<Opened>,
}

#[derive(Default)]
struct Opened {
    skills: OnceCell<Skills>,
    memory: OnceCell<UserMemory>,
    documents: OnceCell<Documents>,
}

impl Kept {
    pub(super) fn new(service: Service) -> Self {
        Self { service, opened: Arc::default() }
    }

    /// Returns who asks.
    pub(super) fn who(&self) -> &Principal {
        self.service.who()
    }

    /// Returns the tenant whose things are shown.
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

/// Says why skills and memories could not be had.
pub(super) fn refused(error: MemoryError) -> Refusal {
    match error {
        MemoryError::UnknownSkill(_) | MemoryError::UnknownKey(_) => {
            Refusal::missing(error.to_string())
        }
        MemoryError::NoKey | MemoryError::TooLong { .. } => Refusal::invalid(error.to_string()),
        error => runtime::Error::from(error).into(),
    }
}

/// Says why documents could not be had.
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
