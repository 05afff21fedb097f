//! Pixels: CPU only, synchronous, no state.

use sparks_domain::{FaceBox, Rejection, TakenAt};

/// Makes pictures of originals.
pub trait Darkroom: Send + Sync {
    /// What the header alone tells, without decoding a pixel. Never fails: what is unknown is absent.
    fn describe(&self, original: &[u8]) -> Description;

    /// Pixels across and down, upright, by the header alone.
    fn measure(&self, picture: &[u8]) -> Option<(u32, u32)>;

    /// Decodes within the limits, turns upright, and renders the variants.
    fn develop(&self, original: &[u8]) -> Result<Developed, DarkroomError>;

    /// The pixels of `large`, of an original or of a picture that [`Darkroom::develop`] made.
    fn open(&self, picture: &[u8]) -> Result<Pixels, DarkroomError>;

    /// The face in these bounds with some of what is around it, as a JPEG.
    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection>;

    /// All of these pixels as a JPEG of at most so many bytes.
    fn jpeg(&self, pixels: &Pixels, most_bytes: usize) -> Result<Vec<u8>, Rejection>;
}

/// Why a file has not become pixels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DarkroomError {
    /// It is the photo's fault and final; there is nothing to retry.
    #[error("{}", .0.message)]
    Rejected(Rejection),
    /// Nobody could look at it, through no fault of the photo.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Rejection> for DarkroomError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// What a file's first bytes tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// By the magic bytes; absent for what we do not take.
    pub mime_type: Option<&'static str>,
    /// The file ending that goes with it (`jpg`, `png`, ...).
    pub extension: Option<&'static str>,
    /// By the EXIF.
    pub taken_at: Option<TakenAt>,
}

/// A developed photo.
#[derive(Debug)]
pub struct Developed {
    /// By the magic bytes.
    pub mime_type: &'static str,
    /// Pixels across, upright.
    pub width: u32,
    /// Pixels down, upright.
    pub height: u32,
    /// By the EXIF.
    pub taken_at: Option<TakenAt>,
    /// The `large` picture.
    pub large: Rendered,
    /// The `medium` picture.
    pub medium: Rendered,
    /// The pixels of `large`: faces are looked for here.
    pub pixels: Pixels,
}

/// An encoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// The WebP file.
    pub webp: Vec<u8>,
}

/// Upright RGB pixels, three bytes each, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

impl std::fmt::Debug for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pixels({}x{})", self.width, self.height)
    }
}
