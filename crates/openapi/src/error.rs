/// Why a description could not be read, or a request not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the API description is neither JSON nor YAML: {0}")]
    NotReadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the document has no operations; add `paths` (OpenAPI) or `endpoints` (plain list)")]
    NoOperations,
    #[error("no such operation: {name}{hint}")]
    UnknownOperation { name: String, hint: String },
    /// The call lacks a required part of the operation.
    #[error("{operation} needs values for: {}", names.join(", "))]
    Missing { operation: String, names: Vec<String> },
    #[error("{operation} has no {location} parameter of that name{hint}: {name}")]
    UnknownParameter { operation: String, location: &'static str, name: String, hint: String },
    /// A path that cannot be made, or would lead elsewhere.
    #[error("the value of the path parameter {name} cannot be one segment of a path: {value}")]
    PathValue { name: String, value: String },
    #[error("the rendered address leaves the base address {base}: {url}")]
    Outside { base: String, url: String },
    #[error("cannot send a value of the {location} parameter {name}: {reason}")]
    Value { location: &'static str, name: String, reason: String },
    #[error("a call cannot set this header: {0}")]
    ForbiddenHeader(String),
    #[error("cannot write the body as {media}: {reason}")]
    Body { media: String, reason: String },
    #[error("{0} takes no body")]
    NoBody(String),
    #[error("the base address is not an absolute http or https address: {0}")]
    BadBase(String),
    #[error(
        "the API description names no absolute server address; give one with --base-url, the environment variable \
         PERIHELION_API_BASE_URL or `api_base_url` in the context"
    )]
    NoBase,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotReadable(_) | Self::NoOperations | Self::BadBase(_) | Self::NoBase => {
                "ConfigurationError"
            }
            Self::PathValue { .. } | Self::Outside { .. } => "PathResolutionError",
            Self::Missing { .. }
            | Self::UnknownOperation { .. }
            | Self::UnknownParameter { .. }
            | Self::Value { .. }
            | Self::ForbiddenHeader(_)
            | Self::Body { .. }
            | Self::NoBody(_) => "RequestError",
        }
    }
}
