//! Event notifications of a bucket: which queue or topic receives them.

use aws_sdk_s3::types::{Event, FilterRule, NotificationConfiguration, NotificationConfigurationFilter, S3KeyFilter};

use crate::names::resource_name;

/// Returns whether a notification with this filter and these events is sent for all new objects with this key prefix.
pub(crate) fn covers(filter: Option<&NotificationConfigurationFilter>, events: &[Event], prefix: &str) -> bool {
    let rules = filter.and_then(|filter| filter.key()).map(S3KeyFilter::filter_rules).unwrap_or_default();
    // S3 returns `Prefix` where `prefix` was stored, and the SDK knows `prefix` alone.
    let is = |rule: &FilterRule, name: &str| rule.name().is_some_and(|known| known.as_str().eq_ignore_ascii_case(name));
    let fits = rules.iter().all(|rule| match rule.value() {
        Some(value) if is(rule, "prefix") => prefix.starts_with(value),
        Some(value) if is(rule, "suffix") => value.is_empty(),
        _ => true,
    });
    fits && events.iter().any(|event| ["s3:ObjectCreated:*", "s3:*"].contains(&event.as_str()))
}

/// Returns whether notifications for all new objects with this key prefix go to this queue, to this topic, or to
/// EventBridge (its rules are not checked). Queue and topic may be given by ARN, the queue also by URL.
pub(crate) fn reaches(found: &NotificationConfiguration, prefix: &str, queue: &str, topic: Option<&str>) -> bool {
    let mut queues = found.queue_configurations().iter();
    let mut topics = found.topic_configurations().iter();
    found.event_bridge_configuration().is_some()
        || queues.any(|known| {
            resource_name(known.queue_arn()) == resource_name(queue) && covers(known.filter(), known.events(), prefix)
        })
        || topics.any(|known| {
            Some(resource_name(known.topic_arn())) == topic.map(resource_name)
                && covers(known.filter(), known.events(), prefix)
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
        NotificationConfiguration::builder()
            .queue_configurations(known.build().expect("complete configuration"))
            .build()
    }

    #[test]
    fn filter_rule_names_are_case_insensitive() {
        let events = [Event::from(CREATED)];
        for name in ["prefix", "Prefix", "PREFIX"] {
            let is_covered = |prefix| covers(Some(&filter(&[(name, prefix)])), &events, "originals/");
            assert!(is_covered("originals/") && is_covered("orig") && is_covered(""), "{name}");
            assert!(!is_covered("originals/2024/") && !is_covered("profiles/"), "{name}");
        }
        let with_suffix =
            |name| covers(Some(&filter(&[("Prefix", "originals/"), (name, ".png")])), &events, "originals/");
        assert!(!with_suffix("suffix") && !with_suffix("Suffix"), "a suffix filter excludes some objects");
        assert!(covers(None, &events, "originals/"), "no filter");
    }

    #[test]
    fn only_events_of_created_objects_count() {
        for (event, counts) in [(CREATED, true), ("s3:*", true), ("s3:ObjectRemoved:*", false)] {
            assert_eq!(covers(None, &[Event::from(event)], "originals/"), counts, "{event}");
        }
    }

    #[test]
    fn only_the_workers_queue_its_topic_and_event_bridge_count() {
        let is_reached = |found: &NotificationConfiguration, topic| reaches(found, "originals/", "sparks", topic);
        let (queue, rules) = ("arn:aws:sqs:eu-west-1:1:sparks", [("Prefix", "originals/")]);
        assert!(is_reached(&to_queue(queue, &rules, CREATED), None));
        let url = "https://sqs.eu-west-1.amazonaws.com/1/sparks";
        assert!(reaches(&to_queue(queue, &rules, CREATED), "originals/", url, None));
        assert!(!is_reached(&to_queue("arn:aws:sqs:eu-west-1:1:others", &rules, CREATED), None));
        assert!(!is_reached(&to_queue(queue, &[("Prefix", "profiles/")], CREATED), None), "other objects");
        assert!(!is_reached(&to_queue(queue, &rules, "s3:ObjectRemoved:*"), None), "removed objects");

        let topic = "arn:aws:sns:eu-west-1:1:uploads";
        let known = TopicConfiguration::builder().topic_arn(topic).events(Event::from(CREATED)).build();
        let found =
            NotificationConfiguration::builder().topic_configurations(known.expect("complete configuration")).build();
        assert!(is_reached(&found, Some("uploads")) && is_reached(&found, Some(topic)));
        assert!(!is_reached(&found, Some("others")) && !is_reached(&found, None));

        let bridge = EventBridgeConfiguration::builder().build();
        assert!(is_reached(&NotificationConfiguration::builder().event_bridge_configuration(bridge).build(), None));
        assert!(!is_reached(&NotificationConfiguration::builder().build(), None));
    }
}
