-- Which audit events are sent to webhooks, and as which type: CAEP 1.0, RISC 1.0, or a type of our own. Grants/Events
-- says what the event's object holds.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.event_type (event, type)
SELECT t.event, t.type || t.name FROM (
    SELECT e.event, 'https://schemas.openid.net/secevent/caep/event-type/', e.name FROM (VALUES
        ('sign_in', 'session-established'),
        ('session_revoked', 'session-revoked'), ('signed_out', 'session-revoked'),
        ('user_signed_out', 'session-revoked'), ('refresh_token_reuse', 'session-revoked'),
        ('authorization_code_reused', 'session-revoked'), ('consent_revoked', 'session-revoked'),
        ('passkey_added', 'credential-change'), ('passkey_deleted', 'credential-change'),
        ('totp_enrolled', 'credential-change'), ('totp_removed', 'credential-change'),
        ('recovery_codes_used_up', 'credential-change'), ('factor_undone', 'credential-change')) AS e (event, name)
    UNION ALL
    SELECT e.event, 'https://schemas.openid.net/secevent/risc/event-type/', e.name FROM (VALUES
        ('user_disabled', 'account-disabled'), ('test_identity_ended', 'account-disabled'),
        ('user_enabled', 'account-enabled'),
        ('user_deleted', 'account-purged'), ('account_deleted', 'account-purged'),
        ('test_identity_deleted', 'account-purged'), ('test_identity_emptied', 'account-purged'),
        ('address_changed', 'identifier-changed'), ('identifier_added', 'identifier-changed'),
        ('identifier_removed', 'identifier-changed'), ('identifier_moved', 'identifier-changed')) AS e (event, name)
    UNION ALL
    SELECT e.name, 'urn:postern:event:', e.name FROM (VALUES
        ('refresh_key_mismatch'), ('code_lockout'), ('passkey_sign_count_regressed'),
        ('device_added'), ('device_adopted'), ('device_removed'), ('user_secured'),
        ('realm_deletion_scheduled'), ('realm_undeleted')) AS e (name)
    ) AS t (event, type, name)
    ON CONFLICT (event) DO UPDATE SET type = excluded.type;

CREATE OR REPLACE VIEW admin.event_types AS SELECT t.event, t.type FROM postern.event_type AS t;
COMMENT ON VIEW admin.event_types IS 'Audit events that webhooks get, and the type of each';

RESET ROLE;
