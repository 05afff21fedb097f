//! The error of a failed AWS call, classified by its remedy.

use std::{any::type_name, error::Error, fmt};

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use sparks_engine::{DependencyError, PublishError, QueueError, StoreError};

/// A failed AWS call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwsError {
    /// The service that was called, such as `DynamoDB`; empty if the failure happened before the call.
    pub service: &'static str,
    /// The operation that was called, such as `GetItem`.
    pub operation: &'static str,
    /// The error code of the service; none if there was no response.
    pub code: Option<String>,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// The error message.
    pub message: String,
    /// The resource that was used, such as `queue sparks`.
    pub context: Option<String>,
}

/// What a failed call means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The service limits the rate of requests, or another request writes the same data: succeeds later, so no message is to
    /// blame.
    Throttled,
    /// The service failed. A retry may succeed.
    Unavailable,
    /// The caller lacks a permission.
    AccessDenied,
    /// The caller's credentials are invalid or expired.
    InvalidCredentials,
    /// The clock of this machine is wrong.
    ClockSkew,
    /// The request itself is invalid. A retry fails again.
    Invalid,
}

/// The class of every error code that the services document. Other codes are classified by their HTTP status.
const CLASSES: [(&str, ErrorClass); 62] = {
    use ErrorClass::{AccessDenied, ClockSkew, Invalid, InvalidCredentials, Throttled, Unavailable};
    [
        // All services: the codes that the SDK, too, takes for throttling.
        ("BandwidthLimitExceeded", Throttled),
        ("LimitExceededException", Throttled),
        ("PriorRequestNotComplete", Throttled),
        ("RequestLimitExceeded", Throttled),
        ("RequestThrottled", Throttled),
        ("RequestThrottledException", Throttled),
        ("Throttling", Throttled),
        ("ThrottledException", Throttled),
        ("ThrottlingException", Throttled),
        ("TooManyRequestsException", Throttled),
        // S3 answers both with status 503 and asks for a lower request rate.
        ("ServiceUnavailable", Throttled),
        ("SlowDown", Throttled),
        // DynamoDB.
        ("ProvisionedThroughputExceededException", Throttled),
        ("ReplicatedWriteConflictException", Throttled),
        ("TransactionConflictException", Throttled),
        ("TransactionInProgressException", Throttled),
        ("InternalServerError", Unavailable),
        ("ItemCollectionSizeLimitExceededException", Invalid),
        ("ValidationException", Invalid),
        // DynamoDB: reasons of a cancelled transaction (`TransactionCanceledException`).
        ("ProvisionedThroughputExceeded", Throttled),
        ("ThrottlingError", Throttled),
        ("TransactionConflict", Throttled),
        ("ItemCollectionSizeLimitExceeded", Invalid),
        ("ValidationError", Invalid),
        // SQS: too many messages in flight.
        ("OverLimit", Throttled),
        ("InternalError", Unavailable),
        // SNS.
        ("Throttled", Throttled),
        ("InternalErrorException", Unavailable),
        // KMS, as SQS (with a dot in the query protocol), SNS and S3 report it.
        ("KMS.ThrottlingException", Throttled),
        ("KMSThrottling", Throttled),
        ("KMSThrottlingException", Throttled),
        ("KmsThrottled", Throttled),
        // A KMS key that is disabled, deleted, or not granted to the caller.
        ("KMS.AccessDeniedException", AccessDenied),
        ("KMS.DisabledException", AccessDenied),
        ("KMS.InvalidStateException", AccessDenied),
        ("KMS.NotFoundException", AccessDenied),
        ("KMS.OptInRequired", AccessDenied),
        ("KMSAccessDenied", AccessDenied),
        ("KMSAccessDeniedException", AccessDenied),
        ("KMSDisabled", AccessDenied),
        ("KMSInvalidState", AccessDenied),
        ("KMSNotFound", AccessDenied),
        ("KMSOptInRequired", AccessDenied),
        ("KmsAccessDenied", AccessDenied),
        ("KmsDisabled", AccessDenied),
        ("KmsInvalidState", AccessDenied),
        ("KmsNotFound", AccessDenied),
        ("KmsOptInRequired", AccessDenied),
        // Permissions, credentials and time, all services.
        ("AccessDenied", AccessDenied),
        ("AccessDeniedException", AccessDenied),
        ("AuthorizationError", AccessDenied),
        ("AuthorizationErrorException", AccessDenied),
        ("NotAuthorized", AccessDenied),
        ("ExpiredToken", InvalidCredentials),
        ("ExpiredTokenException", InvalidCredentials),
        ("InvalidAccessKeyId", InvalidCredentials),
        ("InvalidClientTokenId", InvalidCredentials),
        ("InvalidSignatureException", InvalidCredentials),
        ("SignatureDoesNotMatch", InvalidCredentials),
        ("UnrecognizedClientException", InvalidCredentials),
        ("RequestExpired", ClockSkew),
        ("RequestTimeTooSkewed", ClockSkew),
    ]
};

impl AwsError {
    /// Creates an error that has no SDK error behind it, such as a failed entry of a batch.
    pub fn new(service: &'static str, operation: &'static str, code: Option<String>, message: impl ToString) -> Self {
        Self { service, operation, code, status: None, message: message.to_string(), context: None }
    }

    /// Creates an error for a request that could not be built.
    pub fn invalid_request(error: impl ToString) -> Self {
        Self::new("", "", None, error)
    }

    /// Returns what the error means for the caller.
    pub fn class(&self) -> ErrorClass {
        let known = CLASSES.iter().find(|(code, _)| self.has_code(&[code]));
        match (known, self.status) {
            (Some((_, class)), _) => *class,
            (None, Some(429 | 503)) => ErrorClass::Throttled,
            (None, Some(401 | 403)) => ErrorClass::AccessDenied,
            (None, _) => ErrorClass::Unavailable,
        }
    }

    /// Returns whether a retry with backoff succeeds: the service throttled the call, or another request writes the same data.
    pub fn is_throttled(&self) -> bool {
        self.class() == ErrorClass::Throttled
    }

    /// Returns whether the caller lacks a permission or valid credentials.
    pub fn is_access_denied(&self) -> bool {
        use ErrorClass::{AccessDenied, ClockSkew, InvalidCredentials};
        matches!(self.class(), AccessDenied | InvalidCredentials | ClockSkew)
    }

    /// Returns whether the error code is one of these.
    pub fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    /// Returns the error with the resource that was used.
    pub fn with_context(&self, context: &str) -> Self {
        let context = match &self.context {
            Some(inner) => format!("{context}: {inner}"),
            None => context.to_owned(),
        };
        Self { context: Some(context), ..self.clone() }
    }

    /// Returns the error and its remedy, for a call that was denied.
    pub fn access_denied_reason(&self) -> String {
        let remedy = match self.class() {
            ErrorClass::ClockSkew => "set the clock of this machine",
            ErrorClass::InvalidCredentials => "the credentials are invalid or expired: give the worker valid ones",
            _ => "grant the permission to the worker's role (docker/cloudformation/roles.yaml lists all permissions)",
        };
        format!("{self}; {remedy}; `sparks doctor` lists all missing permissions")
    }
}

impl fmt::Display for AwsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(context) = &self.context {
            write!(f, "{context}: ")?;
        }
        if !self.service.is_empty() {
            write!(f, "{} {}: ", self.service, self.operation)?;
        }
        f.write_str(&self.message)
    }
}

impl<E: ProvideErrorMetadata + Error + 'static> From<SdkError<E>> for AwsError {
    fn from(error: SdkError<E>) -> Self {
        let (service, operation) = operation_of::<E>();
        let (code, status) = (error.code().map(str::to_owned), error.raw_response().map(|raw| raw.status().as_u16()));
        let message = match (code.as_deref(), error.message()) {
            (Some(code), Some(message)) if !message.is_empty() => format!("{code}: {message}"),
            (Some(code), _) => code.to_owned(),
            (None, _) if is_timeout(&error) => format!("timeout: {}", error_chain(&error)),
            (None, _) => error_chain(&error),
        };
        Self { service, operation, code, status, message, context: None }
    }
}

fn is_timeout<E>(error: &SdkError<E>) -> bool {
    match error {
        SdkError::TimeoutError(_) => true,
        SdkError::DispatchFailure(failure) => failure.is_timeout(),
        _ => false,
    }
}

/// Returns the service and the operation that an SDK error type belongs to: it is named like
/// `aws_sdk_dynamodb::operation::get_item::GetItemError`. Used for messages and logs alone.
fn operation_of<E>() -> (&'static str, &'static str) {
    let name = type_name::<E>();
    let service = match name.split("::").next().unwrap_or_default() {
        "aws_sdk_dynamodb" => "DynamoDB",
        "aws_sdk_rekognition" => "Rekognition",
        "aws_sdk_s3" => "S3",
        "aws_sdk_sns" => "SNS",
        "aws_sdk_sqs" => "SQS",
        "aws_sdk_sts" => "STS",
        _ => "AWS",
    };
    let error = name.rsplit("::").next().unwrap_or_default();
    (service, error.strip_suffix("Error").unwrap_or(error))
}

/// Joins the messages of an error and its sources: a transport error by itself says little.
fn error_chain(error: &dyn Error) -> String {
    let mut messages = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if messages.last() != Some(&next) {
            messages.push(next);
        }
        source = error.source();
    }
    messages.join(": ")
}

impl From<AwsError> for DependencyError {
    fn from(error: AwsError) -> Self {
        match error.class() {
            ErrorClass::Throttled => Self::Throttled(error.to_string()),
            ErrorClass::AccessDenied | ErrorClass::InvalidCredentials | ErrorClass::ClockSkew => {
                Self::AccessDenied(error.access_denied_reason())
            }
            ErrorClass::Unavailable | ErrorClass::Invalid => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<AwsError> for StoreError {
    fn from(error: AwsError) -> Self {
        Self::Dependency(error.into())
    }
}

impl From<AwsError> for QueueError {
    fn from(error: AwsError) -> Self {
        Self::Dependency(error.into())
    }
}

impl From<AwsError> for PublishError {
    fn from(error: AwsError) -> Self {
        Self::Dependency(error.into())
    }
}

impl From<aws_sdk_dynamodb::error::BuildError> for AwsError {
    fn from(error: aws_sdk_dynamodb::error::BuildError) -> Self {
        Self::invalid_request(error)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;

    use super::*;

    #[test]
    fn messages_name_service_and_operation() {
        assert_eq!(operation_of::<TransactWriteItemsError>(), ("DynamoDB", "TransactWriteItems"));
        let error = AwsError::new("SQS", "DeleteMessageBatch", None, "InternalError").with_context("queue sparks");
        assert_eq!(error.to_string(), "queue sparks: SQS DeleteMessageBatch: InternalError");
    }
}
