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

/// Error codes of throttling and of conflicts between transactions. Both go away with backoff.
const THROTTLED: [&str; 14] = [
    "ThrottlingException",
    "ThrottlingError",
    "Throttling",
    "ThrottledException",
    "RequestThrottled",
    "TooManyRequestsException",
    "SlowDown",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "KMSThrottling",
    "KMSThrottlingException",
    "KMS.ThrottlingException",
];

/// Error codes of denied access.
const ACCESS_DENIED: [&str; 24] = [
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    // A KMS key that is disabled, deleted, or not granted to the caller. SNS and SQS use different codes for it.
    "KMSAccessDenied",
    "KMSAccessDeniedException",
    "KMSDisabled",
    "KMSInvalidState",
    "KMSNotFound",
    "KMSOptInRequired",
    "KMS.AccessDeniedException",
    "KMS.DisabledException",
    "KMS.InvalidStateException",
    "KMS.NotFoundException",
    "KMS.OptInRequired",
    "KmsAccessDenied",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// The subset of [`ACCESS_DENIED`] that is about the caller's credentials, not about a permission.
const INVALID_CREDENTIALS: [&str; 7] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

impl AwsError {
    /// Creates an error that has no SDK error behind it, such as a failed entry of a batch.
    pub fn new(service: &'static str, operation: &'static str, code: Option<String>, message: impl ToString) -> Self {
        Self { service, operation, code, status: None, message: message.to_string(), context: None }
    }

    /// Creates an error for a request that could not be built.
    pub fn invalid_request(error: impl ToString) -> Self {
        Self::new("", "", None, error)
    }

    /// Returns whether the service throttled the call or found a conflicting transaction: a retry with backoff succeeds.
    pub fn is_throttled(&self) -> bool {
        self.has_code(&THROTTLED) || matches!(self.status, Some(429 | 503))
    }

    /// Returns whether the caller lacks a permission or valid credentials.
    pub fn is_access_denied(&self) -> bool {
        self.has_code(&ACCESS_DENIED) || matches!(self.status, Some(401 | 403))
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
        let remedy = match self.code.as_deref() {
            Some("RequestTimeTooSkewed") => "set the clock of this machine",
            Some(code) if INVALID_CREDENTIALS.contains(&code) => {
                "the credentials are invalid or expired: give the worker valid ones"
            }
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
        match error {
            error if error.is_access_denied() => Self::AccessDenied(error.access_denied_reason()),
            error if error.is_throttled() => Self::Throttled(error.to_string()),
            error => Self::Unavailable(error.to_string()),
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
        Self::Dependency(if error.is_access_denied() {
            DependencyError::AccessDenied(error.access_denied_reason())
        } else {
            DependencyError::Unavailable(error.to_string())
        })
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
