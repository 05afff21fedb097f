//! The contract of the [`Store`] port.

mod atomicity;
mod commit_conditions;
mod erasure;
mod event_log;
mod group_photos;
mod log_level;
mod query_paging;
mod stored_faces;
mod table_rows;

use std::{future::Future, sync::Arc};

use sparks_engine::Store;

use super::{Report, checks, run};

/// Runs the suite. `make` returns an empty store.
pub async fn store<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Store>>,
{
    let checks = checks![
        atomicity::{
            a_missing_row_rolls_the_commit_back,
            a_taken_number_rolls_the_commit_back,
            a_changed_photo_state_rolls_the_commit_back,
            a_changed_identity_head_rolls_the_commit_back,
        },
        stored_faces::{
            templates_are_returned_once_and_by_whole_events,
            following_the_log_misses_no_template,
            a_stored_face_keeps_its_person,
            an_identified_face_gets_its_person,
            a_failed_commit_identifies_no_face,
            all_faces_of_a_person_are_found,
            templates_of_new_persons_come_with_identity_events,
        },
        erasure::{
            an_erased_photo_leaves_no_signature,
            an_erased_face_leaves_no_signature,
            faces_of_a_photo_are_replaced_in_one_commit,
            a_failed_commit_erases_nothing,
            a_promoted_template_follows_the_read_position,
            a_failed_commit_promotes_no_face,
        },
        group_photos::{
            a_photo_may_have_four_hundred_faces,
            a_photo_may_have_a_thousand_faces,
            an_event_may_have_a_megabyte,
            faces_of_the_most_photos_are_erased_at_once,
        },
        log_level::{
            a_form_above_the_level_is_never_written,
            the_level_rises_with_its_event_and_never_falls,
        },
        commit_conditions::{
            a_photo_is_committed_once,
            a_photo_guard_without_a_photo_event_keeps_the_state,
            an_earlier_version_can_be_committed_again,
            a_stale_identity_head_is_a_conflict,
            a_stale_counter_is_a_conflict,
            photos_of_known_persons_need_no_identity_guard,
            one_of_many_concurrent_commits_of_a_photo_succeeds,
            concurrent_allocations_use_every_number_once,
        },
        event_log::{
            the_log_holds_the_events_that_commits_returned,
            a_photo_state_follows_from_its_events,
            a_photo_event_is_found_by_sequence_number,
            sequences_have_no_gaps_under_concurrency,
            the_log_is_read_completely_in_any_page_size,
            the_identity_tail_holds_exactly_the_identity_events,
            signatures_are_returned_unchanged,
            signatures_of_a_new_version_keep_the_old_ones,
            check_succeeds_and_changes_nothing,
        },
        table_rows::{
            set_keeps_attributes_of_other_writers,
            values_of_every_type_are_returned_unchanged,
            at_least_raises_and_never_lowers,
            deleted_rows_are_removed,
            delete_existing_fails_for_a_missing_row,
            one_of_many_concurrent_delete_existing_succeeds,
            add_changes_one_number_and_nothing_else,
            add_fails_for_a_missing_row,
            batch_get_returns_more_rows_than_one_request,
        },
        query_paging::{
            a_partition_is_paged_in_order,
            a_partition_query_filters_by_sort_key_prefix,
            entity_types_are_paged_in_order,
            uploads_are_paged_in_order,
            indexes_follow_changed_rows,
        },
    ];
    run(checks, make).await
}
