-- From schema 1 to 2: `faces` stores the person and template flag of each face, computed from the event log.
ALTER TABLE faces ADD COLUMN person INTEGER;
ALTER TABLE faces ADD COLUMN template INTEGER NOT NULL DEFAULT 0;
ALTER TABLE faces ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
CREATE TEMP TABLE decided (image_id TEXT, n INTEGER, person INTEGER, template INTEGER, seq INTEGER,
                           PRIMARY KEY (image_id, n)) WITHOUT ROWID;
INSERT OR REPLACE INTO decided
SELECT log.event_data ->> '$.image_id',
       coalesce(log.event_data ->> '$.first_face', 0) + face.key,
       CAST(substr(coalesce(face.value ->> '$.verdict.matched', face.value ->> '$.verdict.founded'), 7) AS INTEGER),
       coalesce(face.value ->> '$.template', 0),
       log.seq
FROM log, json_each(log.event_data, '$.faces') AS face
WHERE log.event_type = 'PhotoProcessed'
ORDER BY log.seq;
UPDATE faces SET person = decided.person, template = decided.template, seq = decided.seq
FROM decided WHERE decided.image_id = faces.image_id AND decided.n = faces.n;
DROP TABLE decided;
CREATE INDEX faces_template ON faces (seq) WHERE template;
CREATE INDEX faces_unidentified ON faces (image_id, n) WHERE person IS NULL;
INSERT INTO heads VALUES ('FOLLOWED', 0), ('CONSIDERED', 0);
