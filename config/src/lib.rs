//! Typed settings, layered: defaults, file, environment, flags
