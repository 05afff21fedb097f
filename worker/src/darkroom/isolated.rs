//! The darkroom in processes of its own.

use std::time::Duration;

use sparks_config::{Limits, Settings};
use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::{Darkroom, DarkroomError, Description, Developed, Pixels, Rendered};
use sparks_media::Lab;

use super::{
    developer::{Developer, Made, Silence},
    frame::{Answer, Task},
    pool::Pool,
};

/// How many times as long as it may compute a developer may do nothing.
const PATIENCE: u32 = 6;

/// Whatever decodes foreign bytes is done by another process. Headers are read here: that allocates nothing, and loops no
/// longer than the file is.
pub struct Isolated {
    lab: Lab,
    limits: Limits,
    pool: Pool,
}

impl Isolated {
    /// With the same settings here and there.
    pub fn new(lab: Lab, settings: &Settings) -> Self {
        Self { lab, limits: settings.limits.clone(), pool: Pool::new(settings.clone()) }
    }

    /// Has it made by whoever is free. Who dies over it may have been hurt by a photo before: then it is this photo's fault
    /// only if somebody who has seen no other dies over it as well.
    fn make(&self, task: Task, file: &[u8]) -> Result<Made, DarkroomError> {
        match self.try_with(self.pool.take(), task, file) {
            Err(Mishap::Suspicion(_)) => {}
            done => return done.map_err(DarkroomError::from),
        }
        Ok(self.try_with(self.pool.fresh(), task, file)?)
    }

    fn try_with(&self, developer: Result<Developer, String>, task: Task, file: &[u8]) -> Result<Made, Mishap> {
        let mut developer = developer.map_err(|why| Mishap::Others(format!("no process to decode it: {why}")))?;
        let (patience, is_fresh) = (Duration::from_secs(self.limits.max_seconds) * PATIENCE, developer.is_fresh());
        let silence = match developer.make(task, file, patience) {
            Ok(made) => {
                // Whoever has panicked may not be quite as before.
                if !matches!(made.answer, Answer::Panicked(_)) {
                    self.pool.give_back(developer);
                }
                return Ok(made);
            }
            Err(silence) => silence,
        };
        match silence {
            Silence::Stuck(how) => {
                tracing::warn!(how, "a process that decodes is ended");
                Err(Mishap::Others(format!("the process that decodes it does not answer: {how}")))
            }
            Silence::Death(death) => {
                tracing::warn!(status = %death.status, last_words = death.last_words, "a process that decodes died");
                let Some(rejection) = death.rejection(&self.limits) else {
                    return Err(Mishap::Others(format!("the process that decodes it was ended: {death}")));
                };
                // Time is counted for each photo anew, so it was this one that used it up.
                let is_certain = is_fresh || death.is_out_of_time();
                Err(if is_certain { Mishap::Fault(rejection) } else { Mishap::Suspicion(rejection) })
            }
        }
    }
}

impl Darkroom for Isolated {
    fn describe(&self, original: &[u8]) -> Description {
        self.lab.describe(original)
    }

    fn measure(&self, picture: &[u8]) -> Option<(u32, u32)> {
        self.lab.measure(picture)
    }

    fn develop(&self, original: &[u8]) -> Result<Developed, DarkroomError> {
        let Made { answer, pictures } = self.make(Task::Develop, original)?;
        let (Some(mime_type), Answer::Developed { width, height, taken_at, large, medium, pixels }, Ok(pictures)) =
            (self.describe(original).mime_type, &answer, <[_; 3]>::try_from(pictures))
        else {
            return Err(refusal(answer));
        };
        let [large_webp, medium_webp, rgb] = pictures;
        Ok(Developed {
            mime_type,
            width: *width,
            height: *height,
            taken_at: taken_at.clone(),
            large: Rendered { width: large.width, height: large.height, webp: large_webp },
            medium: Rendered { width: medium.width, height: medium.height, webp: medium_webp },
            pixels: pixels.filled(rgb).ok_or_else(nonsense)?,
        })
    }

    fn open(&self, picture: &[u8]) -> Result<Pixels, DarkroomError> {
        let Made { answer, pictures } = self.make(Task::Open, picture)?;
        match (&answer, pictures.into_iter().next()) {
            (Answer::Opened(pixels), Some(rgb)) => pixels.filled(rgb).ok_or_else(nonsense),
            _ => Err(refusal(answer)),
        }
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        self.lab.crop(pixels, bounds)
    }

    fn jpeg(&self, pixels: &Pixels, most_bytes: usize) -> Result<Vec<u8>, Rejection> {
        self.lab.jpeg(pixels, most_bytes)
    }
}

/// Why nothing was made.
enum Mishap {
    /// It is the photo's fault.
    Fault(Rejection),
    /// It looks like it.
    Suspicion(Rejection),
    /// It is not.
    Others(String),
}

impl From<Mishap> for DarkroomError {
    fn from(mishap: Mishap) -> Self {
        match mishap {
            Mishap::Fault(rejection) | Mishap::Suspicion(rejection) => Self::Rejected(rejection),
            Mishap::Others(why) => Self::Unavailable(why),
        }
    }
}

fn refusal(answer: Answer) -> DarkroomError {
    match answer {
        Answer::Rejected(rejection) => rejection.into(),
        Answer::Panicked(words) => {
            Rejection { code: RejectCode::Damaged, message: format!("it makes the decoder crash: {words}") }.into()
        }
        Answer::Developed { .. } | Answer::Opened(_) => nonsense(),
    }
}

fn nonsense() -> DarkroomError {
    DarkroomError::Unavailable("the process that decodes it answers nonsense".into())
}
