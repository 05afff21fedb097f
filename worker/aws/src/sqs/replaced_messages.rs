//! What a process knows of messages that were replaced; see `replacement.rs`.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use sparks_engine::MessageId;

/// The number of messages whose latest copies are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The latest copies of messages, and replaced messages that could not be deleted.
#[derive(Debug, Default)]
pub(super) struct ReplacedMessages(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The highest copy number of a message.
    latest: HashMap<MessageId, u32>,
    /// The messages of `latest`, oldest first.
    order: VecDeque<MessageId>,
    /// Replaced messages that could not be deleted: queue URL and receipt.
    undeleted: Vec<(String, String)>,
}

impl ReplacedMessages {
    /// Records that this copy of the message exists or existed, if it has a number.
    pub fn record(&self, id: &MessageId, copy: Option<u32>) {
        let Some(copy) = copy else { return };
        let mut state = self.lock();
        if let Some(latest) = state.latest.get_mut(id) {
            *latest = copy.max(*latest);
            return;
        }
        state.latest.insert(id.clone(), copy);
        state.order.push_back(id.clone());
        if state.order.len() > MAX_REMEMBERED
            && let Some(oldest) = state.order.pop_front()
        {
            state.latest.remove(&oldest);
        }
    }

    /// Returns whether a later copy of the message exists or existed. Nothing is known of copies without a number: one may be the only
    /// copy that is left, so it is processed, and so are all copies of it.
    pub fn is_replaced(&self, id: &MessageId, copy: Option<u32>) -> bool {
        copy.is_some_and(|copy| self.lock().latest.get(id).is_some_and(|latest| *latest > copy))
    }

    /// Adds a replaced message that could not be deleted.
    pub fn add_undeleted(&self, url: &str, receipt: &str) {
        let (entry, mut state) = ((url.to_owned(), receipt.to_owned()), self.lock());
        if !state.undeleted.contains(&entry) {
            state.undeleted.push(entry);
        }
    }

    /// Returns the replaced messages that could not be deleted.
    pub fn undeleted(&self) -> Vec<(String, String)> {
        self.lock().undeleted.clone()
    }

    /// Removes a message that has been deleted, or whose receipt is no longer valid.
    pub fn remove_undeleted(&self, receipt: &str) {
        self.lock().undeleted.retain(|(_, undeleted)| undeleted != receipt);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> MessageId {
        MessageId(format!("message-{n}"))
    }

    #[test]
    fn lower_copies_are_replaced_and_old_messages_forgotten() {
        let replaced = ReplacedMessages::default();
        replaced.record(&id(0), Some(2));
        replaced.record(&id(0), Some(1));
        assert_eq!([0, 1, 2, 3].map(|copy| replaced.is_replaced(&id(0), Some(copy))), [true, true, false, false]);
        replaced.record(&id(0), None);
        assert!(!replaced.is_replaced(&id(0), None), "its number is not known");
        assert!(!replaced.is_replaced(&id(1), Some(0)));
        (1..=MAX_REMEMBERED).for_each(|n| replaced.record(&id(n), Some(1)));
        assert!(!replaced.is_replaced(&id(0), Some(0)) && replaced.is_replaced(&id(1), Some(0)));
    }
}
