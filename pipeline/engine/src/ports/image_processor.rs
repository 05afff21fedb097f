//! Decoding, variants and crops.

use sparks_domain::{FaceBox, Rejection, TakenAt};

/// Turns the bytes of a photo into variants, pixels and crops. CPU only, synchronous, without state.
pub trait ImageProcessor: Send + Sync {
    /// Returns what the header says, without decoding pixels. Never fails: unknown values are absent.
    fn inspect(&self, original: &[u8]) -> ImageInfo;

    /// Returns width and height after orientation, from the header.
    fn dimensions(&self, encoded: &[u8]) -> Option<(u32, u32)>;

    /// Decodes within the limits, applies the orientation, and renders the variants.
    fn render(&self, original: &[u8]) -> Result<RenderedImage, ImageError>;

    /// Decodes an original or a variant to pixels of the size of `large`.
    fn decode(&self, encoded: &[u8]) -> Result<Pixels, ImageError>;

    /// Encodes the face in this box, with a margin around it, as JPEG.
    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection>;

    /// Encodes all pixels as a JPEG of at most this many bytes.
    fn encode_jpeg(&self, pixels: &Pixels, most_bytes: usize) -> Result<Vec<u8>, Rejection>;
}

/// Errors of image processing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The file is at fault; the rejection is final.
    #[error("{}", .0.message)]
    Rejected(Rejection),
    /// The decoder is unavailable, through no fault of the file.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Rejection> for ImageError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// What the header of a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageInfo {
    /// The MIME type by the magic bytes; absent for unsupported formats.
    pub mime_type: Option<&'static str>,
    /// The file extension of that type (`jpg`, `png`, ...).
    pub extension: Option<&'static str>,
    /// The time the photo was taken, from EXIF.
    pub taken_at: Option<TakenAt>,
}

/// A decoded photo with its variants.
#[derive(Debug)]
pub struct RenderedImage {
    /// The MIME type by the magic bytes.
    pub mime_type: &'static str,
    /// Width of the original after orientation.
    pub width: u32,
    /// Height of the original after orientation.
    pub height: u32,
    /// The time the photo was taken, from EXIF.
    pub taken_at: Option<TakenAt>,
    /// The `large` variant.
    pub large: EncodedVariant,
    /// The `medium` variant.
    pub medium: EncodedVariant,
    /// The pixels of `large`, in which faces are detected.
    pub pixels: Pixels,
}

/// An encoded variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedVariant {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The WebP file.
    pub webp: Vec<u8>,
}

/// RGB pixels after orientation, three bytes each, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

impl std::fmt::Debug for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pixels({}x{})", self.width, self.height)
    }
}
