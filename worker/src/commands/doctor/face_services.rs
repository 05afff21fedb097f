//! The services that are configured as face index.

use sparks_config::Settings;
use sparks_domain::Seq;
use sparks_engine::Finding;

use crate::wiring;

/// Checks the Rekognition collection or the Pinecone index, if one is configured.
pub async fn check(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(collection) = wiring::rekognition_collection(settings)? {
        let (mut doctor, _) = wiring::doctor(settings).await;
        doctor.face_collection(collection, person_counter(settings).await).await;
        findings.extend(doctor.into_findings());
    }
    if let Some(pinecone) = wiring::pinecone(settings).await? {
        match pinecone.describe().await {
            Ok(description) => findings.extend(description.findings(wiring::signature_dimensions(settings)?)),
            Err(error) => {
                let remedy = "check the API key, and that pinecone.host is the host of the index and reachable";
                findings.push(Finding::fail("Pinecone index", error, remedy));
            }
        }
    }
    Ok(findings)
}

/// Returns the highest person number in use; 0 if the table is not available.
async fn person_counter(settings: &Settings) -> u32 {
    let Ok(backend) = wiring::open(settings).await else { return 0 };
    backend.store.identity(Seq(0)).await.map_or(0, |tail| tail.counter)
}
