-- From schema 2: letters say what kind of reason they died of, persons lead to their faces, and messages stand in line.
ALTER TABLE dead_letters ADD COLUMN cause TEXT NOT NULL DEFAULT 'fault';
ALTER TABLE dead_letters ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
-- A face may become one that its person is known by later than its photo was decided, and a lease is told from the next.
ALTER TABLE faces ADD COLUMN promoted INTEGER;
DROP INDEX faces_template;
CREATE INDEX faces_template ON faces (coalesce(promoted, seq)) WHERE template;
ALTER TABLE messages ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
CREATE INDEX faces_person ON faces (person) WHERE person IS NOT NULL;
CREATE INDEX messages_visible ON messages (visible, id);
