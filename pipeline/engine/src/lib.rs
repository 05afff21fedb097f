//! The ports, the stages of a photo and the use cases
