//! Collections stored in a folder.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;

use super::{Client, JsonFaceEngine, JsonImageProcessor, external_ids, face, image, model, photo};
use crate::{Model, OpenError, Options, Service};

const ANN: &[f32] = &[1.0, 0.0];
const BOB: &[f32] = &[0.0, 1.0];

fn open(folder: &Path, model: Model) -> Result<Service, OpenError> {
    Service::open(Arc::new(JsonFaceEngine), Arc::new(JsonImageProcessor), model, Options::default(), folder)
}

/// Returns the file of the only collection.
fn file(folder: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).max().unwrap()
}

/// Returns a folder with a collection of two photos.
async fn folder_with_collection() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_service(open(folder.path(), model()).unwrap()).await;
    let [ann, bob] = [ANN, BOB].map(|embedding| photo(&[face(0.3, embedding)]));
    client.create_collection(&"Long".repeat(60), &[("ann", &ann), ("bob", &bob)]).await;
    client.stop().await;
    folder
}

#[tokio::test]
async fn collections_survive_a_restart_of_the_server() {
    let folder = folder_with_collection().await;
    let c = "Long".repeat(60);
    let ann = photo(&[face(0.3, ANN)]);
    let client = Client::with_service(open(folder.path(), model()).unwrap()).await;
    let search = json!({ "CollectionId": c, "Image": image(&ann) });
    let response = client.ok("SearchFacesByImage", search).await;
    assert_eq!(external_ids(&response), ["ann"]);
    // Recognized as the same face after loading it from the file.
    client.ok("IndexFaces", json!({ "CollectionId": c, "ExternalImageId": "ann", "Image": image(&ann) })).await;
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": c })).await["FaceCount"], json!(2));
    let before = fs::read_to_string(file(folder.path())).unwrap();
    let id = response["FaceMatches"][0]["Face"]["FaceId"].clone();
    client.ok("DeleteFaces", json!({ "CollectionId": c, "FaceIds": [id] })).await;
    let after = fs::read_to_string(file(folder.path())).unwrap();
    assert_eq!((before.lines().count(), after.lines().count()), (3, 2), "lines before and after the deletion");
    assert!(matches!(open(folder.path(), model()), Err(OpenError::InUse(_))));
    client.ok("DeleteCollection", json!({ "CollectionId": c })).await;
    client.stop().await;
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(files, ["lock"]);
}

#[tokio::test]
async fn partial_last_line_is_dropped() {
    let folder = folder_with_collection().await;
    let content = fs::read(file(folder.path())).unwrap();
    fs::write(file(folder.path()), &content[..content.len() - 10]).unwrap();
    fs::write(folder.path().join("x.new"), "half").unwrap();
    let client = Client::with_service(open(folder.path(), model()).unwrap()).await;
    let c = json!({ "CollectionId": "Long".repeat(60) });
    assert_eq!(client.ok("DescribeCollection", c.clone()).await["FaceCount"], json!(1));
    let bob = json!({ "CollectionId": c["CollectionId"], "Image": image(&photo(&[face(0.3, BOB)])) });
    client.ok("IndexFaces", bob).await;
    client.stop().await;
    assert!(!folder.path().join("x.new").exists());
    let client = Client::with_service(open(folder.path(), model()).unwrap()).await;
    assert_eq!(client.ok("DescribeCollection", c).await["FaceCount"], json!(2));
}

#[tokio::test]
async fn damaged_file_is_reported_with_its_line() {
    let folder = folder_with_collection().await;
    let path = file(folder.path());
    let intact = fs::read_to_string(&path).unwrap();
    let damaged = [
        (String::new(), 1),
        ("{}\n".to_owned(), 1),
        (intact.replace("\"signature\":\"", "\"signature\":\"*"), 2),
        (intact.replace("Long\"", "Other\""), 1),
        (format!("{intact}\n"), 4),
    ];
    for (content, expected) in damaged {
        fs::write(&path, content).unwrap();
        match open(folder.path(), model()).map(drop) {
            Err(OpenError::Damaged { path: named, line, .. }) => assert_eq!((named, line), (path.clone(), expected)),
            other => panic!("{other:?}"),
        }
    }
    fs::write(&path, intact).unwrap();
    let other = open(folder.path(), Model::new("2.0", 0.5).unwrap()).map(drop);
    assert!(matches!(other, Err(OpenError::OtherModel { .. })), "{other:?}");
}
