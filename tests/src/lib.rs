//! What the tests share: contract suites that every adapter must pass, decorators that break a port on purpose or let it lag behind, small
//! albums of marker faces, somebody who listens, what another worker left behind, what users of the platform do, one by one and all together, a worker in miniature, a cloud on this machine, and pictures of a data folder to compare.

pub mod album;
pub mod binary;
pub mod contract;
pub mod dynoxide;
pub mod emulator;
pub mod faults;
pub mod fuzzed;
pub mod guest;
pub mod lagging;
pub mod legacy;
pub mod notices;
pub mod pinecone;
pub mod platform;
pub mod proxy;
pub mod rekognition;
pub mod samples;
pub mod snapshot;
pub mod venv;
pub mod worker;
