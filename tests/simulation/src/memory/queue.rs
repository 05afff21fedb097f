//! A queue in memory, with the guarantees of an SQS standard queue: at least once, in no certain order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{
    Cause, Clock, DeadLetter, DeadLetters, Delivery, MessageId, Queue, QueueDepth, QueueError, Settlement,
};
use tokio::{sync::Notify, time::Instant};

/// A queue in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryQueue {
    state: Arc<Mutex<State>>,
    /// Notified of each message that is sent.
    sent: Arc<Notify>,
    clock: Arc<dyn Clock>,
    config: MemoryQueueConfig,
}

/// How a queue behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryQueueConfig {
    /// The visibility timeout.
    pub visibility_timeout: Duration,
    /// Receives without settlement after which a message is a dead letter.
    pub max_crashes: u32,
    /// The probability that a message is delivered although another worker holds it.
    pub duplicates: f64,
    /// Whether messages are received in any order, instead of by the time since which they are visible.
    pub is_unordered: bool,
}

#[derive(Default)]
struct State {
    messages: BTreeMap<u64, Message>,
    dead: BTreeMap<u64, DeadLetter>,
    sent: u64,
    leases: u64,
    deliveries: u64,
    /// How often each message was acknowledged or became a dead letter.
    endings: BTreeMap<u64, u32>,
    /// Leases that clients know to be settled.
    confirmed: BTreeSet<u64>,
    /// Leases that clients settled once more although they knew.
    settled_again: Vec<u64>,
}

struct Message {
    body: String,
    sent: Timestamp,
    visible: Instant,
    /// When it was sent, or released.
    waiting_since: Timestamp,
    receives: u32,
    crashes: u32,
    /// Leases that may settle the message: the last, and duplicates.
    leases: Vec<u64>,
    is_delayed: bool,
}

impl MemoryQueue {
    /// Creates an empty queue.
    pub fn new(clock: Arc<dyn Clock>, config: MemoryQueueConfig) -> Self {
        Self { state: Arc::default(), sent: Arc::default(), clock, config }
    }

    /// Sends a message that becomes visible after this delay.
    pub fn send_after(&self, body: &str, delay: Duration) -> MessageId {
        self.add(body, self.clock.now(), delay)
    }

    /// Delivers a message that was sent at this time once more, as if it had never been acknowledged.
    pub fn send_again(&self, body: &str, sent: Timestamp) -> MessageId {
        self.add(body, sent, Duration::ZERO)
    }

    fn add(&self, body: &str, sent: Timestamp, delay: Duration) -> MessageId {
        let mut state = self.lock();
        state.sent += 1;
        let id = state.sent;
        let message = Message {
            body: body.to_owned(),
            sent,
            visible: Instant::now() + delay,
            waiting_since: sent,
            receives: 0,
            crashes: 0,
            leases: Vec::new(),
            is_delayed: false,
        };
        state.messages.insert(id, message);
        self.sent.notify_waiters();
        message_id(id)
    }

    /// Returns the number of messages that are not settled.
    pub fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// Returns whether every message is settled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits while there is no message, visible or not.
    pub async fn wait_while_empty(&self) {
        while self.is_empty() {
            self.sent.notified().await;
        }
    }

    /// Returns the number of deliveries so far.
    pub fn deliveries(&self) -> u64 {
        self.lock().deliveries
    }

    /// Returns what does not hold of settlements: every message ends once, and no client settles a lease again
    /// after the queue has confirmed it.
    pub fn violations(&self) -> Vec<String> {
        let state = self.lock();
        let endings = |id: u64| state.endings.get(&id).copied().unwrap_or_default();
        let not_once = (1..=state.sent).filter(|id| endings(*id) != 1);
        let messages = not_once.map(|id| format!("message {id} was settled {} times", endings(id)));
        let leases = state.settled_again.iter().map(|lease| format!("lease {lease} was settled again"));
        messages.chain(leases).collect()
    }

    /// Records that a client received the confirmation of a settlement.
    pub fn confirm_settlement(&self, delivery: &Delivery) {
        self.lock().confirmed.extend(delivery.receipt.parse::<u64>());
    }

    /// Returns all dead letters.
    pub fn dead(&self) -> Vec<DeadLetter> {
        self.lock().dead.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_lease(&self, delivery: &Delivery, work: impl FnOnce(&mut State, u64)) -> Result<(), QueueError> {
        let mut state = self.lock();
        let (id, lease) = (number(&delivery.id), delivery.receipt.parse().unwrap_or_default());
        let is_held = state.messages.get(&id).is_some_and(|message| message.leases.contains(&lease));
        if !is_held {
            return Err(QueueError::LeaseLost(delivery.id.clone()));
        }
        work(&mut state, id);
        Ok(())
    }

    fn dead_letter(&self, state: &mut State, id: u64, cause: Cause, reason: String) {
        let Some(message) = state.messages.remove(&id) else { return };
        *state.endings.entry(id).or_default() += 1;
        let letter = DeadLetter {
            id: message_id(id),
            body: message.body,
            cause: cause.code().to_owned(),
            reason,
            sent: message.sent,
            died: self.clock.now(),
            receives: message.receives,
        };
        state.dead.insert(id, letter);
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(&self, body: &str, _deduplication: &str) -> Result<MessageId, QueueError> {
        Ok(self.send_after(body, Duration::ZERO))
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        let (now, config) = (Instant::now(), self.config);
        let mut state = self.lock();
        let is_duplicate = || config.duplicates > 0.0 && fastrand::f64() < config.duplicates;
        let mut ids: Vec<(Instant, u64)> = state
            .messages
            .iter()
            .filter(|(_, message)| message.visible <= now || (!message.is_delayed && is_duplicate()))
            .map(|(id, message)| (message.visible, *id))
            .collect();
        ids.sort_unstable();
        if config.is_unordered {
            fastrand::shuffle(&mut ids);
        }
        let mut deliveries = Vec::new();
        for (_, id) in ids {
            if deliveries.len() == most {
                break;
            }
            state.leases += 1;
            let lease = state.leases;
            let Some(message) = state.messages.get_mut(&id) else { continue };
            if message.crashes >= config.max_crashes {
                let reason = format!("the worker crashed {} times while processing it", message.crashes);
                self.dead_letter(&mut state, id, Cause::WorkerDied, reason);
                continue;
            }
            if message.visible <= now {
                message.leases.clear();
            }
            message.leases.push(lease);
            message.is_delayed = false;
            message.receives += 1;
            message.crashes += 1;
            message.visible = now + config.visibility_timeout;
            deliveries.push(Delivery {
                id: message_id(id),
                body: message.body.clone(),
                receives: message.receives,
                sent: message.sent,
                receipt: lease.to_string(),
            });
        }
        state.deliveries += deliveries.len() as u64;
        Ok(deliveries)
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let until = Instant::now() + self.config.visibility_timeout;
        self.with_lease(delivery, |state, id| {
            state.messages.entry(id).and_modify(|message| message.visible = until);
        })
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let (now, released) = (Instant::now(), self.clock.now().as_millis());
        let release = |state: &mut State, id: u64, after: Duration, uncounted: u32| {
            state.messages.entry(id).and_modify(|message| {
                message.leases.clear();
                message.visible = now + after;
                let millis = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
                message.waiting_since = Timestamp::from_millis(released.saturating_add(millis));
                message.is_delayed = !after.is_zero();
                message.receives = message.receives.saturating_sub(uncounted);
                message.crashes = 0;
            });
        };
        if let Ok(lease) = delivery.receipt.parse() {
            let mut state = self.lock();
            if state.confirmed.contains(&lease) {
                state.settled_again.push(lease);
            }
        }
        self.with_lease(&delivery, |state, id| match settlement {
            Settlement::Acknowledge => {
                state.messages.remove(&id);
                *state.endings.entry(id).or_default() += 1;
            }
            Settlement::Retry(after) => release(state, id, after, 0),
            Settlement::Defer(after) => release(state, id, after, 1),
            Settlement::Release => release(state, id, Duration::ZERO, 1),
            Settlement::DeadLetter { cause, reason } => self.dead_letter(state, id, cause, reason),
        })
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        let (state, now) = (self.lock(), Instant::now());
        let count = |filter: &dyn Fn(&Message) -> bool| state.messages.values().filter(|m| filter(m)).count() as u64;
        let visible = state.messages.values().filter(|message| message.visible <= now);
        Ok(QueueDepth {
            waiting: count(&|message| message.visible <= now),
            leased: count(&|message| message.visible > now && !message.leases.is_empty()),
            delayed: count(&|message| message.visible > now && message.leases.is_empty()),
            dead: state.dead.len() as u64,
            oldest: visible.map(|message| message.waiting_since).min(),
        })
    }
}

#[async_trait]
impl DeadLetters for MemoryQueue {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let after = after.map_or(0, number);
        Ok(self.lock().dead.range(after + 1..).take(most).map(|(_, letter)| letter.clone()).collect())
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        Ok(self.lock().dead.get(&number(id)).cloned())
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let letter = self.lock().dead.remove(&number(id));
        Ok(letter.map(|letter| self.send_after(&letter.body, Duration::ZERO)))
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        Ok(self.lock().dead.remove(&number(id)).is_some())
    }
}

/// Converts a number to a message ID, padded so that IDs sort in the order of sending.
fn message_id(id: u64) -> MessageId {
    MessageId(format!("{id:012}"))
}

fn number(id: &MessageId) -> u64 {
    id.0.parse().unwrap_or_default()
}
