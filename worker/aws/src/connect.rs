//! The way to the services.

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

use crate::ssm::Service;

/// Where the services are. What is left out comes from the environment, as with every program that uses them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The region.
    pub region: Option<String>,
    /// Where all services are, unless one is named below: an emulator, or a proxy.
    pub endpoint: Option<String>,
    /// Where single services are.
    pub endpoints: Endpoints,
    /// Who we are, where the environment shall not say: the name of a key, and its secret.
    pub keys: Option<(String, String)>,
}

/// Where single services are.
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

/// Attempts of the SDK itself, against a network that stumbles.
const ATTEMPTS: u32 = 3;
const BACKOFF: Duration = Duration::from_millis(50);
const CONNECT: Duration = Duration::from_secs(3);
/// Longer than the longest poll.
const ANSWER: Duration = Duration::from_secs(30);

/// A way to every service. Clones share connections.
#[derive(Clone)]
pub struct Connection {
    shared: SdkConfig,
    endpoints: Endpoints,
    /// Whether the settings name one endpoint for all services.
    is_everywhere: bool,
}

impl Connection {
    /// Finds out who we are and where to go. Asks no service anything.
    pub async fn open(access: &Access) -> Self {
        let https = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ANSWER).build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(https)
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF))
            .stalled_stream_protection(StalledStreamProtectionConfig::enabled().build())
            .timeout_config(timeouts);
        if let Some(region) = &access.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some((id, secret)) = &access.keys {
            loader = loader.credentials_provider(Credentials::new(id, secret, None, None, "settings"));
        }
        if let Some(endpoint) = &access.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        let (endpoints, is_everywhere) = (access.endpoints.clone(), access.endpoint.is_some());
        Self { shared: loader.load().await, endpoints, is_everywhere }
    }

    /// DynamoDB itself, for whoever needs more than its adapter does.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.dynamodb.as_ref(), "DynamoDB"));
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// S3 itself, for whoever needs more than its adapter does.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let endpoint = self.endpoint(self.endpoints.s3.as_ref(), "S3");
        let mut config = aws_sdk_s3::config::Builder::from(&self.shared);
        // Emulators and private endpoints have one name for all buckets.
        config.set_force_path_style(Some(endpoint.is_some()));
        config.set_endpoint_url(endpoint);
        aws_sdk_s3::Client::from_conf(config.build())
    }

    /// SQS itself, for whoever needs more than its adapter does.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sqs.as_ref(), "SQS"));
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    /// SNS itself, for whoever needs more than its adapter does.
    pub fn sns(&self) -> aws_sdk_sns::Client {
        let mut config = aws_sdk_sns::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sns.as_ref(), "SNS"));
        aws_sdk_sns::Client::from_conf(config.build())
    }

    /// Rekognition itself, for whoever needs more than its adapter does. Every call is paid for, so nobody repeats one unasked.
    pub fn rekognition(&self) -> aws_sdk_rekognition::Client {
        let mut config = aws_sdk_rekognition::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.rekognition.as_ref(), "Rekognition"));
        config.set_retry_config(Some(RetryConfig::disabled()));
        aws_sdk_rekognition::Client::from_conf(config.build())
    }

    /// SSM.
    pub(crate) fn ssm(&self) -> Service {
        let region = self.region().unwrap_or_default();
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let public = || format!("https://ssm.{region}.{domain}/");
        let endpoint = self.endpoint(self.endpoints.ssm.as_ref(), "SSM").unwrap_or_else(public);
        let connector = Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        Service { connector, credentials: self.shared.credentials_provider(), region, endpoint }
    }

    /// STS, which knows who we are.
    pub(crate) fn sts(&self) -> aws_sdk_sts::Client {
        let mut config = aws_sdk_sts::config::Builder::from(&self.shared);
        config.set_endpoint_url(self.endpoint(self.endpoints.sts.as_ref(), "STS"));
        aws_sdk_sts::Client::from_conf(config.build())
    }

    /// The region, if anybody has said which.
    pub(crate) fn region(&self) -> Option<String> {
        self.shared.region().map(ToString::to_string)
    }

    /// Where a service is, if not where it usually is: as the settings say of it, as they say of all, as the environment says
    /// of it (`AWS_ENDPOINT_URL_SQS`), as it says of all.
    fn endpoint(&self, own: Option<&String>, service: &str) -> Option<String> {
        let everywhere = self.shared.endpoint_url().map(str::to_owned);
        let of_it = || {
            let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url");
            self.shared.service_config()?.load_config(key.build().ok()?)
        };
        match (own, self.is_everywhere) {
            (Some(own), _) => Some(own.clone()),
            (None, true) => everywhere,
            (None, false) => of_it().or(everywhere),
        }
    }
}
