//! Rows changed by hand: deleted ones are rebuilt from the log, and rows of other programs stay unchanged.

use serde_json::Value;

use crate::sparks::Sparks;

/// Returns a data folder with photos, and with rows and attributes of other programs in the table.
fn populated() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(12, 4, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let database = sparks.database();
    let foreign = [
        ("ann@example.com", "ann@example.com", r#"{"entityType":"USER",  "email":"ann@example.com","karma":1.0}"#),
        ("LIMIT#ann@example.com", "ann@example.com", r#"{"entityType":"DEFAULT_LIMIT","limit":499}"#),
        ("PERSON#grandma", "grandma", r#"{"entityType":"PERSON","displayName":"Grandma","createdAt":1.50e9}"#),
        ("PERSON#person77", "person77", r#"{"entityType":"PERSON","displayName":"person77"}"#),
        ("02df423f-0d45-4d59-b987-2ade841d0fbf", "PERSON#grandma", r#"{"entityType":"TAGGING#grandma","s3Key":"x"}"#),
    ];
    for (pk, sk, item) in foreign {
        database.execute("INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)", [pk, sk, item]).unwrap();
    }
    database
        .execute(
            "UPDATE items SET item = json_set(item, '$.tags', json('[\"beach\"]'), '$.description', 'at the sea', '$.stars',
             json('123456789012345678901')) WHERE entityType = 'IMAGE'",
            [],
        )
        .unwrap();
    sparks.json(["rebuild"]); // sorts the attributes of rows that the test changed
    sparks
}

#[test]
fn a_rebuild_restores_deleted_rows_and_attributes() {
    let sparks = populated();
    let before = sparks.text(["items"]);
    let database = sparks.database();
    let deleted = database
        .execute("DELETE FROM items WHERE (entityType = 'PERSON' OR entityType LIKE 'TAGGING#%') AND item LIKE '%persons/%' OR entityType LIKE 'TAGGING#person%'", [])
        .unwrap();
    assert!(deleted > 12, "{deleted}");
    assert_eq!(database.execute("DELETE FROM items WHERE PK = 'UNKNOWN_PERSONS'", []).unwrap(), 1);
    let stripped = "UPDATE items SET item = json_remove(item, '$.images', '$.persons', '$.lastModified') WHERE entityType = 'IMAGE'";
    assert_eq!(database.execute(stripped, []).unwrap(), 12);

    let verify = sparks.run(["verify", "--json"]);
    assert_eq!(verify.status.code(), Some(1), "verify reports drift");
    let drift: Value = serde_json::from_slice(&verify.stdout).unwrap();
    assert!(drift["differences"].as_u64().unwrap() > deleted as u64, "{drift}");

    let rebuilt = sparks.json(["rebuild"]);
    assert_ne!(rebuilt["before"]["sha256"], rebuilt["after"]["sha256"]);
    assert_eq!(sparks.text(["items"]), before);
    assert_eq!(sparks.json(["verify"])["clean"], true);
    let again = sparks.json(["rebuild"]);
    assert_eq!((&again["before"], &again["changed"]), (&again["after"], &0.into()));
}

#[test]
fn rows_of_other_programs_keep_every_byte() {
    let sparks = populated();
    let foreign = |sparks: &Sparks| -> Vec<(String, String)> {
        let database = sparks.database();
        let mut rows = database
            .prepare("SELECT PK, item FROM items WHERE item NOT LIKE '%persons/%' AND entityType NOT LIKE 'TAGGING#person%' AND entityType NOT IN ('IMAGE', 'UNKNOWN_PERSONS') ORDER BY PK, SK")
            .unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let before = foreign(&sparks);
    assert_eq!(before.len(), 5);
    sparks.database().execute("DELETE FROM items WHERE item LIKE '%persons/%'", []).unwrap();
    sparks.json(["verify", "--repair"]);
    sparks.json(["rebuild"]);
    assert_eq!(foreign(&sparks), before);
    let image = sparks.items().into_iter().find(|item| item["entityType"] == "IMAGE").unwrap();
    assert_eq!(image["tags"], serde_json::json!(["beach"]));
    assert_eq!(image["stars"].to_string(), "123456789012345678901", "every digit");
}

#[test]
fn the_person_counter_never_decreases() {
    let sparks = populated();
    let raise = "UPDATE items SET item = json_set(item, '$.limit', 1000) WHERE PK = 'UNKNOWN_PERSONS'";
    sparks.database().execute(raise, []).unwrap();
    assert_eq!(sparks.json(["verify"])["clean"], true, "numbers used by another program are no drift");
    sparks.json(["rebuild"]);
    let counter = |sparks: &Sparks| {
        sparks.items().into_iter().find(|item| item["PK"] == "UNKNOWN_PERSONS").unwrap()["limit"].clone()
    };
    assert_eq!(counter(&sparks), 1000);
    let album = sparks.path("more");
    sparks.text(["synth", album.to_str().unwrap(), "--photos", "1", "--identities", "1", "--seed", "9"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    assert_eq!(counter(&sparks), 1001, "the next new person is person1001");
}

#[test]
fn a_name_that_the_platform_wrote_is_adopted() {
    let sparks = populated();
    let rename = "UPDATE items SET item = json_set(item, '$.displayName', 'Bride') WHERE PK = 'PERSON#person2'";
    sparks.database().execute(rename, []).unwrap();
    assert_eq!(sparks.json(["verify"])["clean"], true, "the platform may rename");
    assert_eq!(sparks.json(["rebuild"])["names_adopted"], 1);
    sparks.database().execute("DELETE FROM items WHERE PK = 'PERSON#person2'", []).unwrap();
    sparks.json(["rebuild"]);
    assert_eq!(sparks.json(["query", "person", "person2"])["displayName"], "Bride");
}
