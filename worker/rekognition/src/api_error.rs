//! Errors of the Rekognition API.

use sparks_engine::TaskPanicked;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
}

/// Error codes. Those that no operation declares are common errors of AWS services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
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

impl ErrorCode {
    /// Returns the name of the error in responses.
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

    /// Returns the HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::InternalServerError => 500,
            Self::MissingAuthenticationToken => 403,
            Self::RequestEntityTooLarge => 413,
            _ => 400,
        }
    }
}

impl ApiError {
    /// Creates an error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates the error of a member that violates a constraint, in the words of the service.
    pub fn constraint(value: &str, path: &str, rule: &str) -> Self {
        let text =
            format!("1 validation error detected: Value {value} at '{path}' failed to satisfy constraint: {rule}");
        Self::new(ErrorCode::Validation, text)
    }

    /// Creates the unspecific error of invalid parameters.
    pub fn invalid_parameters() -> Self {
        Self::new(ErrorCode::InvalidParameter, "Request has invalid parameters")
    }

    /// Creates an internal error. Its cause goes only to the log.
    pub fn internal() -> Self {
        Self::new(ErrorCode::InternalServerError, "Internal server error")
    }
}

impl From<TaskPanicked> for ApiError {
    fn from(panic: TaskPanicked) -> Self {
        tracing::error!(%panic, "request panicked");
        Self::internal()
    }
}
