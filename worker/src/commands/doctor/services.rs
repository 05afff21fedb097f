//! Services that know faces.

use sparks_config::Settings;
use sparks_domain::Seq;
use sparks_engine::Finding;

use crate::wiring;

/// Looks at the services that the settings name, if any.
pub async fn examine(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(collection) = wiring::collection(settings)? {
        let (mut doctor, _) = wiring::doctor(settings).await;
        doctor.collection(collection, counter(settings).await).await;
        findings.extend(doctor.into_findings());
    }
    if let Some(pinecone) = wiring::pinecone(settings).await? {
        match pinecone.describe().await {
            Ok(description) => findings.extend(description.findings(wiring::dimensions(settings)?)),
            Err(error) => {
                let remedy = "see that the key is right, and that pinecone.host is the index's and can be reached";
                findings.push(Finding::fail("Pinecone index", error, remedy));
            }
        }
    }
    Ok(findings)
}

/// The last number given out; none where there is no table to ask.
async fn counter(settings: &Settings) -> u32 {
    let Ok(backend) = wiring::open(settings).await else { return 0 };
    backend.store.identity(Seq(0)).await.map_or(0, |tail| tail.counter)
}
