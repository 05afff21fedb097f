//! A process that decodes photos, as it sees itself.

use std::{fs::File, io, os::fd::AsFd};

use rustix::process::{Signal, set_parent_process_death_signal};
use sparks_config::Settings;
use sparks_engine::{Crashed, Darkroom, DarkroomError, Pixels, Rendered};
use sparks_media::Lab;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    confines::Confines,
    frame::{self, Answer, Order, Picture, Ready, Task},
    hurt::Hurt,
};
use crate::wiring;

/// Decodes what standard input asks for, until that is closed.
pub fn serve() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_name(c"sparks-darkroom")?;
    outlast_the_worker()?;
    // Without the line buffer of standard output, which is no good for pictures.
    let mut orders = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);

    let settings: Settings = frame::read(&mut orders)?;
    let (lab, hurt) = (wiring::lab(&settings), Hurt::allowed());
    let confines = Confines::enter(&settings.limits)?;
    frame::write(&mut answers, &Ready, &[])?;
    loop {
        confines.renew()?;
        let Some(Order { task, bytes }) = frame::read_or_end(&mut orders)? else { return Ok(()) };
        confines.make_room(bytes)?;
        let file = frame::bytes(&mut orders, bytes)?;
        let made = Crashed::catch(|| {
            if let Some(hurt) = &hurt {
                hurt.by(&file);
            }
            make(&lab, task, &file)
        });
        let (answer, pictures) = match made {
            Ok(Ok(made)) => made,
            Ok(Err(DarkroomError::Rejected(rejection))) => (Answer::Rejected(rejection), Vec::new()),
            Ok(Err(DarkroomError::Unavailable(why))) => return Err(io::Error::other(why)),
            Err(crashed) => (Answer::Panicked(crashed.to_string()), Vec::new()),
        };
        drop(file);
        let pictures: Vec<&[u8]> = pictures.iter().map(Vec::as_slice).collect();
        frame::write(&mut answers, &answer, &pictures)?;
    }
}

fn make(lab: &Lab, task: Task, file: &[u8]) -> Result<(Answer, Vec<Vec<u8>>), DarkroomError> {
    Ok(match task {
        Task::Develop => {
            let made = lab.develop(file)?;
            let answer = Answer::Developed {
                width: made.width,
                height: made.height,
                taken_at: made.taken_at,
                large: rendered(&made.large),
                medium: rendered(&made.medium),
                pixels: opened(&made.pixels),
            };
            (answer, vec![made.large.webp, made.medium.webp, made.pixels.rgb])
        }
        Task::Open => {
            let pixels = lab.open(file)?;
            (Answer::Opened(opened(&pixels)), vec![pixels.rgb])
        }
    })
}

fn rendered(picture: &Rendered) -> Picture {
    Picture { width: picture.width, height: picture.height, bytes: picture.webp.len() }
}

fn opened(pixels: &Pixels) -> Picture {
    Picture { width: pixels.width, height: pixels.height, bytes: pixels.rgb.len() }
}

/// Who stops a service may tell all its processes. The worker then finishes what it has in hand, and needs us for it; it closes
/// our standard input when it is done.
fn outlast_the_worker() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    // Once somebody has listened, a signal never has its usual effect again.
    drop(signal(SignalKind::terminate())?);
    drop(signal(SignalKind::interrupt())?);
    Ok(())
}
