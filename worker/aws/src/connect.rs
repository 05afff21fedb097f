//! Configuration of the AWS SDK: region, endpoints, credentials, timeouts and retries.

use std::time::Duration;

use aws_config::{
    BehaviorVersion, Region, SdkConfig, retry::RetryConfig, stalled_stream_protection::StalledStreamProtectionConfig,
    timeout::TimeoutConfig,
};
use aws_credential_types::Credentials;
use aws_smithy_http_client::{
    Builder, Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_types::service_config::ServiceConfigKey;

use crate::ssm::SsmClient;

/// Region, endpoints and credentials. Fields that are left out come from the environment, as the AWS SDK documents.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsConfig {
    /// The region.
    pub region: Option<String>,
    /// The endpoint of all services without one of their own: an emulator or a proxy.
    pub endpoint: Option<String>,
    /// Endpoints of single services.
    pub endpoints: Endpoints,
    /// Access key ID and secret access key.
    pub keys: Option<(String, String)>,
}

/// Endpoints of single services.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// DynamoDB.
    pub dynamodb: Option<String>,
    /// S3.
    pub s3: Option<String>,
    /// SQS.
    pub sqs: Option<String>,
    /// SNS.
    pub sns: Option<String>,
    /// Rekognition.
    pub rekognition: Option<String>,
    /// SSM.
    pub ssm: Option<String>,
    /// STS.
    pub sts: Option<String>,
}

/// Attempts of the SDK itself against transport errors.
const ATTEMPTS: u32 = 3;
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than the 20 seconds that SQS long polling waits at most.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates the clients of all services. Clones share connections.
#[derive(Clone)]
pub struct Connection {
    shared: SdkConfig,
    endpoints: Endpoints,
    /// Whether the settings name one endpoint for all services.
    has_common_endpoint: bool,
}

impl Connection {
    /// Resolves region and credentials. Calls no service.
    pub async fn open(config: &AwsConfig) -> Self {
        let https = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(https)
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF))
            .stalled_stream_protection(StalledStreamProtectionConfig::enabled().build())
            .timeout_config(timeouts);
        if let Some(region) = &config.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some((id, secret)) = &config.keys {
            loader = loader.credentials_provider(Credentials::new(id, secret, None, None, "settings"));
        }
        if let Some(endpoint) = &config.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        let (endpoints, has_common_endpoint) = (config.endpoints.clone(), config.endpoint.is_some());
        Self { shared: loader.load().await, endpoints, has_common_endpoint }
    }

    /// Returns a client of DynamoDB.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.dynamodb.as_ref(), "DynamoDB"));
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// Returns a client of S3.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let endpoint = self.endpoint(self.endpoints.s3.as_ref(), "S3");
        let mut config = aws_sdk_s3::config::Builder::from(&self.shared);
        // Emulators and private endpoints do not resolve a host name per bucket.
        config.set_force_path_style(Some(endpoint.is_some()));
        config.set_endpoint_url(endpoint);
        aws_sdk_s3::Client::from_conf(config.build())
    }

    /// Returns a client of SQS.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sqs.as_ref(), "SQS"));
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    /// Returns a client of SNS.
    pub fn sns(&self) -> aws_sdk_sns::Client {
        let mut config = aws_sdk_sns::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sns.as_ref(), "SNS"));
        aws_sdk_sns::Client::from_conf(config.build())
    }

    /// Returns a client of Rekognition. The SDK's retries are off: every call is billed, and the adapter limits their rate.
    pub fn rekognition(&self) -> aws_sdk_rekognition::Client {
        let mut config = aws_sdk_rekognition::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.rekognition.as_ref(), "Rekognition"));
        config.set_retry_config(Some(RetryConfig::disabled()));
        aws_sdk_rekognition::Client::from_conf(config.build())
    }

    /// Returns a client of SSM.
    pub(crate) fn ssm(&self) -> SsmClient {
        let region = self.region().unwrap_or_default();
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let public = || format!("https://ssm.{region}.{domain}/");
        let endpoint = self.endpoint(self.endpoints.ssm.as_ref(), "SSM").unwrap_or_else(public);
        let connector = Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        SsmClient { connector, credentials: self.shared.credentials_provider(), region, endpoint }
    }

    /// Returns a client of STS.
    pub(crate) fn sts(&self) -> aws_sdk_sts::Client {
        let mut config = aws_sdk_sts::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sts.as_ref(), "STS"));
        aws_sdk_sts::Client::from_conf(config.build())
    }

    /// Returns the region, if settings or environment name one.
    pub(crate) fn region(&self) -> Option<String> {
        self.shared.region().map(ToString::to_string)
    }

    /// Returns a service's endpoint if it differs from the public one. In order of precedence: the setting of this service, the
    /// setting of all services, the environment variable of this service (`AWS_ENDPOINT_URL_SQS`), that of all services.
    fn endpoint(&self, own: Option<&String>, service: &str) -> Option<String> {
        let common = self.shared.endpoint_url().map(str::to_owned);
        let from_environment = || {
            let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url");
            self.shared.service_config()?.load_config(key.build().ok()?)
        };
        match (own, self.has_common_endpoint) {
            (Some(own), _) => Some(own.clone()),
            (None, true) => common,
            (None, false) => from_environment().or(common),
        }
    }
}
