//! Dead letters: complete, listed in pages, replayed once or discarded.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Cause, DeadLetter, DeadLetters, MessageId, Settlement};
use tokio::{task::JoinSet, time::sleep};

use super::{Deduplication, QueueFixture, TICK, dead_letter, ensure_empty, receive_one};
use crate::contract::{CheckResult, ensure, ensure_eq};

/// Sends a message and dead-letters it.
async fn send_dead_letter(fixture: &QueueFixture, body: &str, deduplication: &str) -> CheckResult<MessageId> {
    let id = fixture.queue.send(body, deduplication).await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    fixture.queue.settle(delivery, dead_letter("sample reason")).await?;
    Ok(id)
}

async fn list_all(letters: &dyn DeadLetters, page: usize) -> CheckResult<Vec<DeadLetter>> {
    let mut found: Vec<DeadLetter> = Vec::new();
    loop {
        let after = found.last().map(|letter| letter.id.clone());
        let more = letters.list(after.as_ref(), page).await?;
        ensure!(more.len() <= page, "a page of {page} holds {} dead letters", more.len());
        if more.is_empty() {
            return Ok(found);
        }
        ensure!(found.len() < 1000, "listing with pages of {page} does not end");
        found.extend(more);
    }
}

pub(super) async fn a_dead_letter_keeps_body_cause_reason_and_counts(fixture: QueueFixture) -> CheckResult {
    let body = format!("{{\"key\":\"ümläut \u{1F600}\",\"long\":\"{}\"}}", "x".repeat(5000));
    for (n, cause) in [Cause::NoImageRow, Cause::NotTheirs, Cause::WorkerDied].into_iter().enumerate() {
        fixture.queue.send(&body, &format!("d{n}")).await?;
        for _ in 0..n {
            let delivery = receive_one(fixture.queue.as_ref()).await?;
            fixture.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await?;
        }
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        sleep(TICK * 10).await;
        let reason = format!("because of \"{n}\"");
        fixture.queue.settle(delivery.clone(), Settlement::DeadLetter { cause, reason: reason.clone() }).await?;
        let letter = fixture.dead_letters.letter(&delivery.id).await?.ok_or("the dead letter is missing")?;
        ensure_eq!((&letter.id, &letter.body), (&delivery.id, &body), "ID and body of the dead letter");
        ensure_eq!(
            (letter.cause.as_str(), &letter.reason),
            (cause.code(), &reason),
            "cause and reason of the dead letter"
        );
        ensure_eq!(letter.sent, delivery.sent, "send time of the dead letter");
        ensure_eq!(letter.receives, n as u32 + 1, "receive count of the dead letter");
        let age = letter.died.as_millis() - letter.sent.as_millis();
        ensure!((10..60_000).contains(&age), "it was dead-lettered {age} ms after it was sent");
    }
    Ok(())
}

pub(super) async fn dead_letters_are_listed_in_any_page_size(fixture: QueueFixture) -> CheckResult {
    let mut sent = Vec::new();
    for n in 0..12 {
        sent.push(fixture.queue.send(&format!("m{n}"), &format!("d{n}")).await?);
    }
    let mut deliveries = Vec::new();
    while deliveries.len() < 12 {
        deliveries.push(receive_one(fixture.queue.as_ref()).await?);
    }
    // They are dead-lettered in another order than they were sent in.
    deliveries.rotate_left(5);
    for delivery in deliveries {
        fixture.queue.settle(delivery, dead_letter("sample reason")).await?;
    }
    for page in [1, 2, 5, 12, 100] {
        let listed: Vec<_> =
            list_all(fixture.dead_letters.as_ref(), page).await?.into_iter().map(|letter| letter.id).collect();
        ensure_eq!(listed, sent, "dead letters in pages of {page}");
    }
    fixture.dead_letters.discard(&sent[4]).await?;
    let after = fixture.dead_letters.list(Some(&sent[4]), 2).await?;
    ensure_eq!(
        after.iter().map(|letter| &letter.id).collect::<Vec<_>>(),
        vec![&sent[5], &sent[6]],
        "dead letters after a discarded one"
    );
    Ok(())
}

pub(super) async fn a_dead_letter_is_found_by_id(fixture: QueueFixture) -> CheckResult {
    let (one, two) = (send_dead_letter(&fixture, "m1", "d1").await?, send_dead_letter(&fixture, "m2", "d2").await?);
    let live = fixture.queue.send("m3", "d3").await?;
    let listed = fixture.dead_letters.list(None, 10).await?;
    for (id, letter) in [&one, &two].into_iter().zip(listed) {
        ensure_eq!(fixture.dead_letters.letter(id).await?, Some(letter), "the dead letter {id:?}");
    }
    ensure_eq!(fixture.dead_letters.letter(&live).await?, None, "the dead letter of a live message");
    ensure_eq!(
        fixture.dead_letters.letter(&MessageId("nothing".into())).await?,
        None,
        "the dead letter of an unknown message"
    );
    ensure_eq!(fixture.queue.depth().await?.dead, 2, "number of dead letters");
    Ok(())
}

pub(super) async fn a_replayed_dead_letter_is_sent_once_and_removed(fixture: QueueFixture) -> CheckResult {
    let body = "{\"key\":\"ümläut\"}".repeat(200);
    let (id, other) =
        (send_dead_letter(&fixture, &body, "d").await?, send_dead_letter(&fixture, "another", "d2").await?);
    let sent = fixture.dead_letters.replay(&id).await?.ok_or("an existing dead letter is not replayed")?;
    ensure_eq!(fixture.dead_letters.letter(&id).await?, None, "the dead letter after its replay");
    ensure_eq!(fixture.dead_letters.replay(&id).await?, None, "a second replay of the same dead letter");
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!((&delivery.id, delivery.receives), (&sent, 1), "the replayed message");
    ensure!(delivery.body == body, "the replayed message has another body");
    fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
    ensure_empty(fixture.queue.as_ref(), "after the replayed message was acknowledged").await?;
    let left: Vec<_> = fixture.dead_letters.list(None, 10).await?.into_iter().map(|letter| letter.id).collect();
    ensure_eq!(left, vec![other], "remaining dead letters");
    ensure_eq!(
        fixture.dead_letters.replay(&MessageId("nothing".into())).await?,
        None,
        "a replay of an unknown dead letter"
    );
    Ok(())
}

/// The same message was sent again before the replay; a queue that drops duplicates holds it once.
pub(super) async fn a_replay_beside_a_duplicate_adds_no_message(fixture: QueueFixture) -> CheckResult {
    let id = send_dead_letter(&fixture, "m", "d").await?;
    let duplicate = fixture.queue.send("m", "d").await?;
    let replayed = fixture.dead_letters.replay(&id).await?;
    ensure!(replayed.is_some(), "an existing dead letter is not replayed");
    let messages = if fixture.capabilities.deduplication == Deduplication::None { 2 } else { 1 };
    let is_single = fixture.capabilities.deduplication != Deduplication::UntilSettled || replayed == Some(duplicate);
    ensure!(is_single, "the dead letter was sent as {replayed:?} beside its duplicate");
    for _ in 0..messages {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
    }
    ensure_empty(fixture.queue.as_ref(), "after the messages were acknowledged").await?;
    ensure_eq!(fixture.dead_letters.letter(&id).await?, None, "the dead letter after its replay");
    Ok(())
}

pub(super) async fn one_of_many_concurrent_replays_sends(fixture: QueueFixture) -> CheckResult {
    for round in 0..5 {
        let id = send_dead_letter(&fixture, "m", &format!("d{round}")).await?;
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (letters, id) = (Arc::clone(&fixture.dead_letters), id.clone());
            tasks.spawn(async move { letters.replay(&id).await });
        }
        let mut replayed = 0;
        for done in tasks.join_all().await {
            replayed += usize::from(done?.is_some());
        }
        ensure_eq!(replayed, 1, "number of six concurrent replays that report a message");
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
        ensure_empty(fixture.queue.as_ref(), "after the replayed message was acknowledged").await?;
    }
    Ok(())
}

pub(super) async fn a_discarded_dead_letter_is_removed(fixture: QueueFixture) -> CheckResult {
    let (id, other) = (send_dead_letter(&fixture, "m1", "d1").await?, send_dead_letter(&fixture, "m2", "d2").await?);
    ensure!(fixture.dead_letters.discard(&id).await?, "discard reports an existing dead letter as missing");
    ensure!(!fixture.dead_letters.discard(&id).await?, "discard reports a discarded dead letter as existing");
    ensure_eq!(fixture.dead_letters.letter(&id).await?, None, "the discarded dead letter");
    ensure_eq!(fixture.dead_letters.replay(&id).await?, None, "a replay of the discarded dead letter");
    ensure_empty(fixture.queue.as_ref(), "after a dead letter was discarded").await?;
    let left: Vec<_> = fixture.dead_letters.list(None, 10).await?.into_iter().map(|letter| letter.id).collect();
    ensure_eq!(left, vec![other], "remaining dead letters");
    Ok(())
}

pub(super) async fn held_dead_letters_are_settled_and_released(fixture: QueueFixture) -> CheckResult {
    let mut ids = Vec::new();
    for n in 0..13 {
        ids.push(send_dead_letter(&fixture, &format!("m{n}"), &format!("d{n}")).await?);
    }
    let listed = async || {
        CheckResult::Ok(list_all(fixture.dead_letters.as_ref(), 4).await?.into_iter().map(|letter| letter.id).collect())
    };
    fixture.dead_letters.lease_all().await?;
    let found: Vec<MessageId> = listed().await?;
    ensure_eq!(found, ids, "held dead letters");
    let late = send_dead_letter(&fixture, "late", "late").await?;
    ensure!(
        fixture.dead_letters.letter(&late).await?.is_some(),
        "a dead letter that arrived after the hold is not found"
    );
    ensure!(fixture.dead_letters.replay(&ids[0]).await?.is_some(), "a held dead letter is not replayed");
    ensure!(fixture.dead_letters.discard(&ids[1]).await?, "discard reports a held dead letter as missing");
    ensure!(!fixture.dead_letters.discard(&ids[1]).await?, "discard reports a discarded dead letter as existing");
    ensure!(fixture.dead_letters.letter(&ids[2]).await?.is_some(), "a held dead letter is not found");
    fixture.dead_letters.release_all().await?;
    ids.push(late);
    let found: Vec<MessageId> = listed().await?;
    ensure_eq!(found, ids[2..].to_vec(), "dead letters after the release");
    ensure_eq!(receive_one(fixture.queue.as_ref()).await?.body, "m0", "the replayed message");
    Ok(())
}
