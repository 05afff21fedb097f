-- One file holds all of it, so that one transaction can.

-- The platform's table: the same keys, attributes and indexes as in DynamoDB. `item` is the row's JSON without PK and SK.
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

-- The log: appended to, never changed.
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
-- Photo events are committed once by their guard; an index over all IDs would cost every photo a page.
CREATE UNIQUE INDEX log_identity_event_id ON log (event_id) WHERE identity;
CREATE TRIGGER log_is_append_only_update BEFORE UPDATE ON log BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_append_only_delete BEFORE DELETE ON log BEGIN SELECT raise(ABORT, 'the log is append-only'); END;

-- The last sequence of the lane, and the last identity event in it.
CREATE TABLE heads (lane TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO heads VALUES ('EVENTS', 0), ('IDENTITY', 0);
-- How far what goes along the log has come.
INSERT INTO heads VALUES ('FOLLOWED', 0), ('CONSIDERED', 0);

-- What has been done with each photo: the guard of every commit. `subject` is IMG#{imageId}.
CREATE TABLE states (subject TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- What faces look like. Apart from the log, so that it can be erased. `person` is the number of who a face was decided to
-- be, `seq` the event about its photo; by the faces that are `template` a person is known, since the event `promoted` where
-- that was not the one about its photo.
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

-- Work to do. A lease names its owner (a lock file that lives as long as the process) and ends by itself. `receives` counts
-- attempts, `leases` every time that somebody got the message: a lease that was given back never holds again.
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
