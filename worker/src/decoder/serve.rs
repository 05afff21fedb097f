//! The decoder process itself.

use std::{fs::File, io, os::fd::AsFd};

use rustix::process::{Signal, set_parent_process_death_signal};
use sparks_config::Settings;
use sparks_engine::{EncodedVariant, ImageError, ImageProcessor, Pixels, TaskPanicked};
use sparks_media::LocalImageProcessor;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    fault_injection::FaultInjection,
    protocol::{self, DecodeRequest, DecodeResponse, ImageHeader, Operation, Ready},
    resource_limits::ResourceLimits,
};
use crate::wiring;

/// Serves requests from standard input until it is closed.
pub fn serve() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_name(c"sparks-decoder")?;
    ignore_stop_signals()?;
    // Files, because standard output is line-buffered, which is slow for images.
    let mut requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut responses = File::from(io::stdout().as_fd().try_clone_to_owned()?);

    let settings: Settings = protocol::read(&mut requests)?;
    let (processor, faults) = (wiring::local_image_processor(&settings), FaultInjection::from_environment());
    let limits = ResourceLimits::new(&settings.limits)?;
    protocol::write(&mut responses, &Ready, &[])?;
    loop {
        limits.limit_cpu()?;
        let Some(DecodeRequest { operation, bytes }) = protocol::read_or_end(&mut requests)? else { return Ok(()) };
        limits.limit_memory(bytes)?;
        let file = protocol::read_bytes(&mut requests, bytes)?;
        let decoded = TaskPanicked::catch(|| {
            if let Some(faults) = &faults {
                faults.trigger(&file);
            }
            execute(&processor, operation, &file)
        });
        let (response, images) = match decoded {
            Ok(Ok(decoded)) => decoded,
            Ok(Err(ImageError::Rejected(rejection))) => (DecodeResponse::Rejected(rejection), Vec::new()),
            Ok(Err(ImageError::Unavailable(reason))) => return Err(io::Error::other(reason)),
            Err(panicked) => (DecodeResponse::Panicked(panicked.to_string()), Vec::new()),
        };
        drop(file);
        let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
        protocol::write(&mut responses, &response, &images)?;
    }
}

/// Returns the response and the images that follow it.
fn execute(
    processor: &LocalImageProcessor,
    operation: Operation,
    file: &[u8],
) -> Result<(DecodeResponse, Vec<Vec<u8>>), ImageError> {
    Ok(match operation {
        Operation::Render => {
            let rendered = processor.render(file)?;
            let response = DecodeResponse::Rendered {
                width: rendered.width,
                height: rendered.height,
                taken_at: rendered.taken_at,
                large: variant_header(&rendered.large),
                medium: variant_header(&rendered.medium),
                pixels: pixels_header(&rendered.pixels),
            };
            (response, vec![rendered.large.webp, rendered.medium.webp, rendered.pixels.rgb])
        }
        Operation::Decode => {
            let pixels = processor.decode(file)?;
            (DecodeResponse::Decoded(pixels_header(&pixels)), vec![pixels.rgb])
        }
    })
}

fn variant_header(variant: &EncodedVariant) -> ImageHeader {
    ImageHeader { width: variant.width, height: variant.height, bytes: variant.webp.len() }
}

fn pixels_header(pixels: &Pixels) -> ImageHeader {
    ImageHeader { width: pixels.width, height: pixels.height, bytes: pixels.rgb.len() }
}

/// Ignores SIGTERM and SIGINT, which a supervisor may send to all processes of the service. The worker needs this
/// process for its photos in progress, and closes standard input when they are done.
fn ignore_stop_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    // Tokio never restores the default action, even after its listener is dropped.
    drop(signal(SignalKind::terminate())?);
    drop(signal(SignalKind::interrupt())?);
    Ok(())
}
