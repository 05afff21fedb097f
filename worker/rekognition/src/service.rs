//! The service: authenticates, throttles and performs requests.

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
use sparks_engine::{CpuPool, FaceEngine, ImageProcessor, TaskPanicked};

use crate::{
    api_error::{ApiError, ErrorCode},
    collection_folder::OpenError,
    collection_store::{CollectionStore, random_id},
    face_model::Model,
    operations::{NamedOperation, RequestContext, ServiceContext},
    photo_analyzer::PhotoAnalyzer,
    protocol::{ApiRequest, response},
    server_options::{InjectedFailure, Options, Throttle, ThrottleError},
    sigv4::authenticate,
    token_bucket::TokenBucket,
};

/// The Rekognition service over a face engine.
pub struct Service {
    context: Arc<ServiceContext>,
    cpu: CpuPool,
    state: Mutex<State>,
}

/// Mutable state of the service.
#[derive(Default)]
struct State {
    options: Options,
    bucket: Option<TokenBucket>,
    calls: BTreeMap<String, u64>,
}

impl Service {
    /// Creates a service with collections in memory.
    pub fn new(
        engine: Arc<dyn FaceEngine>,
        image_processor: Arc<dyn ImageProcessor>,
        model: Model,
        options: Options,
    ) -> Self {
        Self::with_collections(CollectionStore::in_memory(), engine, image_processor, model, options)
    }

    /// Creates a service with collections in a folder, which is created if it does not exist.
    pub fn open(
        engine: Arc<dyn FaceEngine>,
        image_processor: Arc<dyn ImageProcessor>,
        model: Model,
        options: Options,
        folder: &Path,
    ) -> Result<Self, OpenError> {
        let collections = CollectionStore::open(folder, model.version())?;
        Ok(Self::with_collections(collections, engine, image_processor, model, options))
    }

    fn with_collections(
        collections: CollectionStore,
        engine: Arc<dyn FaceEngine>,
        image_processor: Arc<dyn ImageProcessor>,
        model: Model,
        options: Options,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let context = ServiceContext { analyzer: PhotoAnalyzer::new(engine, image_processor), model, collections };
        let state = Mutex::new(State { options, ..State::default() });
        Self { context: Arc::new(context), cpu: CpuPool::new(cores), state }
    }

    /// Returns the current options.
    pub fn options(&self) -> Options {
        self.state().options.clone()
    }

    /// Replaces the options.
    pub fn set_options(&self, options: Options) {
        let mut state = self.state();
        state.options = options;
        state.bucket = None;
    }

    /// Returns the number of requests per operation, including failed ones.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.state().calls.clone()
    }

    /// Resets collections, counters and options.
    pub fn reset(&self) {
        *self.state() = State::default();
        self.context.collections.clear();
    }

    /// Responds to a request, or to one that could not be read.
    pub(crate) async fn respond(&self, request: Result<ApiRequest, ApiError>) -> Response<Full<Bytes>> {
        let (id, start) = (random_id(), Instant::now());
        let operation = request.as_ref().ok().and_then(|request| request.operation().ok());
        let result = match request {
            Ok(request) => self.handle(request).await,
            Err(error) => Err(error),
        };
        tracing::debug!(
            request = %id,
            operation = operation.map_or("-", |operation| operation.name),
            result = result.as_ref().map_or_else(|error| error.code.name(), |_| "OK"),
            millis = start.elapsed().as_millis() as u64,
            "request completed"
        );
        response(id, result)
    }

    async fn handle(&self, request: ApiRequest) -> Result<Value, ApiError> {
        let operation = request.operation();
        let options = self.count_request(operation.as_ref().ok().map(|operation| operation.name));
        if options.injected_failure == Some(InjectedFailure::Outage) {
            return Err(ApiError::internal());
        }
        let now = jiff::Timestamp::now().as_second();
        let caller = authenticate(&request.headers, &request.body, options.keys.as_ref(), now)?;
        let operation = operation?;
        if options.injected_failure == Some(InjectedFailure::AccessDenied) {
            let (name, region, user) = (operation.name, &caller.region, &caller.access_key);
            let text = format!(
                "User: arn:aws:iam::000000000000:user/{user} is not authorized to perform: rekognition:{name} on \
                 resource: arn:aws:rekognition:{region}:000000000000:collection/*"
            );
            return Err(ApiError::new(ErrorCode::AccessDenied, text));
        }
        self.throttle(options.throttle)?;
        let context = RequestContext { caller, visibility_delay: options.visibility_delay };
        self.perform(operation, context, request.body).await
    }

    /// Counts a request and returns the options that apply to it.
    fn count_request(&self, operation: Option<&str>) -> Options {
        let mut state = self.state();
        if let Some(operation) = operation {
            *state.calls.entry(operation.to_owned()).or_default() += 1;
        }
        state.options.clone()
    }

    fn throttle(&self, throttle: Option<Throttle>) -> Result<(), ApiError> {
        let Some(Throttle { per_second, error }) = throttle else { return Ok(()) };
        let now = Instant::now();
        let mut state = self.state();
        let bucket = state.bucket.get_or_insert_with(|| TokenBucket::full(per_second, now));
        match error {
            _ if bucket.take(per_second, now) => Ok(()),
            ThrottleError::Throttling => {
                Err(ApiError::new(ErrorCode::Throttling, "Slow down; sudden increase in rate of requests."))
            }
            ThrottleError::ProvisionedThroughput => {
                Err(ApiError::new(ErrorCode::ProvisionedThroughputExceeded, "Provisioned rate exceeded."))
            }
        }
    }

    /// Runs an operation: on the CPU pool if it analyzes photos, so that others do not wait for them.
    async fn perform(
        &self,
        operation: NamedOperation,
        request: RequestContext,
        body: Bytes,
    ) -> Result<Value, ApiError> {
        let context = Arc::clone(&self.context);
        let work = move || operation.run(&context, &request, &body);
        if operation.analyzes_photos {
            return self.cpu.run(work).await?;
        }
        let work = move || TaskPanicked::catch(work);
        tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::internal())??
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
