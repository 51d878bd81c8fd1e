-- What an undo of an added identifier gives back.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.undo_link ADD COLUMN removed jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN postern.undo_link.removed IS
    'Identifiers that the user lost after the factor was added: value and proved_at; the undo gives them back';

RESET ROLE;
