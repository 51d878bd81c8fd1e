-- A link belongs to its request, carries the security stamp of its account and what its page says about the request.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.login_link
    ADD COLUMN security_stamp uuid,
    ADD COLUMN device uuid,
    ADD COLUMN app text,
    ADD COLUMN asked_at timestamptz,
    DROP CONSTRAINT login_link_ended_check,
    ADD CONSTRAINT login_link_ended_check CHECK (ended IN ('redeemed', 'confirmed', 'denied', 'disowned', 'superseded'));
COMMENT ON COLUMN postern.login_link.security_stamp IS 'Of the account when the link was made; with another stamp the link is dead';
COMMENT ON COLUMN postern.login_link.device IS 'sid of the known device that asked; NULL: any other asker';
COMMENT ON COLUMN postern.login_link.app IS 'The App whose host was asked, for the page';
COMMENT ON COLUMN postern.login_link.asked_at IS 'When the link was asked for, for the page';
COMMENT ON COLUMN postern.login_link.source IS 'Where it was asked for from: shown on the page, shortened; never compared';
COMMENT ON COLUMN postern.login_link.ended IS 'disowned: the owner said that the request was not theirs';

UPDATE postern.login_link AS l SET security_stamp = u.security_stamp
  FROM postern.user_account AS u WHERE u.realm_id = l.realm_id AND u.id = l.user_id;

ALTER TABLE postern.auth_session ADD COLUMN confirmed_stamp uuid;
COMMENT ON COLUMN postern.auth_session.confirmed_stamp IS
    'Security stamp of confirmed_user at the confirmation; with another stamp the handle is dead';
COMMENT ON COLUMN postern.auth_session.source IS 'Where a link was asked for from: shown on its page, shortened; never compared';

UPDATE postern.auth_session AS a SET confirmed_stamp = u.security_stamp
  FROM postern.user_account AS u WHERE u.realm_id = a.realm_id AND u.id = a.confirmed_user;

RESET ROLE;
