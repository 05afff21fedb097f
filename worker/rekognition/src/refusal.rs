//! Answers that say no, under the names that clients know.

use sparks_engine::Crashed;

/// An error as the service names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: Kind,
    pub message: String,
}

/// The names of errors. Those that no operation declares come from the framework in front of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AccessDenied,
    ImageTooLarge,
    IncompleteSignature,
    InternalServerError,
    InvalidImageFormat,
    InvalidPaginationToken,
    InvalidParameter,
    InvalidS3Object,
    InvalidSignature,
    MissingAuthenticationToken,
    ProvisionedThroughputExceeded,
    RequestEntityTooLarge,
    ResourceAlreadyExists,
    ResourceNotFound,
    Serialization,
    Throttling,
    UnknownOperation,
    UnrecognizedClient,
    Validation,
}

impl Kind {
    /// As clients read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessDenied => "AccessDeniedException",
            Self::ImageTooLarge => "ImageTooLargeException",
            Self::IncompleteSignature => "IncompleteSignatureException",
            Self::InternalServerError => "InternalServerError",
            Self::InvalidImageFormat => "InvalidImageFormatException",
            Self::InvalidPaginationToken => "InvalidPaginationTokenException",
            Self::InvalidParameter => "InvalidParameterException",
            Self::InvalidS3Object => "InvalidS3ObjectException",
            Self::InvalidSignature => "InvalidSignatureException",
            Self::MissingAuthenticationToken => "MissingAuthenticationTokenException",
            Self::ProvisionedThroughputExceeded => "ProvisionedThroughputExceededException",
            Self::RequestEntityTooLarge => "RequestEntityTooLargeException",
            Self::ResourceAlreadyExists => "ResourceAlreadyExistsException",
            Self::ResourceNotFound => "ResourceNotFoundException",
            Self::Serialization => "SerializationException",
            Self::Throttling => "ThrottlingException",
            Self::UnknownOperation => "UnknownOperationException",
            Self::UnrecognizedClient => "UnrecognizedClientException",
            Self::Validation => "ValidationException",
        }
    }

    /// The status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::InternalServerError => 500,
            Self::MissingAuthenticationToken => 403,
            Self::RequestEntityTooLarge => 413,
            _ => 400,
        }
    }
}

impl Refusal {
    /// The error with this name, in these words.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A member that is not within what the model says; `path` as the service writes it.
    pub fn constraint(value: &str, path: &str, rule: &str) -> Self {
        let text =
            format!("1 validation error detected: Value {value} at '{path}' failed to satisfy constraint: {rule}");
        Self::new(Kind::Validation, text)
    }

    /// What the service says where it says nothing more.
    pub fn invalid_parameters() -> Self {
        Self::new(Kind::InvalidParameter, "Request has invalid parameters")
    }

    /// A fault of ours; what it was is for the log alone.
    pub fn internal() -> Self {
        Self::new(Kind::InternalServerError, "Internal server error")
    }
}

impl From<Crashed> for Refusal {
    fn from(crash: Crashed) -> Self {
        tracing::error!(%crash, "a request crashed");
        Self::internal()
    }
}
