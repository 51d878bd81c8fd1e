-- What a realm lets trusted devices do (admin.set_approvals).
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.realm
    ADD COLUMN approvals_enabled boolean NOT NULL DEFAULT false,
    ADD COLUMN approvals_public boolean NOT NULL DEFAULT false,
    ADD COLUMN approval_lifetime interval NOT NULL DEFAULT '120 seconds',
    ADD COLUMN approval_probation interval NOT NULL DEFAULT '24 hours';
COMMENT ON COLUMN postern.realm.approvals_enabled IS 'Whether there are trusted devices and approvals';
COMMENT ON COLUMN postern.realm.approvals_public IS 'Whether public clients may ask for approvals';
COMMENT ON COLUMN postern.realm.approval_lifetime IS 'How long an approval can be given';
COMMENT ON COLUMN postern.realm.approval_probation IS
    'How long a device that was added beside others may not approve, adopt or sign in';

RESET ROLE;
