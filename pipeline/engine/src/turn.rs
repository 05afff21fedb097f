//! Whose turn it is: photos that arrive in one order found persons in that order, however many are worked on at once.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

/// Hands out tickets in order of arrival. Strangers get their numbers in this order, so that the same folder gives
/// the same persons whatever the number of jobs; photos of known persons pass without waiting.
#[derive(Clone, Default)]
pub struct Turnstile(Arc<Shared>);

#[derive(Default)]
struct Shared {
    line: Mutex<Line>,
    moved: Notify,
}

#[derive(Default)]
struct Line {
    next: u64,
    waiting: BTreeSet<u64>,
}

/// A place in the line, given up when dropped.
pub struct Ticket {
    place: u64,
    turnstile: Turnstile,
}

impl Turnstile {
    /// The next place in the line.
    pub fn ticket(&self) -> Ticket {
        let mut line = self.0.line.lock().unwrap_or_else(PoisonError::into_inner);
        let place = line.next;
        line.next += 1;
        line.waiting.insert(place);
        Ticket { place, turnstile: self.clone() }
    }
}

impl Ticket {
    /// Whether everybody who came before has left.
    pub fn is_first(&self) -> bool {
        let line = self.turnstile.0.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.waiting.first() == Some(&self.place)
    }

    /// Waits until everybody who came before has left.
    pub async fn first(&self) {
        loop {
            let moved = self.turnstile.0.moved.notified();
            if self.is_first() {
                return;
            }
            moved.await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut line = self.turnstile.0.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.waiting.remove(&self.place);
        drop(line);
        self.turnstile.0.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_waits_for_the_first() {
        let turnstile = Turnstile::default();
        let (first, second) = (turnstile.ticket(), turnstile.ticket());
        assert!(first.is_first() && !second.is_first());
        let waiting = tokio::spawn(async move { second.first().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.expect("the second's turn comes");
    }
}
