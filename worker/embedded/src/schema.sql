-- Everything is in one file, so that a commit is one transaction.

-- The platform's table, with the same keys, attributes and indexes as in DynamoDB. `item` is the JSON of the row without PK and SK.
CREATE TABLE items (
    PK         TEXT NOT NULL,
    SK         TEXT NOT NULL,
    item       TEXT NOT NULL,
    entityType TEXT GENERATED ALWAYS AS (item ->> '$.entityType') VIRTUAL,
    uploadedBy TEXT GENERATED ALWAYS AS (item ->> '$.uploadedBy') VIRTUAL,
    "limit"    REAL GENERATED ALWAYS AS (item ->> '$.limit') VIRTUAL,
    PRIMARY KEY (PK, SK)
) WITHOUT ROWID;
CREATE INDEX "entityType-PK-index" ON items (entityType, PK, SK) WHERE entityType IS NOT NULL;
CREATE INDEX "uploadedBy-PK-index" ON items (uploadedBy, PK, SK) WHERE uploadedBy IS NOT NULL;
CREATE INDEX "PK-limit-index" ON items (PK, "limit") WHERE "limit" IS NOT NULL;

-- The event log, append-only.
CREATE TABLE log (
    seq           INTEGER PRIMARY KEY,
    event_id      TEXT NOT NULL,
    actor         TEXT NOT NULL,
    when_occurred TEXT NOT NULL,
    event_type    TEXT NOT NULL,
    event_data    TEXT NOT NULL,
    identity      INTEGER NOT NULL
) STRICT;
CREATE INDEX log_identity ON log (seq) WHERE identity;
-- Only for identity events: the state condition of a commit prevents duplicate photo events, and an index over all IDs would add a
-- page write to every photo.
CREATE UNIQUE INDEX log_identity_event_id ON log (event_id) WHERE identity;
CREATE TRIGGER log_is_append_only_update BEFORE UPDATE ON log BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_append_only_delete BEFORE DELETE ON log BEGIN SELECT raise(ABORT, 'the log is append-only'); END;

-- The last sequence number of the lane, and that of its last identity event.
CREATE TABLE heads (lane TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO heads VALUES ('EVENTS', 0), ('IDENTITY', 0);
-- Checkpoints of readers of the event log.
INSERT INTO heads VALUES ('FOLLOWED', 0), ('CONSIDERED', 0);

-- The state of each photo, which every commit checks. `subject` is IMG#{imageId}.
CREATE TABLE states (subject TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Face embeddings (signatures), separate from the event log so that they can be erased. `person` is the number of the identified
-- person, `seq` the event that decided the face. `template` marks the enrolled faces of a person; `promoted` is the event that made
-- a face a template, if that was not the event `seq`.
CREATE TABLE faces (
    image_id  TEXT NOT NULL,
    n         INTEGER NOT NULL,
    model     TEXT NOT NULL,
    signature BLOB NOT NULL,
    person    INTEGER,
    template  INTEGER NOT NULL DEFAULT 0,
    seq       INTEGER NOT NULL DEFAULT 0,
    promoted  INTEGER,
    PRIMARY KEY (image_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX faces_template ON faces (coalesce(promoted, seq)) WHERE template;
CREATE INDEX faces_unidentified ON faces (image_id, n) WHERE person IS NULL;
CREATE INDEX faces_person ON faces (person) WHERE person IS NOT NULL;

-- The work queue. `owner` is the lock file of the process that holds the lease, `visible` the time from which the message can be
-- received: the end of its lease or delay. `receives` counts attempts, `leases` every receive, so that the receipt of an earlier
-- lease is not valid for a later one.
CREATE TABLE messages (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    deduplication TEXT NOT NULL UNIQUE,
    body          TEXT NOT NULL,
    sent          INTEGER NOT NULL,
    visible       INTEGER NOT NULL,
    receives      INTEGER NOT NULL DEFAULT 0,
    owner         TEXT,
    leases        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX messages_visible ON messages (visible, id);

CREATE TABLE dead_letters (
    id            INTEGER PRIMARY KEY,
    deduplication TEXT NOT NULL,
    body          TEXT NOT NULL,
    reason        TEXT NOT NULL,
    died          INTEGER NOT NULL,
    receives      INTEGER NOT NULL,
    cause         TEXT NOT NULL DEFAULT 'fault',
    sent          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX dead_letters_deduplication ON dead_letters (deduplication);
