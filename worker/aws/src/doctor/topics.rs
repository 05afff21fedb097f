//! The topics that the worker publishes to.

use super::{Doctor, MISSING, RUN_SETUP};
use crate::{retry::with_retry, sns::find_topic};

impl Doctor {
    pub(super) async fn topics(&mut self, topics: &[String]) {
        let client = self.connection.sns();
        for topic in topics {
            let subject = format!("topic {topic}");
            let arn = match topic.starts_with("arn:") {
                true => Ok(Some(topic.clone())),
                false => find_topic(&client, topic).await,
            };
            let arn = match arn {
                Ok(Some(arn)) => arn,
                Ok(None) => {
                    self.fail(subject, MISSING, format!("{RUN_SETUP}, or remove it from the settings"));
                    continue;
                }
                Err(error) if error.is_access_denied() => {
                    self.fail(subject, &error, "grant sns:ListTopics, or set the topic by its ARN");
                    continue;
                }
                Err(error) => {
                    self.unchecked(subject, &error, "sns:ListTopics");
                    continue;
                }
            };
            match with_retry(|| client.get_topic_attributes().topic_arn(&arn).send()).await {
                Ok(_) => self.ok(subject, "exists; publishing is not checked: subscribers would receive the message"),
                Err(error) if error.is_access_denied() => {
                    self.fail(subject, &error, "grant sns:GetTopicAttributes and sns:Publish to the worker's role");
                }
                Err(error) => self.fail(subject, &error, format!("{RUN_SETUP}, or remove it from the settings")),
            }
        }
    }
}
