-- Notices: what an account's mailbox is told about changes to the account.
SET LOCAL ROLE postern_owner;

-- Queues a notice in the caller's transaction. Its text is made when it is sent, from the template, p_detail and the
-- realm's name.
-- p_detail, all optional: aaguid of the passkey (the text names the product); app, the slug of the App to name in place
-- of the realm. p_recipient: for what goes to another mailbox than the account's present one (the old address; a
-- deleted account).
-- Nothing is sent to a test identity, nor to an unconfirmed address of the account, except the notice that it became
-- the address.
CREATE OR REPLACE FUNCTION postern.queue_notice(
    p_realm uuid, p_user uuid, p_template text, p_detail jsonb DEFAULT NULL, p_recipient text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
    v_recipient text;
BEGIN
    IF p_template NOT IN ('passkey-added', 'passkey-removed', 'totp-added', 'totp-removed', 'recovery-codes-used-up',
                          'address-changed', 'account-deleted') THEN
        RAISE EXCEPTION 'there is no notice %', p_template;
    END IF;
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT u.email, u.email_key, u.email_verified INTO v_user
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user;
    v_recipient := coalesce(p_recipient, v_user.email);
    IF v_recipient IS NULL OR postern.is_test_identity(p_user)
        OR (p_template <> 'address-changed'
            AND v_user.email_key = postern.email_key(v_recipient) AND NOT v_user.email_verified) THEN
        RETURN;
    END IF;
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, detail)
    VALUES (p_realm, gen_random_uuid(), v_recipient, p_template, coalesce(p_detail, '{}'));
END
$$;
COMMENT ON FUNCTION postern.queue_notice IS
    'Queues a notice to an account''s mailbox (or to p_recipient) about a change of the account';
GRANT EXECUTE ON FUNCTION postern.queue_notice TO postern_app;

-- For p_detail: the App that a client belongs to, if it is one App only.
CREATE OR REPLACE FUNCTION postern.app_named(p_realm uuid, p_client uuid)
RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('app', CASE WHEN count(*) = 1 THEN min(k.app) END))
      FROM postern.app_client AS k WHERE k.realm_id = p_realm AND k.client = p_client
$$;
COMMENT ON FUNCTION postern.app_named IS 'Detail of a notice that names the only App of a client';
GRANT EXECUTE ON FUNCTION postern.app_named TO postern_app;

RESET ROLE;
