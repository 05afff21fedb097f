-- From schema 2 to 3: dead letters have a cause, faces are indexed by person, and messages by visibility.
ALTER TABLE dead_letters ADD COLUMN cause TEXT NOT NULL DEFAULT 'fault';
ALTER TABLE dead_letters ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
-- A face can become a template after its photo was decided, and leases of a message are numbered.
ALTER TABLE faces ADD COLUMN promoted INTEGER;
DROP INDEX faces_template;
CREATE INDEX faces_template ON faces (coalesce(promoted, seq)) WHERE template;
ALTER TABLE messages ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
CREATE INDEX faces_person ON faces (person) WHERE person IS NOT NULL;
CREATE INDEX messages_visible ON messages (visible, id);
