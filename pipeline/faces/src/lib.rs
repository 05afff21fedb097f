//! Face analyzers: the synthetic one, and none at all
