//! Who is told what.

use super::{Doctor, SET_UP};
use crate::{sns::find_topic, trouble::patiently};

impl Doctor {
    pub(super) async fn topics(&mut self, notices: &[String]) {
        let client = self.connection.sns();
        for topic in notices {
            let what = format!("topic {topic}");
            let arn = match topic.starts_with("arn:") {
                true => Ok(Some(topic.clone())),
                false => find_topic(&client, topic).await,
            };
            let arn = match arn {
                Ok(Some(arn)) => arn,
                Ok(None) => {
                    self.fail(what, "it is not there", format!("{SET_UP}; or leave it out of the settings"));
                    continue;
                }
                Err(trouble) if trouble.is_forbidden() => {
                    self.fail(what, &trouble, "grant sns:ListTopics, or name the topic by its ARN");
                    continue;
                }
                Err(trouble) => {
                    self.unseen(what, &trouble, "sns:ListTopics");
                    continue;
                }
            };
            match patiently(|| client.get_topic_attributes().topic_arn(&arn).send()).await {
                Ok(_) => self.ok(what, "it is there; publishing is not tried, as somebody would hear it"),
                Err(trouble) if trouble.is_forbidden() => {
                    self.fail(what, &trouble, "grant sns:GetTopicAttributes and sns:Publish to the worker's role");
                }
                Err(trouble) => self.fail(what, &trouble, format!("{SET_UP}; or leave it out of the settings")),
            }
        }
    }
}
