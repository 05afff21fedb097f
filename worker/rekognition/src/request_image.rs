//! The image in a request.

use crate::{
    api_error::{ApiError, ErrorCode},
    member_reader::{MemberReader, StringRule},
};

/// Maximum size of an image in a request.
const MAX_BYTES: usize = 5 * 1024 * 1024;

const BUCKET: StringRule = StringRule { min: 3, max: 255, pattern: r"[0-9A-Za-z\.\-_]*", is_match: is_bucket };
const OBJECT: StringRule = StringRule { min: 1, max: 1024, pattern: ".*", is_match: |_| true };

fn is_bucket(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// The image of a request.
#[derive(Debug)]
pub enum RequestImage {
    /// The file itself.
    Bytes(Vec<u8>),
    /// An object in S3, which this server cannot read.
    S3Object,
    /// Neither of the two, or both.
    Invalid,
}

impl RequestImage {
    /// Reads the required member with this name.
    pub fn read(members: &mut MemberReader, name: &str) -> Result<Self, ApiError> {
        let image = members.structure(name)?;
        let mut image = members.required(name, image)?;
        let bytes = image.blob("Bytes", MAX_BYTES)?;
        let object = image.structure("S3Object")?.map(check_object).transpose()?;
        image.finish()?;
        Ok(match (bytes, object) {
            (Some(bytes), None) => Self::Bytes(bytes),
            (None, Some(())) => Self::S3Object,
            _ => Self::Invalid,
        })
    }

    /// Returns the file if its format is supported.
    pub fn into_file(self) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Bytes(file) if is_jpeg(&file) || is_png(&file) => Ok(file),
            Self::Bytes(_) => Err(ApiError::new(ErrorCode::InvalidImageFormat, "Request has invalid image format")),
            Self::S3Object => Err(ApiError::new(
                ErrorCode::InvalidS3Object,
                "Unable to get object metadata from S3. Check object key, region and/or access permissions.",
            )),
            Self::Invalid => Err(ApiError::invalid_parameters()),
        }
    }
}

fn check_object(mut object: MemberReader) -> Result<(), ApiError> {
    object.string("Bucket", &BUCKET)?;
    object.string("Name", &OBJECT)?;
    object.string("Version", &OBJECT)?;
    object.finish()
}

fn is_jpeg(file: &[u8]) -> bool {
    file.starts_with(&[0xff, 0xd8, 0xff])
}

fn is_png(file: &[u8]) -> bool {
    file.starts_with(b"\x89PNG\r\n\x1a\n")
}
