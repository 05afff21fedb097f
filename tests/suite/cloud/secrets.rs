//! Secrets in SSM parameters.

use sparks_aws::SsmSecrets;
use sparks_engine::{DependencyError, Secrets, SecretsError};
use sparks_tests::{
    album::album,
    emulator::{self, Emulator},
    pinecone_server::PineconeServer,
    proxy::serve_responses,
};

use super::account::{Account, RunningWorker};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_secret_is_decrypted_read_once_and_never_printed() {
    let emulator = Emulator::start().await;
    let secrets = SsmSecrets::new(&emulator.connect().await);
    let missing = secrets.secret("/sparks/key").await;
    assert!(matches!(&missing, Err(SecretsError::NotFound(name)) if name == "/sparks/key"), "{missing:?}");
    emulator.put_parameter("/sparks/key", "hunter2");
    let secret = secrets.secret("/sparks/key").await.unwrap();
    assert_eq!(secret.reveal(), "hunter2");
    assert!(!format!("{secret:?}").contains("hunter2"));
    emulator.put_parameter("/sparks/key", "another");
    assert_eq!(secrets.secret("/sparks/key").await.unwrap().reveal(), "hunter2", "the secret was read twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_are_signed_and_retried_and_a_denial_names_the_action() {
    let response = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    };
    let throttled =
        response("400 Bad Request", r#"{"__type":"com.amazonaws.ssm#ThrottlingException","message":"Rate exceeded"}"#);
    let broken = response("500 Internal Server Error", "");
    let denied = response("400 Bad Request", r#"{"__type":"AccessDeniedException","Message":"no"}"#);
    let (endpoint, requests) = serve_responses(vec![throttled, broken, denied]).await;
    let refused = SsmSecrets::new(&emulator::connect(&endpoint).await).secret("/sparks/key").await;
    let Err(SecretsError::Dependency { error: DependencyError::AccessDenied(reason), .. }) = refused else {
        panic!("{refused:?}")
    };
    assert!(reason.contains("ssm:GetParameter"), "{reason}");
    for head in requests.await.unwrap() {
        assert!(head.starts_with("post / http/1.1"), "{head}");
        assert!(head.contains("x-amz-target: amazonssm.getparameter"), "{head}");
        assert!(head.contains("authorization: aws4-hmac-sha256 credential=test/"), "{head}");
        assert!(head.contains("/eu-central-1/ssm/aws4_request"), "{head}");
        assert!(head.contains("signedheaders=content-type;host;x-amz-date;x-amz-target"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_reads_the_pinecone_key_from_ssm() {
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
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        text.contains("pinecone.key_parameter") && text.contains("secret /sparks/pinecone does not exist"),
        "{text}"
    );

    account.emulator.put_parameter("/sparks/pinecone", PineconeServer::KEY);
    let photos = album(&[&[0], &[1], &[0, 1], &[2]]);
    account.upload_all(&photos).await;
    let worker = RunningWorker::start(&account, []);
    account.wait_for_photos(photos.len()).await;
    worker.stop().await;
    let persons = account.items().iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons, 3);
    let namespaces = pinecone.namespaces();
    assert_eq!(pinecone.ids(&namespaces[0]).len(), 3, "one face per person: {namespaces:?}");
    let doctor = account.text(["doctor"]);
    assert!(
        doctor.contains("dimensions: 144, as signatures have") && !doctor.contains(PineconeServer::KEY),
        "{doctor}"
    );
}
