//! Dead letters: kept whole, listed whole, sent again once, or thrown away.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Cause, DeadLetter, DeadLetters, MessageId, Settlement};
use tokio::{task::JoinSet, time::sleep};

use super::{QueueRig, Repeats, TICK, dead, is_empty, next};
use crate::contract::{Checked, ensure, ensure_eq};

/// Sends a message and lets it die.
async fn died(rig: &QueueRig, body: &str, deduplication: &str) -> Checked<MessageId> {
    let id = rig.queue.send(body, deduplication).await?;
    let delivery = next(rig.queue.as_ref()).await?;
    rig.queue.settle(delivery, dead("it happens")).await?;
    Ok(id)
}

async fn walk(letters: &dyn DeadLetters, page: usize) -> Checked<Vec<DeadLetter>> {
    let mut found: Vec<DeadLetter> = Vec::new();
    loop {
        let after = found.last().map(|letter| letter.id.clone());
        let more = letters.list(after.as_ref(), page).await?;
        ensure!(more.len() <= page, "a page of {page} has {} letters", more.len());
        if more.is_empty() {
            return Ok(found);
        }
        ensure!(found.len() < 1000, "there is no end of letters in pages of {page}");
        found.extend(more);
    }
}

pub(super) async fn a_letter_says_all_about_its_message(rig: QueueRig) -> Checked {
    let body = format!("{{\"key\":\"ümläut \u{1F600}\",\"long\":\"{}\"}}", "x".repeat(5000));
    for (n, cause) in [Cause::NoImageRow, Cause::NotTheirs, Cause::WorkerDied].into_iter().enumerate() {
        rig.queue.send(&body, &format!("d{n}")).await?;
        for _ in 0..n {
            let delivery = next(rig.queue.as_ref()).await?;
            rig.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await?;
        }
        let delivery = next(rig.queue.as_ref()).await?;
        sleep(TICK * 10).await;
        let reason = format!("because of \"{n}\"");
        rig.queue.settle(delivery.clone(), Settlement::DeadLetter { cause, reason: reason.clone() }).await?;
        let letter = rig.letters.letter(&delivery.id).await?.ok_or("the letter is not there")?;
        ensure_eq!((&letter.id, &letter.body), (&delivery.id, &body), "what the letter says");
        ensure_eq!((letter.cause.as_str(), &letter.reason), (cause.code(), &reason), "why it died");
        ensure_eq!(letter.sent, delivery.sent, "when it was sent");
        ensure_eq!(letter.receives, n as u32 + 1, "how often it was received");
        let lived = letter.died.as_millis() - letter.sent.as_millis();
        ensure!((10..60_000).contains(&lived), "it died {lived} ms after it was sent");
    }
    Ok(())
}

pub(super) async fn letters_are_listed_in_pages_of_any_size(rig: QueueRig) -> Checked {
    let mut sent = Vec::new();
    for n in 0..12 {
        sent.push(rig.queue.send(&format!("m{n}"), &format!("d{n}")).await?);
    }
    let mut deliveries = Vec::new();
    while deliveries.len() < 12 {
        deliveries.push(next(rig.queue.as_ref()).await?);
    }
    // They die in another order than they were sent in.
    deliveries.rotate_left(5);
    for delivery in deliveries {
        rig.queue.settle(delivery, dead("it happens")).await?;
    }
    for page in [1, 2, 5, 12, 100] {
        let listed: Vec<_> = walk(rig.letters.as_ref(), page).await?.into_iter().map(|letter| letter.id).collect();
        ensure_eq!(listed, sent, "the letters in pages of {page}");
    }
    rig.letters.discard(&sent[4]).await?;
    let after = rig.letters.list(Some(&sent[4]), 2).await?;
    ensure_eq!(
        after.iter().map(|letter| &letter.id).collect::<Vec<_>>(),
        vec![&sent[5], &sent[6]],
        "the letters after one that is gone"
    );
    Ok(())
}

pub(super) async fn a_letter_is_found_by_its_name(rig: QueueRig) -> Checked {
    let (one, two) = (died(&rig, "m1", "d1").await?, died(&rig, "m2", "d2").await?);
    let alive = rig.queue.send("m3", "d3").await?;
    let listed = rig.letters.list(None, 10).await?;
    for (id, letter) in [&one, &two].into_iter().zip(listed) {
        ensure_eq!(rig.letters.letter(id).await?, Some(letter), "the letter {id:?}");
    }
    ensure_eq!(rig.letters.letter(&alive).await?, None, "the letter of a message that lives");
    ensure_eq!(rig.letters.letter(&MessageId("nothing".into())).await?, None, "the letter of no message");
    ensure_eq!(rig.queue.depth().await?.dead, 2, "the number of letters");
    Ok(())
}

pub(super) async fn a_replayed_letter_is_sent_and_then_gone(rig: QueueRig) -> Checked {
    let body = "{\"key\":\"ümläut\"}".repeat(200);
    let (id, other) = (died(&rig, &body, "d").await?, died(&rig, "another", "d2").await?);
    let sent = rig.letters.replay(&id).await?.ok_or("a letter that is there is not replayed")?;
    ensure_eq!(rig.letters.letter(&id).await?, None, "the letter after its replay");
    ensure_eq!(rig.letters.replay(&id).await?, None, "a second replay of the same letter");
    let delivery = next(rig.queue.as_ref()).await?;
    ensure_eq!((&delivery.id, delivery.receives), (&sent, 1), "the message that was sent again");
    ensure!(delivery.body == body, "the message that was sent again says something else");
    rig.queue.settle(delivery, Settlement::Done).await?;
    is_empty(rig.queue.as_ref(), "after the message sent again is done").await?;
    let left: Vec<_> = rig.letters.list(None, 10).await?.into_iter().map(|letter| letter.id).collect();
    ensure_eq!(left, vec![other], "the letters that are left");
    ensure_eq!(rig.letters.replay(&MessageId("nothing".into())).await?, None, "a replay of no letter");
    Ok(())
}

/// Somebody sent the same thing anew meanwhile: it stands in the queue once.
pub(super) async fn a_replay_beside_a_repeat_adds_nothing(rig: QueueRig) -> Checked {
    let id = died(&rig, "m", "d").await?;
    let repeat = rig.queue.send("m", "d").await?;
    let replayed = rig.letters.replay(&id).await?;
    ensure!(replayed.is_some(), "a letter that is there is not replayed");
    let messages = if rig.abilities.repeats == Repeats::Never { 2 } else { 1 };
    let is_one = rig.abilities.repeats != Repeats::UntilSettled || replayed == Some(repeat);
    ensure!(is_one, "the letter was sent beside its repeat, as {replayed:?}");
    for _ in 0..messages {
        let delivery = next(rig.queue.as_ref()).await?;
        rig.queue.settle(delivery, Settlement::Done).await?;
    }
    is_empty(rig.queue.as_ref(), "after the message is done").await?;
    ensure_eq!(rig.letters.letter(&id).await?, None, "the letter after its replay");
    Ok(())
}

pub(super) async fn of_many_who_replay_a_letter_one_does(rig: QueueRig) -> Checked {
    for round in 0..5 {
        let id = died(&rig, "m", &format!("d{round}")).await?;
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (letters, id) = (Arc::clone(&rig.letters), id.clone());
            tasks.spawn(async move { letters.replay(&id).await });
        }
        let mut replayed = 0;
        for done in tasks.join_all().await {
            replayed += usize::from(done?.is_some());
        }
        ensure_eq!(replayed, 1, "how many of six replayed the letter");
        let delivery = next(rig.queue.as_ref()).await?;
        rig.queue.settle(delivery, Settlement::Done).await?;
        is_empty(rig.queue.as_ref(), "after the one message is done").await?;
    }
    Ok(())
}

pub(super) async fn a_discarded_letter_is_gone_for_good(rig: QueueRig) -> Checked {
    let (id, other) = (died(&rig, "m1", "d1").await?, died(&rig, "m2", "d2").await?);
    ensure!(rig.letters.discard(&id).await?, "a letter that is there is said not to be");
    ensure!(!rig.letters.discard(&id).await?, "a letter that is gone is said to be there");
    ensure_eq!(rig.letters.letter(&id).await?, None, "the letter");
    ensure_eq!(rig.letters.replay(&id).await?, None, "a replay of the letter");
    is_empty(rig.queue.as_ref(), "after a letter was thrown away").await?;
    let left: Vec<_> = rig.letters.list(None, 10).await?.into_iter().map(|letter| letter.id).collect();
    ensure_eq!(left, vec![other], "the letters that are left");
    Ok(())
}

pub(super) async fn letters_at_hand_are_acted_on_and_given_back(rig: QueueRig) -> Checked {
    let mut ids = Vec::new();
    for n in 0..13 {
        ids.push(died(&rig, &format!("m{n}"), &format!("d{n}")).await?);
    }
    let listed =
        async || Checked::Ok(walk(rig.letters.as_ref(), 4).await?.into_iter().map(|letter| letter.id).collect());
    rig.letters.hold().await?;
    let found: Vec<MessageId> = listed().await?;
    ensure_eq!(found, ids, "the letters at hand");
    let late = died(&rig, "late", "late").await?;
    ensure!(rig.letters.letter(&late).await?.is_some(), "a letter that came since is not found");
    ensure!(rig.letters.replay(&ids[0]).await?.is_some(), "a letter at hand is not replayed");
    ensure!(rig.letters.discard(&ids[1]).await?, "a letter at hand is said not to be there");
    ensure!(!rig.letters.discard(&ids[1]).await?, "a letter that is gone is said to be there");
    ensure!(rig.letters.letter(&ids[2]).await?.is_some(), "a letter at hand is not found");
    rig.letters.give_back().await?;
    ids.push(late);
    let found: Vec<MessageId> = listed().await?;
    ensure_eq!(found, ids[2..].to_vec(), "the letters that were given back");
    ensure_eq!(next(rig.queue.as_ref()).await?.body, "m0", "the message that was sent again");
    Ok(())
}
