//! Who hears of new objects, as a bucket's notifications say.

use aws_sdk_s3::types::{Event, FilterRule, NotificationConfiguration, NotificationConfigurationFilter, S3KeyFilter};

use crate::names::called;

/// Whether whoever has this filter and these events hears of all new objects that begin like this.
pub(crate) fn covers(filter: Option<&NotificationConfigurationFilter>, events: &[Event], prefix: &str) -> bool {
    let rules = filter.and_then(|filter| filter.key()).map(S3KeyFilter::filter_rules).unwrap_or_default();
    // S3 answers `Prefix` where it was told `prefix`, which is all that the SDK knows.
    let is = |rule: &FilterRule, name: &str| rule.name().is_some_and(|known| known.as_str().eq_ignore_ascii_case(name));
    let fits = rules.iter().all(|rule| match rule.value() {
        Some(value) if is(rule, "prefix") => prefix.starts_with(value),
        Some(value) if is(rule, "suffix") => value.is_empty(),
        _ => true,
    });
    fits && events.iter().any(|event| ["s3:ObjectCreated:*", "s3:*"].contains(&event.as_str()))
}

/// Whether news of all new objects that begin like this goes to this queue, to this topic, or to EventBridge, whose rules
/// are not looked at. Queue and topic may be named by their ARNs, and the queue by its URL.
pub(crate) fn reaches(found: &NotificationConfiguration, prefix: &str, queue: &str, topic: Option<&str>) -> bool {
    let mut queues = found.queue_configurations().iter();
    let mut topics = found.topic_configurations().iter();
    found.event_bridge_configuration().is_some()
        || queues
            .any(|known| called(known.queue_arn()) == called(queue) && covers(known.filter(), known.events(), prefix))
        || topics.any(|known| {
            Some(called(known.topic_arn())) == topic.map(called) && covers(known.filter(), known.events(), prefix)
        })
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::types::{EventBridgeConfiguration, FilterRuleName, QueueConfiguration, TopicConfiguration};

    use super::*;

    const CREATED: &str = "s3:ObjectCreated:*";

    fn filter(rules: &[(&str, &str)]) -> NotificationConfigurationFilter {
        let rule = |(name, value): &(&str, &str)| {
            FilterRule::builder().name(FilterRuleName::from(*name)).value(*value).build()
        };
        let key = S3KeyFilter::builder().set_filter_rules(Some(rules.iter().map(rule).collect())).build();
        NotificationConfigurationFilter::builder().key(key).build()
    }

    fn to_queue(arn: &str, rules: &[(&str, &str)], event: &str) -> NotificationConfiguration {
        let known = QueueConfiguration::builder().queue_arn(arn).events(Event::from(event)).filter(filter(rules));
        NotificationConfiguration::builder().queue_configurations(known.build().expect("all it needs")).build()
    }

    #[test]
    fn rules_are_called_as_s3_or_as_the_sdk_calls_them() {
        let events = [Event::from(CREATED)];
        for name in ["prefix", "Prefix", "PREFIX"] {
            let hears = |prefix| covers(Some(&filter(&[(name, prefix)])), &events, "originals/");
            assert!(hears("originals/") && hears("orig") && hears(""), "{name}");
            assert!(!hears("originals/2024/") && !hears("profiles/"), "{name}");
        }
        let ending = |name| covers(Some(&filter(&[("Prefix", "originals/"), (name, ".png")])), &events, "originals/");
        assert!(!ending("suffix") && !ending("Suffix"), "not all of them");
        assert!(covers(None, &events, "originals/"), "no filter");
    }

    #[test]
    fn only_news_of_new_objects_counts() {
        for (event, counts) in [(CREATED, true), ("s3:*", true), ("s3:ObjectRemoved:*", false)] {
            assert_eq!(covers(None, &[Event::from(event)], "originals/"), counts, "{event}");
        }
    }

    #[test]
    fn only_our_queue_our_topic_and_event_bridge_reach_us() {
        let ours = |found: &NotificationConfiguration, topic| reaches(found, "originals/", "sparks", topic);
        let (queue, rules) = ("arn:aws:sqs:eu-west-1:1:sparks", [("Prefix", "originals/")]);
        assert!(ours(&to_queue(queue, &rules, CREATED), None));
        let url = "https://sqs.eu-west-1.amazonaws.com/1/sparks";
        assert!(reaches(&to_queue(queue, &rules, CREATED), "originals/", url, None));
        assert!(!ours(&to_queue("arn:aws:sqs:eu-west-1:1:others", &rules, CREATED), None));
        assert!(!ours(&to_queue(queue, &[("Prefix", "profiles/")], CREATED), None), "of other objects");
        assert!(!ours(&to_queue(queue, &rules, "s3:ObjectRemoved:*"), None), "of what goes");

        let topic = "arn:aws:sns:eu-west-1:1:uploads";
        let known = TopicConfiguration::builder().topic_arn(topic).events(Event::from(CREATED)).build();
        let found = NotificationConfiguration::builder().topic_configurations(known.expect("all it needs")).build();
        assert!(ours(&found, Some("uploads")) && ours(&found, Some(topic)));
        assert!(!ours(&found, Some("others")) && !ours(&found, None));

        let bridge = EventBridgeConfiguration::builder().build();
        assert!(ours(&NotificationConfiguration::builder().event_bridge_configuration(bridge).build(), None));
        assert!(!ours(&NotificationConfiguration::builder().build(), None));
    }
}
