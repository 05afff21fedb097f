//! Collections in a folder.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;

use super::{Client, Plain, Told, face, found, image, model, photo};
use crate::{Model, OpenError, Options, Service};

const ANN: &[f32] = &[1.0, 0.0];
const BOB: &[f32] = &[0.0, 1.0];

fn open(folder: &Path, model: Model) -> Result<Service, OpenError> {
    Service::open(Arc::new(Told), Arc::new(Plain), model, Options::default(), folder)
}

/// The only collection's file.
fn file(folder: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).max().unwrap()
}

/// A folder with a collection of two photos.
async fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::of(open(folder.path(), model()).unwrap()).await;
    let [ann, bob] = [ANN, BOB].map(|looks| photo(&[face(0.3, looks)]));
    client.with(&"Long".repeat(60), &[("ann", &ann), ("bob", &bob)]).await;
    client.end().await;
    folder
}

#[tokio::test]
async fn another_server_goes_on_where_one_ended() {
    let folder = filled().await;
    let c = "Long".repeat(60);
    let ann = photo(&[face(0.3, ANN)]);
    let client = Client::of(open(folder.path(), model()).unwrap()).await;
    let search = json!({ "CollectionId": c, "Image": image(&ann) });
    let answer = client.ok("SearchFacesByImage", search).await;
    assert_eq!(found(&answer), ["ann"]);
    // Known again, also from the file.
    client.ok("IndexFaces", json!({ "CollectionId": c, "ExternalImageId": "ann", "Image": image(&ann) })).await;
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": c })).await["FaceCount"], json!(2));
    let before = fs::read_to_string(file(folder.path())).unwrap();
    let id = answer["FaceMatches"][0]["Face"]["FaceId"].clone();
    client.ok("DeleteFaces", json!({ "CollectionId": c, "FaceIds": [id] })).await;
    let after = fs::read_to_string(file(folder.path())).unwrap();
    assert_eq!((before.lines().count(), after.lines().count()), (3, 2), "nothing of a deleted face stays");
    assert!(matches!(open(folder.path(), model()), Err(OpenError::InUse(_))));
    client.ok("DeleteCollection", json!({ "CollectionId": c })).await;
    client.end().await;
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(files, ["lock"]);
}

#[tokio::test]
async fn a_line_that_was_never_finished_is_dropped() {
    let folder = filled().await;
    let whole = fs::read(file(folder.path())).unwrap();
    fs::write(file(folder.path()), &whole[..whole.len() - 10]).unwrap();
    fs::write(folder.path().join("x.new"), "half").unwrap();
    let client = Client::of(open(folder.path(), model()).unwrap()).await;
    let c = json!({ "CollectionId": "Long".repeat(60) });
    assert_eq!(client.ok("DescribeCollection", c.clone()).await["FaceCount"], json!(1));
    let bob = json!({ "CollectionId": c["CollectionId"], "Image": image(&photo(&[face(0.3, BOB)])) });
    client.ok("IndexFaces", bob).await;
    client.end().await;
    assert!(!folder.path().join("x.new").exists());
    let client = Client::of(open(folder.path(), model()).unwrap()).await;
    assert_eq!(client.ok("DescribeCollection", c).await["FaceCount"], json!(2));
}

#[tokio::test]
async fn a_damaged_file_is_named() {
    let folder = filled().await;
    let path = file(folder.path());
    let whole = fs::read_to_string(&path).unwrap();
    let damages = [
        (String::new(), 1),
        ("{}\n".to_owned(), 1),
        (whole.replace("\"signature\":\"", "\"signature\":\"*"), 2),
        (whole.replace("Long\"", "Other\""), 1),
        (format!("{whole}\n"), 4),
    ];
    for (content, expected) in damages {
        fs::write(&path, content).unwrap();
        match open(folder.path(), model()).map(drop) {
            Err(OpenError::Damaged { path: named, line, .. }) => assert_eq!((named, line), (path.clone(), expected)),
            other => panic!("{other:?}"),
        }
    }
    fs::write(&path, whole).unwrap();
    let other = open(folder.path(), Model::new("2.0", 0.5).unwrap()).map(drop);
    assert!(matches!(other, Err(OpenError::OtherModel { .. })), "{other:?}");
}
