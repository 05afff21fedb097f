//! Secrets from SSM.

use sparks_aws::SsmSecrets;
use sparks_engine::{Secrets, SecretsError};
use sparks_tests::emulator::Emulator;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_secret_is_decrypted_asked_for_once_and_never_shown() {
    let emulator = Emulator::start().await;
    let secrets = SsmSecrets::new(&emulator.connect().await);
    let missing = secrets.secret("/sparks/key").await;
    assert!(matches!(&missing, Err(SecretsError::NotFound(name)) if name == "/sparks/key"), "{missing:?}");
    emulator.put_parameter("/sparks/key", "hunter2").await;
    let secret = secrets.secret("/sparks/key").await.unwrap();
    assert_eq!(secret.reveal(), "hunter2");
    assert!(!format!("{secret:?}").contains("hunter2"));
    emulator.put_parameter("/sparks/key", "another").await;
    assert_eq!(secrets.secret("/sparks/key").await.unwrap().reveal(), "hunter2", "it was asked for again");
}
