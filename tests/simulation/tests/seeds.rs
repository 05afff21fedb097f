//! A short run of the simulation; the program runs as many seeds as asked for.

use sparks_simulation::{Plan, run};

#[test]
fn no_seed_violates_an_invariant() {
    for seed in 1..=25 {
        let report = run(&Plan::draw(seed), false);
        let replay = format!("cargo run --release -p sparks-simulation -- --seed {seed}");
        assert_eq!(report.violations, Vec::<String>::new(), "replay with: {replay}");
        assert!(report.deliveries > 0, "seed {seed} delivers nothing");
    }
}

/// Seeds that once violated an invariant.
const FORMER: [u64; 16] =
    [23, 82, 83, 224, 781, 1352, 1513, 2315, 2767, 4274, 4663, 5482, 6408, 7295, 204_835, 214_228];

#[test]
fn former_violations_do_not_come_back() {
    for seed in FORMER {
        assert_eq!(run(&Plan::draw(seed), false).violations, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_seed_always_tells_the_same_story() {
    for seed in 26..=28 {
        let plan = Plan::draw(seed);
        let (first, second) = (run(&plan, true), run(&plan, true));
        assert_eq!(first.story, second.story, "seed {seed}");
    }
}
