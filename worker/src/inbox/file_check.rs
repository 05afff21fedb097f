//! Checks whether a file is a complete image.

use std::{fs::File, io, path::Path, sync::Arc};

use sparks_engine::{CpuPool, ImageProcessor};

use super::{
    file_fingerprint::FileFingerprint,
    watchlist::{Stability, StableFile},
};
use crate::upload::{FileContents, Uploader};

/// The result of the check of a file.
pub(super) enum FileCheck {
    /// The file can be uploaded.
    Complete(FileContents),
    /// The file has an unsupported format, for this reason.
    Unsupported(String),
    /// The file may still be growing.
    Incomplete,
    /// The file was changed or removed during the check.
    Changed,
}

impl FileCheck {
    /// Checks the file. One file at a time is in memory.
    pub async fn of(file: &StableFile, uploader: &Uploader, cpu: &CpuPool) -> io::Result<Self> {
        let max_bytes = uploader.max_bytes;
        // A file over the limit is rejected in any case, but only once its writer is done.
        if file.stability == Stability::Short && file.fingerprint.bytes > max_bytes {
            return Ok(Self::Incomplete);
        }
        let (path, fingerprint) = (file.path.clone(), file.fingerprint);
        match tokio::task::spawn_blocking(move || read(&path, fingerprint, max_bytes)).await?? {
            Some(FileContents::Bytes(bytes)) => {
                let (image_processor, stability) = (Arc::clone(&uploader.image_processor), file.stability);
                // A file that makes the decoder panic is incomplete; if it stays as it is, the pipeline rejects it.
                Ok(cpu.run(move || check(image_processor.as_ref(), bytes, stability)).await.unwrap_or(Self::Incomplete))
            }
            Some(too_large) => Ok(Self::Complete(too_large)),
            None => Ok(Self::Changed),
        }
    }
}

/// Reads the file; `None` if its fingerprint is another before or after.
fn read(path: &Path, fingerprint: FileFingerprint, max_bytes: u64) -> io::Result<Option<FileContents>> {
    if FileFingerprint::at(path)? != Some(fingerprint) {
        return Ok(None);
    }
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let is_same = FileFingerprint::of(&file.metadata()?) == Some(fingerprint);
    let contents = is_same.then(|| FileContents::read_open(&mut file, max_bytes)).transpose()?;
    Ok(contents.filter(|_| FileFingerprint::at(path).is_ok_and(|after| after == Some(fingerprint))))
}

fn check(image_processor: &dyn ImageProcessor, bytes: Vec<u8>, stability: Stability) -> FileCheck {
    let is_unsupported = |bytes: &[u8]| !bytes.is_empty() && image_processor.inspect(bytes).mime_type.is_none();
    match stability {
        Stability::Short if has_end_marker(&bytes) && image_processor.decode(&bytes).is_ok() => {
            FileCheck::Complete(FileContents::Bytes(bytes))
        }
        Stability::Short => FileCheck::Incomplete,
        Stability::Long if is_unsupported(&bytes) => {
            let detail = image_processor.decode(&bytes).err().map(|error| format!(" ({error})"));
            FileCheck::Unsupported(format!("not a jpeg, png, webp or gif image{}", detail.unwrap_or_default()))
        }
        Stability::Long => FileCheck::Complete(FileContents::Bytes(bytes)),
    }
}

/// Returns whether the file ends as its format requires. Decoders accept less: the first frame of a GIF, or a motion
/// photo without its video.
fn has_end_marker(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xd8, ..] => {
            let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
            bytes[..bytes.len() - padding].ends_with(&[0xff, 0xd9])
        }
        [0x89, b'P', b'N', b'G', ..] => bytes.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"),
        [b'G', b'I', b'F', ..] => bytes.ends_with(b";"),
        [b'R', b'I', b'F', b'F', a, b, c, d, rest @ ..] => rest.len() >= u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, Frame, ImageFormat, RgbaImage, codecs::gif::GifEncoder};
    use sparks_media::LocalImageProcessor;

    use super::*;

    fn is_complete(bytes: &[u8]) -> bool {
        let checked = check(&LocalImageProcessor::default(), bytes.to_vec(), Stability::Short);
        matches!(checked, FileCheck::Complete(_))
    }

    fn image(format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(24, 16).write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    #[test]
    fn no_prefix_of_an_image_is_complete() {
        for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif] {
            let whole = image(format);
            assert!(is_complete(&whole), "{format:?}");
            for end in 0..whole.len() {
                assert!(!is_complete(&whole[..end]), "{format:?} cut at {end} of {}", whole.len());
            }
        }
    }

    #[test]
    fn an_animation_is_complete_at_its_end() {
        let mut whole = Vec::new();
        let frame = |grey| Frame::new(RgbaImage::from_pixel(8, 8, image::Rgba([grey, grey, grey, 255])));
        GifEncoder::new(&mut whole).encode_frames((0..8).map(|n| frame(n * 30))).unwrap();
        assert!(is_complete(&whole));
        let half = &whole[..whole.len() / 2];
        assert!(LocalImageProcessor::default().decode(half).is_ok(), "its first frame is complete");
        assert!(!is_complete(half));
        assert!(!is_complete(&[&image(ImageFormat::Jpeg)[..], b"the beginning of a video"].concat()));
    }

    #[test]
    fn a_file_that_stays_incomplete_is_uploaded_or_rejected() {
        let after_long = |bytes: &[u8]| check(&LocalImageProcessor::default(), bytes.to_vec(), Stability::Long);
        let whole = image(ImageFormat::Jpeg);
        assert!(
            matches!(after_long(&whole[..whole.len() / 2]), FileCheck::Complete(_)),
            "the pipeline rejects it with the reason"
        );
        assert!(matches!(after_long(b""), FileCheck::Complete(_)));
        let FileCheck::Unsupported(reason) = after_long(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic") else {
            panic!("HEIC is supported")
        };
        assert_eq!(
            reason,
            "not a jpeg, png, webp or gif image \
             (HEIC is not supported: convert it to JPEG, PNG, WebP or GIF)"
        );
    }

    #[test]
    fn a_changed_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        std::fs::write(&path, "x").unwrap();
        let fingerprint = FileFingerprint::at(&path).unwrap().unwrap();
        assert!(read(&path, fingerprint, 10).unwrap().is_some());
        std::fs::write(&path, "xy").unwrap();
        assert!(read(&path, fingerprint, 10).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path, fingerprint, 10).unwrap().is_none());
    }
}
