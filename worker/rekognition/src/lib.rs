//! A server with the API of Amazon Rekognition over a local face engine, for development and tests with any AWS client
//!
//! Requests are signed JSON over HTTP (AWS JSON 1.1). Every member of a request is validated by the constraints of the service's
//! API model. Responses contain only members of the model; attributes that the engine does not compute are omitted.

mod api_error;
mod collection_folder;
mod collection_store;
mod face_detail;
mod face_model;
mod indexed_faces;
mod member_reader;
mod operations;
mod page_token;
mod photo_analyzer;
mod pose;
mod protocol;
mod quality_filter;
mod request_image;
mod request_members;
mod server;
mod server_options;
mod service;
mod sigv4;
mod token_bucket;

pub use collection_folder::OpenError;
pub use face_model::{InvalidModel, Model};
pub use server::Server;
pub use server_options::{InjectedFailure, Options, SigningKeys, Throttle, ThrottleError};
pub use service::Service;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests;
