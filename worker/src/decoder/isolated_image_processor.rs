//! The image processor that decodes in child processes.

use std::time::Duration;

use sparks_config::{Limits, Settings};
use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::{EncodedVariant, ImageError, ImageInfo, ImageProcessor, Pixels, RenderedImage};
use sparks_media::LocalImageProcessor;

use super::{
    decoder_pool::DecoderPool,
    decoder_process::{DecodeResult, DecoderProcess, ProcessFailure},
    protocol::{DecodeResponse, Operation},
};

/// A process times out after this multiple of its CPU time limit without progress.
const TIMEOUT_FACTOR: u32 = 6;

/// Decodes untrusted bytes in decoder processes. Headers are read in this process: that allocates nothing, and takes
/// time at most linear in the size of the file.
pub struct IsolatedImageProcessor {
    local: LocalImageProcessor,
    limits: Limits,
    pool: DecoderPool,
}

impl IsolatedImageProcessor {
    /// Creates the processor. The decoder processes use the same settings as `local`.
    pub fn new(local: LocalImageProcessor, settings: &Settings) -> Self {
        Self { local, limits: settings.limits.clone(), pool: DecoderPool::new(settings.clone()) }
    }

    /// Runs the operation in an idle process. If that dies, an earlier photo may have corrupted it; then the photo is
    /// at fault only if a fresh process dies as well.
    fn run(&self, operation: Operation, file: &[u8]) -> Result<DecodeResult, ImageError> {
        match self.try_run(self.pool.take(), operation, file) {
            Err(DecodeFailure::PhotoSuspected(_)) => {}
            result => return result.map_err(ImageError::from),
        }
        Ok(self.try_run(self.pool.start(), operation, file)?)
    }

    fn try_run(
        &self,
        process: Result<DecoderProcess, String>,
        operation: Operation,
        file: &[u8],
    ) -> Result<DecodeResult, DecodeFailure> {
        let mut process = process
            .map_err(|error| DecodeFailure::Unavailable(format!("failed to start a decoder process: {error}")))?;
        let timeout = Duration::from_secs(self.limits.max_cpu_seconds) * TIMEOUT_FACTOR;
        let is_fresh = process.is_fresh();
        let failure = match process.run(operation, file, timeout) {
            Ok(result) => {
                // A panic may have left the process in an inconsistent state.
                if !matches!(result.response, DecodeResponse::Panicked(_)) {
                    self.pool.put_back(process);
                }
                return Ok(result);
            }
            Err(failure) => failure,
        };
        match failure {
            ProcessFailure::Unresponsive(reason) => {
                tracing::warn!(reason, "decoder process is unresponsive; killing it");
                Err(DecodeFailure::Unavailable(format!("decoder process is unresponsive: {reason}")))
            }
            ProcessFailure::Exited(exit) => {
                tracing::warn!(status = %exit.status, stderr = exit.stderr, "decoder process died");
                let Some(rejection) = exit.rejection(&self.limits) else {
                    return Err(DecodeFailure::Unavailable(format!("decoder process was killed: {exit}")));
                };
                // CPU time is counted per photo, so this photo exceeded it.
                let is_certain = is_fresh || exit.is_out_of_time();
                Err(match is_certain {
                    true => DecodeFailure::Photo(rejection),
                    false => DecodeFailure::PhotoSuspected(rejection),
                })
            }
        }
    }
}

impl ImageProcessor for IsolatedImageProcessor {
    fn inspect(&self, original: &[u8]) -> ImageInfo {
        self.local.inspect(original)
    }

    fn dimensions(&self, encoded: &[u8]) -> Option<(u32, u32)> {
        self.local.dimensions(encoded)
    }

    fn render(&self, original: &[u8]) -> Result<RenderedImage, ImageError> {
        let DecodeResult { response, images } = self.run(Operation::Render, original)?;
        let (Some(mime_type), DecodeResponse::Rendered { width, height, taken_at, large, medium, pixels }, Ok(images)) =
            (self.inspect(original).mime_type, &response, <[_; 3]>::try_from(images))
        else {
            return Err(error_of(response));
        };
        let [large_webp, medium_webp, rgb] = images;
        Ok(RenderedImage {
            mime_type,
            width: *width,
            height: *height,
            taken_at: taken_at.clone(),
            large: EncodedVariant { width: large.width, height: large.height, webp: large_webp },
            medium: EncodedVariant { width: medium.width, height: medium.height, webp: medium_webp },
            pixels: pixels.to_pixels(rgb).ok_or_else(invalid_response)?,
        })
    }

    fn decode(&self, encoded: &[u8]) -> Result<Pixels, ImageError> {
        let DecodeResult { response, images } = self.run(Operation::Decode, encoded)?;
        match (&response, images.into_iter().next()) {
            (DecodeResponse::Decoded(pixels), Some(rgb)) => pixels.to_pixels(rgb).ok_or_else(invalid_response),
            _ => Err(error_of(response)),
        }
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        self.local.crop(pixels, bounds)
    }

    fn encode_jpeg(&self, pixels: &Pixels, most_bytes: usize) -> Result<Vec<u8>, Rejection> {
        self.local.encode_jpeg(pixels, most_bytes)
    }
}

/// Why a decoder process returned no result.
enum DecodeFailure {
    /// The photo is at fault.
    Photo(Rejection),
    /// The photo is probably at fault.
    PhotoSuspected(Rejection),
    /// The process or the machine is at fault.
    Unavailable(String),
}

impl From<DecodeFailure> for ImageError {
    fn from(failure: DecodeFailure) -> Self {
        match failure {
            DecodeFailure::Photo(rejection) | DecodeFailure::PhotoSuspected(rejection) => Self::Rejected(rejection),
            DecodeFailure::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

/// Converts a response that is not the expected result.
fn error_of(response: DecodeResponse) -> ImageError {
    match response {
        DecodeResponse::Rejected(rejection) => rejection.into(),
        DecodeResponse::Panicked(message) => {
            Rejection { code: RejectCode::Damaged, message: format!("the decoder crashed: {message}") }.into()
        }
        DecodeResponse::Rendered { .. } | DecodeResponse::Decoded(_) => invalid_response(),
    }
}

fn invalid_response() -> ImageError {
    ImageError::Unavailable("decoder process sent an invalid response".into())
}
