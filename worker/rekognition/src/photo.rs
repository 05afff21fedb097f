//! The photo in a request.

use crate::{
    members::{Members, Text},
    refusal::{Kind, Refusal},
};

/// As many bytes may be sent.
const MOST_BYTES: usize = 5 * 1024 * 1024;

const BUCKET: Text = Text { min: 3, max: 255, pattern: r"[0-9A-Za-z\.\-_]*", fits: is_bucket };
const OBJECT: Text = Text { min: 1, max: 1024, pattern: ".*", fits: |_| true };

fn is_bucket(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// A photo as a request names it.
#[derive(Debug)]
pub enum Photo {
    /// The file itself.
    Sent(Vec<u8>),
    /// An object, which nobody here can read.
    Elsewhere,
    /// Neither of the two, or both.
    Unclear,
}

impl Photo {
    /// The member with this name, which must be there.
    pub fn read(members: &mut Members, name: &str) -> Result<Self, Refusal> {
        let image = members.structure(name)?;
        let mut image = members.required(name, image)?;
        let bytes = image.blob("Bytes", MOST_BYTES)?;
        let object = image.structure("S3Object")?.map(object).transpose()?;
        image.end()?;
        Ok(match (bytes, object) {
            (Some(bytes), None) => Self::Sent(bytes),
            (None, Some(())) => Self::Elsewhere,
            _ => Self::Unclear,
        })
    }

    /// The file, if it is of a kind that the service takes.
    pub fn file(self) -> Result<Vec<u8>, Refusal> {
        match self {
            Self::Sent(file) if is_jpeg(&file) || is_png(&file) => Ok(file),
            Self::Sent(_) => Err(Refusal::new(Kind::InvalidImageFormat, "Request has invalid image format")),
            Self::Elsewhere => Err(Refusal::new(
                Kind::InvalidS3Object,
                "Unable to get object metadata from S3. Check object key, region and/or access permissions.",
            )),
            Self::Unclear => Err(Refusal::invalid_parameters()),
        }
    }
}

fn object(mut object: Members) -> Result<(), Refusal> {
    object.text("Bucket", &BUCKET)?;
    object.text("Name", &OBJECT)?;
    object.text("Version", &OBJECT)?;
    object.end()
}

fn is_jpeg(file: &[u8]) -> bool {
    file.starts_with(&[0xff, 0xd8, 0xff])
}

fn is_png(file: &[u8]) -> bool {
    file.starts_with(b"\x89PNG\r\n\x1a\n")
}
