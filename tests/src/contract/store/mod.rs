//! What a store promises.

mod atomicity;
mod erasure;
mod faces;
mod guards;
mod log;
mod paging;
mod rows;

use std::{future::Future, sync::Arc};

use sparks_engine::Store;

use super::{Report, checks, run};

/// Tries a store. Each check gets one that is empty.
pub async fn store<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Store>>,
{
    let checks = checks![
        atomicity::{
            a_missing_row_undoes_the_whole_commit,
            a_taken_number_undoes_the_whole_commit,
            a_moved_photo_undoes_the_whole_commit,
            moved_persons_undo_the_whole_commit,
        },
        faces::{
            templates_come_once_and_events_whole,
            what_few_photos_teach_is_not_missed,
            a_face_keeps_who_it_was_decided_to_be,
            an_identified_face_is_somebodys,
            a_refused_commit_identifies_nobody,
            all_faces_of_a_person_are_found,
            founders_are_learnt_with_their_persons,
        },
        erasure::{
            an_erased_photo_leaves_no_signature,
            an_erased_face_leaves_no_signature,
            faces_of_a_photo_are_replaced_in_one_commit,
            a_refused_commit_erases_nothing,
            a_promoted_face_is_learnt_by_whoever_had_read_on,
            a_refused_commit_promotes_nobody,
        },
        guards::{
            a_photo_is_committed_once,
            a_photo_guard_without_a_photo_event_changes_nothing,
            a_version_that_comes_back_is_committed_again,
            the_identity_guard_watches_the_head,
            the_identity_guard_watches_the_counter,
            known_persons_need_no_guard,
            of_many_who_commit_a_photo_one_does,
            numbers_given_out_at_once_are_given_once,
        },
        log::{
            the_log_keeps_what_the_commit_returned,
            a_photo_is_what_its_events_made_of_it,
            a_photos_event_is_found_by_its_place,
            sequences_have_no_gaps_under_concurrency,
            the_log_is_read_whole_in_pages_of_any_size,
            identity_is_complete_and_nothing_else,
            signatures_come_back_as_they_were,
            signatures_of_a_new_version_stand_beside_the_old,
            a_store_that_works_says_so_and_changes_nothing,
        },
        rows::{
            attributes_of_others_survive_a_change,
            values_of_every_kind_come_back,
            floors_raise_and_never_lower,
            deleted_rows_are_gone,
            only_rows_that_are_there_are_taken,
            of_many_who_take_a_row_one_does,
            adding_changes_the_number_and_nothing_else,
            only_rows_that_are_there_are_added_to,
            many_rows_are_got_at_once,
        },
        paging::{
            a_partition_is_walked_in_order,
            sort_keys_are_narrowed_by_their_beginning,
            entity_types_are_walked_in_order,
            uploads_are_walked_in_order,
            changed_rows_change_their_index,
        },
    ];
    run(checks, make).await
}
