//! Port contracts on the embedded adapters, and the pipeline over them under crashes, outages, races and redelivery.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test may stop at the first unexpected result")]

mod ports {
    mod adoption;
    mod concurrent_deletion;
    mod consolidation_load;
    mod contract_detects_broken_maintenance;
    mod contract_detects_broken_objects;
    mod contract_detects_broken_queue;
    mod contract_detects_broken_store;
    mod data_folders;
    mod deletion_crash;
    mod embedded_adapters;
    mod face_review;
    mod golden_messages;
    mod group_photos;
    mod late_effects;
    mod log_level;
    mod memory_adapters;
    mod merge_crash;
    mod merge_failures;
    mod message_fuzzing;
    mod person_allocation;
    mod person_erasure;
    mod person_merge;
    mod photo_crash;
    mod photo_deletion;
    mod photo_versions;
    mod processed_album;
    mod profile_pictures;
    mod rebuild;
    mod rebuild_after_deletion;
    mod rebuild_interleavings;
    mod redelivery;
    mod schema_migration;
    mod stale_indexes;
    mod unmerge_after_removal;
    mod unmerge_interleavings;
}
