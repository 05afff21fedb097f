//! Secrets from SSM.

use sparks_aws::SsmSecrets;
use sparks_engine::{Secrets, SecretsError};
use sparks_tests::{
    emulator::{self, Emulator},
    proxy::answers,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_secret_is_decrypted_asked_for_once_and_never_shown() {
    let emulator = Emulator::start().await;
    let secrets = SsmSecrets::new(&emulator.connect().await);
    let missing = secrets.secret("/sparks/key").await;
    assert!(matches!(&missing, Err(SecretsError::NotFound(name)) if name == "/sparks/key"), "{missing:?}");
    emulator.put_parameter("/sparks/key", "hunter2");
    let secret = secrets.secret("/sparks/key").await.unwrap();
    assert_eq!(secret.reveal(), "hunter2");
    assert!(!format!("{secret:?}").contains("hunter2"));
    emulator.put_parameter("/sparks/key", "another");
    assert_eq!(secrets.secret("/sparks/key").await.unwrap().reveal(), "hunter2", "it was asked for again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_question_is_signed_repeated_while_the_service_is_busy_and_a_refusal_names_the_remedy() {
    let say = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    };
    let busy =
        say("400 Bad Request", r#"{"__type":"com.amazonaws.ssm#ThrottlingException","message":"Rate exceeded"}"#);
    let broken = say("500 Internal Server Error", "");
    let denied = say("400 Bad Request", r#"{"__type":"AccessDeniedException","Message":"no"}"#);
    let (endpoint, asked) = answers(vec![busy, broken, denied]).await;
    let refused = SsmSecrets::new(&emulator::connect(&endpoint).await).secret("/sparks/key").await;
    let Err(SecretsError::Forbidden { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("ssm:GetParameter"), "{reason}");
    for head in asked.await.unwrap() {
        assert!(head.starts_with("post / http/1.1"), "{head}");
        assert!(head.contains("x-amz-target: amazonssm.getparameter"), "{head}");
        assert!(head.contains("authorization: aws4-hmac-sha256 credential=test/"), "{head}");
        assert!(head.contains("/eu-central-1/ssm/aws4_request"), "{head}");
        assert!(head.contains("signedheaders=content-type;host;x-amz-date;x-amz-target"), "{head}");
    }
}
