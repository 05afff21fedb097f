//! Short plans that once violated an invariant.

use std::time::Duration;

use crate::{
    face_service::ServiceKind,
    features::Features,
    link::{Conditions, Service},
    photo_content::Look,
    plan::{Notice, Plan, Step},
    run,
};

const A: Look = Look { identity: 0, look: 0 };
const B: Look = Look { identity: 1, look: 0 };
const C: Look = Look { identity: 0, look: 1 };

/// Returns a plan for one worker that processes one message at a time, without steps.
fn plan(face_service: Option<ServiceKind>) -> Plan {
    Plan {
        seed: 1,
        workers: 1,
        old_workers: 0,
        slots: 1,
        lanes: 3,
        index_lag: Duration::ZERO,
        half_visible: Duration::ZERO,
        duplicates: 0.0,
        features: Features { face_service, ..Features::default() },
        steps: Vec::new(),
    }
}

/// Returns these steps, 20 seconds apart.
fn apart(steps: Vec<Step>) -> Vec<(Duration, Step)> {
    let at = |n: usize| Duration::from_secs(1 + 20 * n as u64);
    steps.into_iter().enumerate().map(|(n, step)| (at(n), step)).collect()
}

/// Runs these steps, 20 seconds apart, with one worker.
fn violations(face_service: Option<ServiceKind>, steps: Vec<Step>) -> Vec<String> {
    run(&Plan { steps: apart(steps), ..plan(face_service) }, false).violations
}

fn upload(faces: &[Look], is_damaged: bool) -> Step {
    upload_of(1, faces, is_damaged)
}

fn upload_of(photo: u64, faces: &[Look], is_damaged: bool) -> Step {
    let notice = Notice { is_complete: true, delay: Duration::ZERO, row_delay: Duration::ZERO };
    Step::Upload { photo, faces: faces.to_vec(), is_damaged, notice }
}

fn profile(face: Look) -> Step {
    Step::Profile { user: 0, face, is_damaged: false, is_object_event: false, delay: Duration::ZERO }
}

#[test]
fn a_redelivered_message_about_an_earlier_profile_picture_changes_nothing() {
    let steps = vec![profile(A), profile(B), Step::Redeliver { message: 0 }];
    assert_eq!(violations(None, steps), Vec::<String>::new());
}

#[test]
fn a_face_service_forgets_the_faces_of_an_earlier_version() {
    let steps = vec![upload(&[A], false), upload(&[A], false)];
    assert_eq!(violations(Some(ServiceKind::Signatures), steps), Vec::<String>::new());
}

#[test]
fn a_new_decision_does_not_undo_the_rejection_of_a_later_version() {
    let steps = vec![upload(&[A], false), upload(&[A], true), Step::Redecide { killed_after: None }];
    assert_eq!(violations(None, steps), Vec::<String>::new());
}

#[test]
fn a_repeated_redecision_publishes_what_an_interrupted_one_committed() {
    let outage = Conditions { is_outage: true, ..Conditions::default() };
    let steps = vec![
        upload(&[A], false),
        Step::ServiceConditions(Service::Publisher, outage),
        Step::Redecide { killed_after: None },
        // All faults end with the last step.
        Step::Consolidate,
    ];
    assert_eq!(violations(None, steps), Vec::<String>::new());
}

#[test]
fn a_repeated_redecision_keeps_templates_of_the_former_model_at_a_service() {
    let redecide = || Step::Redecide { killed_after: None };
    let steps =
        vec![upload_of(4, &[C, B], false), upload(&[A, B], false), redecide(), Step::Remove { photo: 4 }, redecide()];
    assert_eq!(violations(Some(ServiceKind::Signatures), steps), Vec::<String>::new());
}

#[test]
fn after_an_unmerge_each_person_has_a_template_at_a_service() {
    let steps = vec![
        upload_of(1, &[A], false),
        upload_of(2, &[C], false),
        Step::Merge { identity: 0 },
        Step::Remove { photo: 1 },
        Step::Unmerge { merge: 0 },
    ];
    assert_eq!(violations(Some(ServiceKind::Pixels), steps), Vec::<String>::new());
}

/// A refresh for another message must not make a decision about missing rows look newer than it is.
#[test]
fn a_merge_beside_redeliveries_leaves_no_row_of_the_merged_person() {
    for delay in 0..100 {
        let steps = vec![upload_of(1, &[A], false), upload_of(2, &[C], false), upload_of(3, &[B], false)];
        let mut steps = apart(steps);
        let at = Duration::from_secs(60);
        steps.extend([1, 0, 2, 1, 2, 0, 1, 2].map(|message| (at, Step::Redeliver { message })));
        steps.push((at + Duration::from_millis(delay), Step::Merge { identity: 0 }));
        let plan = Plan { seed: delay, slots: 4, steps, ..plan(None) };
        assert_eq!(run(&plan, false).violations, Vec::<String>::new(), "merged after {delay} ms");
    }
}

/// The copy of a message is processed after the message was acknowledged, and the worker dies: nothing repeats what it removed.
#[test]
fn a_worker_that_dies_over_a_copy_of_a_message_leaves_the_templates_of_the_photo() {
    for delay in (0..600).step_by(3) {
        let mut steps = apart(vec![upload_of(2, &[A], false), upload(&[A, B], false), upload(&[B, C], false)]);
        steps.push((Duration::from_secs(41) + Duration::from_millis(delay), Step::Kill { worker: 0 }));
        let plan = Plan { seed: delay, slots: 2, duplicates: 1.0, steps, ..plan(Some(ServiceKind::Signatures)) };
        assert_eq!(run(&plan, false).violations, Vec::<String>::new(), "killed after {delay} ms");
    }
}
