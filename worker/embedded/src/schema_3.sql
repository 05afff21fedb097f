-- From schema 2: letters say what kind of reason they died of, and persons lead to their faces.
ALTER TABLE dead_letters ADD COLUMN cause TEXT NOT NULL DEFAULT 'fault';
ALTER TABLE dead_letters ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX faces_person ON faces (person) WHERE person IS NOT NULL;
