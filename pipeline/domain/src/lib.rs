//! What a photo means: identifiers, events, decisions and projections, pure and deterministic
