//! Where an index is, and what lets us in.

use reqwest::{Url, header::HeaderValue};
use sparks_engine::Secret;

/// How to get to an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The index's host, as Pinecone's console shows it, or a URL. Without a scheme it is `https`.
    pub host: String,
    /// The API key.
    pub key: Secret,
    /// What the names of our namespaces begin with; workers with the same one know the same faces.
    pub namespace: String,
}

/// Why this is no access to an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Nothing is there.
    #[error(
        "{0:?} is no host of a Pinecone index: it looks like my-index-abc123.svc.us-east-1-aws.pinecone.io, or is a URL without a path"
    )]
    Host(String),
    /// No key looks like this.
    #[error("the Pinecone API key is empty, or has characters that no key has")]
    Key,
    /// No namespace may be called so.
    #[error("{0:?} cannot be what namespaces begin with: at most 256 printable ASCII characters without blanks")]
    Namespace(String),
    /// Nothing can be asked securely.
    #[error("no secure connections can be made: {0}")]
    Tls(String),
}

impl Access {
    /// Where requests go, without a path.
    pub(crate) fn url(&self) -> Result<Url, AccessError> {
        let wrong = || AccessError::Host(without_login(&self.host).to_owned());
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

    /// The key as a header that no log shows.
    pub(crate) fn header(&self) -> Result<HeaderValue, AccessError> {
        let key = self.key.reveal();
        let mut header = HeaderValue::from_str(key).map_err(|_| AccessError::Key)?;
        if key.trim().is_empty() || header.to_str().is_err() {
            return Err(AccessError::Key);
        }
        header.set_sensitive(true);
        Ok(header)
    }

    /// What namespaces begin with.
    pub(crate) fn prefix(&self) -> Result<&str, AccessError> {
        let fits = self.namespace.len() <= 256 && self.namespace.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(&self.namespace) } else { Err(AccessError::Namespace(self.namespace.clone())) }
    }
}

/// What is behind a name and a password, which nobody needs to see.
fn without_login(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(host: &str, key: &str, namespace: &str) -> Access {
        Access { host: host.to_owned(), key: Secret::new(key), namespace: namespace.to_owned() }
    }

    #[test]
    fn hosts_are_bare_or_urls() {
        for (host, url) in [
            ("my-index-abc.svc.us-east-1.pinecone.io", "https://my-index-abc.svc.us-east-1.pinecone.io/"),
            ("https://my-index-abc.svc.us-east-1.pinecone.io/", "https://my-index-abc.svc.us-east-1.pinecone.io/"),
            ("http://localhost:5081", "http://localhost:5081/"),
            ("localhost:5081", "https://localhost:5081/"),
        ] {
            assert_eq!(access(host, "k", "").url().map(String::from).as_deref(), Ok(url));
        }
        for host in ["", "https://", "ftp://host", "https://host/path", "https://host/?a=b", "a b"] {
            assert_eq!(access(host, "k", "").url(), Err(AccessError::Host(host.to_owned())), "{host}");
        }
    }

    #[test]
    fn errors_show_no_secrets() {
        let access = access("https://user:hunter2@host", "pcsk_hunter2", "");
        let error = access.url().expect_err("a login");
        for text in [format!("{:?}", access.key), format!("{error:?}"), error.to_string()] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn keys_are_headers_that_no_log_shows() {
        for key in ["", " ", "a\nb", "ä"] {
            assert_eq!(access("h", key, "").header(), Err(AccessError::Key), "{key:?}");
        }
        let header = access("h", "pcsk_hunter2", "").header().expect("a key");
        assert!(header.is_sensitive());
        assert!(!format!("{header:?}").contains("hunter2"));
    }

    #[test]
    fn namespaces_begin_with_plain_characters() {
        assert_eq!(access("h", "k", "sparks").prefix(), Ok("sparks"));
        for namespace in ["a b", "ü", "a\n", &"x".repeat(257)] {
            assert!(access("h", "k", namespace).prefix().is_err(), "{namespace:?}");
        }
    }
}
