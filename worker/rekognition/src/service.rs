//! From a request to its answer.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use serde_json::Value;
use sparks_engine::{Cpu, Crashed, Darkroom, FaceEngine};

use crate::{
    folder::OpenError,
    looker::Looker,
    model::Model,
    operations::{Circumstances, Desk, Named},
    options::{Options, Throttle, TooMany, Trouble},
    protocol::{Asked, response},
    refusal::{Kind, Refusal},
    shelf::{Shelf, fresh_id},
    signing::caller,
    throttle::Bucket,
};

/// Rekognition over a face engine: collections, and how requests are met.
pub struct Service {
    desk: Arc<Desk>,
    cpu: Cpu,
    state: Mutex<State>,
}

/// What changes from request to request.
#[derive(Default)]
struct State {
    options: Options,
    bucket: Option<Bucket>,
    calls: BTreeMap<String, u64>,
}

impl Service {
    /// With collections in memory, gone at the end.
    pub fn new(engine: Arc<dyn FaceEngine>, darkroom: Arc<dyn Darkroom>, model: Model, options: Options) -> Self {
        Self::over(Shelf::in_memory(), engine, darkroom, model, options)
    }

    /// With collections in a folder, which is made where it is not there.
    pub fn open(
        engine: Arc<dyn FaceEngine>,
        darkroom: Arc<dyn Darkroom>,
        model: Model,
        options: Options,
        folder: &Path,
    ) -> Result<Self, OpenError> {
        let shelf = Shelf::open(folder, model.version())?;
        Ok(Self::over(shelf, engine, darkroom, model, options))
    }

    fn over(
        shelf: Shelf,
        engine: Arc<dyn FaceEngine>,
        darkroom: Arc<dyn Darkroom>,
        model: Model,
        options: Options,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let desk = Desk { looker: Looker::new(engine, darkroom), model, shelf };
        let state = Mutex::new(State { options, ..State::default() });
        Self { desk: Arc::new(desk), cpu: Cpu::new(cores), state }
    }

    /// How requests are met now.
    pub fn options(&self) -> Options {
        self.state().options.clone()
    }

    /// How requests are met from now on.
    pub fn set(&self, options: Options) {
        let mut state = self.state();
        state.options = options;
        state.bucket = None;
    }

    /// How often each operation was asked for, whatever the answer was.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.state().calls.clone()
    }

    /// Forgets collections, counts and options.
    pub fn reset(&self) {
        *self.state() = State::default();
        self.desk.shelf.clear();
    }

    /// Answers a request that came whole, or the reason why it did not.
    pub(crate) async fn respond(&self, asked: Result<Asked, Refusal>) -> Response<Full<Bytes>> {
        let (id, begun) = (fresh_id(), Instant::now());
        let operation = asked.as_ref().ok().and_then(|asked| asked.operation().ok());
        let answer = match asked {
            Ok(asked) => self.answer(asked).await,
            Err(refusal) => Err(refusal),
        };
        tracing::debug!(
            request = %id,
            operation = operation.map_or("-", |operation| operation.name),
            answer = answer.as_ref().map_or_else(|refusal| refusal.kind.name(), |_| "OK"),
            millis = begun.elapsed().as_millis() as u64,
            "answered"
        );
        response(id, answer)
    }

    async fn answer(&self, asked: Asked) -> Result<Value, Refusal> {
        let operation = asked.operation();
        let options = self.count(operation.as_ref().ok().map(|operation| operation.name));
        if options.trouble == Some(Trouble::Outage) {
            return Err(Refusal::internal());
        }
        let now = jiff::Timestamp::now().as_second();
        let caller = caller(&asked.headers, &asked.body, options.keys.as_ref(), now)?;
        let operation = operation?;
        if options.trouble == Some(Trouble::Denied) {
            let (name, region, user) = (operation.name, &caller.region, &caller.access_key);
            let text = format!(
                "User: arn:aws:iam::000000000000:user/{user} is not authorized to perform: rekognition:{name} on \
                 resource: arn:aws:rekognition:{region}:000000000000:collection/*"
            );
            return Err(Refusal::new(Kind::AccessDenied, text));
        }
        self.throttle(options.throttle)?;
        let circumstances = Circumstances { caller, visibility_delay: options.visibility_delay };
        self.perform(operation, circumstances, asked.body).await
    }

    /// Notes a call, and tells how it is met.
    fn count(&self, operation: Option<&str>) -> Options {
        let mut state = self.state();
        if let Some(operation) = operation {
            *state.calls.entry(operation.to_owned()).or_default() += 1;
        }
        state.options.clone()
    }

    fn throttle(&self, throttle: Option<Throttle>) -> Result<(), Refusal> {
        let Some(Throttle { per_second, answer }) = throttle else { return Ok(()) };
        let now = Instant::now();
        let mut state = self.state();
        let bucket = state.bucket.get_or_insert_with(|| Bucket::full(per_second, now));
        match answer {
            _ if bucket.take(per_second, now) => Ok(()),
            TooMany::Throttling => {
                Err(Refusal::new(Kind::Throttling, "Slow down; sudden increase in rate of requests."))
            }
            TooMany::ProvisionedThroughput => {
                Err(Refusal::new(Kind::ProvisionedThroughputExceeded, "Provisioned rate exceeded."))
            }
        }
    }

    /// Photos are looked at on cores of their own, so that lists do not wait for them.
    async fn perform(&self, operation: Named, circumstances: Circumstances, body: Bytes) -> Result<Value, Refusal> {
        let desk = Arc::clone(&self.desk);
        let work = move || operation.run(&desk, &circumstances, &body);
        if operation.looks {
            return self.cpu.run(work).await?;
        }
        let work = move || Crashed::catch(work);
        tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::internal())??
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
