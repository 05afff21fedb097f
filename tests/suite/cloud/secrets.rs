//! Secrets from SSM.

use sparks_aws::SsmSecrets;
use sparks_engine::{Secrets, SecretsError};
use sparks_tests::{
    album::album,
    emulator::{self, Emulator},
    pinecone::PineconeServer,
    proxy::answers,
};

use super::account::{Account, Running};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_in_the_cloud_gets_pinecones_key_from_ssm() {
    let pinecone = PineconeServer::start(sparks_faces::DIMENSIONS).await;
    let endpoint = pinecone.endpoint();
    let account = Account::new(&[
        ("SPARKS_FACES_INDEX", "pinecone"),
        ("SPARKS_PINECONE_HOST", &endpoint),
        ("SPARKS_PINECONE_KEY_PARAMETER", "/sparks/pinecone"),
    ])
    .await;
    let missing = account.run(["doctor"]);
    assert!(!missing.status.success());
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("pinecone.key_parameter: there is no secret /sparks/pinecone"), "{said}");

    account.emulator.put_parameter("/sparks/pinecone", PineconeServer::KEY);
    let photos = album(&[&[0], &[1], &[0, 1], &[2]]);
    account.upload_all(&photos).await;
    let running = Running::start(&account, []);
    account.until(photos.len()).await;
    running.stop().await;
    let persons = account.items().iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons, 3);
    let namespaces = pinecone.namespaces();
    assert_eq!(pinecone.ids(&namespaces[0]).len(), 3, "one face for each: {namespaces:?}");
    let doctor = account.text(["doctor"]);
    assert!(
        doctor.contains("dimensions: 144, as signatures have") && !doctor.contains(PineconeServer::KEY),
        "{doctor}"
    );
}
