//! Many workers that meet only new faces.

use sparks_simulation::{Crowd, Plan, run};

#[test]
fn fifty_workers_allocate_persons_with_few_conflicts() {
    for crowd in Crowd::ALL {
        let report = run(&Plan::crowd(1, 50, crowd), false);
        assert_eq!(report.violations, Vec::<String>::new(), "{crowd:?}");
        let (conflicts, photos) = (report.contention.identity_conflicts, Plan::crowd_photos(50) as u64);
        assert!(conflicts < 2 * photos, "{crowd:?}: {conflicts} conflicts for {photos} photos");
        assert_eq!(report.deliveries, photos, "{crowd:?}: a photo was deferred");
    }
}
