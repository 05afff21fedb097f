//! Arrival order: photos that allocate persons commit in the order in which they were received.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use sparks_domain::Timestamp;
use tokio::sync::Notify;

/// Hands out slots in order of arrival. New persons are numbered in this order, so that the same folder gives the same person IDs
/// with any number of jobs. Photos of known persons never wait.
#[derive(Clone, Default)]
pub struct ArrivalOrder(Arc<Shared>);

#[derive(Default)]
struct Shared {
    slots: Mutex<Slots>,
    released: Notify,
}

#[derive(Default)]
struct Slots {
    next: u64,
    open: BTreeSet<u64>,
}

/// The place of a message in the order, released on drop.
pub struct ArrivalSlot {
    /// When the message was sent.
    pub sent: Timestamp,
    position: u64,
    order: ArrivalOrder,
}

impl ArrivalOrder {
    /// Returns the next slot, for a message sent then.
    pub fn slot(&self, sent: Timestamp) -> ArrivalSlot {
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let position = slots.next;
        slots.next += 1;
        slots.open.insert(position);
        ArrivalSlot { sent, position, order: self.clone() }
    }
}

impl ArrivalSlot {
    /// Returns whether every earlier slot is released.
    pub fn is_next(&self) -> bool {
        let slots = self.order.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.open.first() == Some(&self.position)
    }

    /// Waits until every earlier slot is released.
    pub async fn wait_until_next(&self) {
        loop {
            let released = self.order.0.released.notified();
            if self.is_next() {
                return;
            }
            released.await;
        }
    }
}

impl Drop for ArrivalSlot {
    fn drop(&mut self) {
        let mut slots = self.order.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.open.remove(&self.position);
        drop(slots);
        self.order.0.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_slot_waits_for_the_first() {
        let order = ArrivalOrder::default();
        let (first, second) = (order.slot(Timestamp::from_millis(0)), order.slot(Timestamp::from_millis(1)));
        assert!(first.is_next() && !second.is_next());
        let waiting = tokio::spawn(async move { second.wait_until_next().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.expect("the second slot is next");
    }
}
