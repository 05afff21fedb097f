//! Address and credentials of an index.

use reqwest::{Url, header::HeaderValue};
use sparks_engine::Secret;

/// Address and credentials of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PineconeConfig {
    /// The host of the index, as Pinecone's console shows it, or a URL. The default scheme is `https`.
    pub host: String,
    /// The API key.
    pub key: Secret,
    /// The prefix of the worker's namespaces. Workers with the same prefix share their faces.
    pub namespace: String,
}

/// Errors of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PineconeConfigError {
    /// The host is invalid.
    #[error(
        "{0:?} is not a host of a Pinecone index; expected a name like my-index-abc123.svc.us-east-1-aws.pinecone.io, or a URL without a path"
    )]
    Host(String),
    /// The API key is empty or has invalid characters.
    #[error("the Pinecone API key is empty or has invalid characters")]
    Key,
    /// The prefix of namespaces is invalid.
    #[error("{0:?} is not a prefix of namespaces; expected at most 256 printable ASCII characters without blanks")]
    Namespace(String),
    /// TLS could not be initialized.
    #[error("failed to initialize TLS: {0}")]
    Tls(String),
}

impl PineconeConfig {
    /// Returns the URL of the index, without a path.
    pub(crate) fn url(&self) -> Result<Url, PineconeConfigError> {
        let wrong = || PineconeConfigError::Host(without_login(&self.host).to_owned());
        let text = match self.host.contains("://") {
            true => self.host.clone(),
            false => format!("https://{}", self.host),
        };
        let url = Url::parse(&text).map_err(|_| wrong())?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        if is_plain && is_web { Ok(url) } else { Err(wrong()) }
    }

    /// Returns the API key as a header that is never logged.
    pub(crate) fn header(&self) -> Result<HeaderValue, PineconeConfigError> {
        let key = self.key.reveal();
        let mut header = HeaderValue::from_str(key).map_err(|_| PineconeConfigError::Key)?;
        if key.trim().is_empty() || header.to_str().is_err() {
            return Err(PineconeConfigError::Key);
        }
        header.set_sensitive(true);
        Ok(header)
    }

    /// Returns the prefix of namespaces.
    pub(crate) fn prefix(&self) -> Result<&str, PineconeConfigError> {
        let is_valid = self.namespace.len() <= 256 && self.namespace.bytes().all(|b| b.is_ascii_graphic());
        if is_valid { Ok(&self.namespace) } else { Err(PineconeConfigError::Namespace(self.namespace.clone())) }
    }
}

/// Removes user name and password from a URL.
fn without_login(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(host: &str, key: &str, namespace: &str) -> PineconeConfig {
        PineconeConfig { host: host.to_owned(), key: Secret::new(key), namespace: namespace.to_owned() }
    }

    #[test]
    fn a_host_is_a_bare_name_or_a_url() {
        for (host, url) in [
            ("my-index-abc.svc.us-east-1.pinecone.io", "https://my-index-abc.svc.us-east-1.pinecone.io/"),
            ("https://my-index-abc.svc.us-east-1.pinecone.io/", "https://my-index-abc.svc.us-east-1.pinecone.io/"),
            ("http://localhost:5081", "http://localhost:5081/"),
            ("localhost:5081", "https://localhost:5081/"),
        ] {
            assert_eq!(config(host, "k", "").url().map(String::from).as_deref(), Ok(url));
        }
        for host in ["", "https://", "ftp://host", "https://host/path", "https://host/?a=b", "a b"] {
            assert_eq!(config(host, "k", "").url(), Err(PineconeConfigError::Host(host.to_owned())), "{host}");
        }
    }

    #[test]
    fn errors_show_no_secrets() {
        let config = config("https://user:hunter2@host", "pcsk_hunter2", "");
        let error = config.url().expect_err("a URL with a password is rejected");
        for text in [format!("{:?}", config.key), format!("{error:?}"), error.to_string()] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn the_key_is_a_header_that_is_never_logged() {
        for key in ["", " ", "a\nb", "ä"] {
            assert_eq!(config("h", key, "").header(), Err(PineconeConfigError::Key), "{key:?}");
        }
        let header = config("h", "pcsk_hunter2", "").header().expect("valid key");
        assert!(header.is_sensitive());
        assert!(!format!("{header:?}").contains("hunter2"));
    }

    #[test]
    fn a_namespace_prefix_is_printable_ascii() {
        assert_eq!(config("h", "k", "sparks").prefix(), Ok("sparks"));
        for namespace in ["a b", "ü", "a\n", &"x".repeat(257)] {
            assert!(config("h", "k", namespace).prefix().is_err(), "{namespace:?}");
        }
    }
}
