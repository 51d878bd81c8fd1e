-- Realms (tenants), their scopes and limits. Every key of a tenant's table starts with the realm.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.realm (
    id                         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    slug                       text NOT NULL UNIQUE CHECK (slug COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    display_name               text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    primary_domain             text CHECK (postern.is_host(primary_domain)),
    public_origin              text CHECK (postern.is_origin(public_origin)),
    enabled                    boolean NOT NULL DEFAULT true,
    created_at                 timestamptz NOT NULL DEFAULT now(),
    deleted_at                 timestamptz,
    erased_at                  timestamptz,
    config_version             bigint NOT NULL DEFAULT 0,
    -- Tokens and sessions.
    access_token_lifetime      interval NOT NULL DEFAULT '15 minutes'
        CHECK (access_token_lifetime BETWEEN '1 minute' AND '60 minutes'),
    refresh_token_lifetime     interval NOT NULL DEFAULT '14 days'
        CHECK (refresh_token_lifetime BETWEEN '1 day' AND '365 days'),
    refresh_retry_window       interval NOT NULL DEFAULT '120 seconds'
        CHECK (refresh_retry_window BETWEEN '0 seconds' AND '600 seconds'),
    session_lifetime           interval NOT NULL DEFAULT '365 days'
        CHECK (session_lifetime BETWEEN '1 day' AND '3650 days'),
    dpop_nonce                 text NOT NULL DEFAULT 'auto' CHECK (dpop_nonce IN ('auto', 'required')),
    dpop_nonce_lifetime        interval NOT NULL DEFAULT '5 minutes'
        CHECK (dpop_nonce_lifetime BETWEEN interval '1 minute' AND interval '30 minutes'),
    -- Native grants.
    native_grants_enabled      boolean NOT NULL DEFAULT false,
    otp_lifetime               interval NOT NULL DEFAULT '10 minutes'
        CHECK (otp_lifetime BETWEEN '1 minute' AND '10 minutes'),
    otp_attempts               integer NOT NULL DEFAULT 5 CHECK (otp_attempts BETWEEN 1 AND 10),
    otp_digits                 integer NOT NULL DEFAULT 6
        CONSTRAINT realm_otp_digits CHECK (otp_digits BETWEEN 6 AND 8),
    magic_link_lifetime        interval NOT NULL DEFAULT '15 minutes'
        CHECK (magic_link_lifetime BETWEEN '1 minute' AND '60 minutes'),
    resend_cooldown            interval NOT NULL DEFAULT '60 seconds'
        CHECK (resend_cooldown BETWEEN '0 seconds' AND '600 seconds'),
    ceremony_lifetime          interval NOT NULL DEFAULT '5 minutes'
        CHECK (ceremony_lifetime BETWEEN '30 seconds' AND '10 minutes'),
    registration_firstname     text NOT NULL DEFAULT 'Optional'
        CHECK (registration_firstname IN ('Off', 'Optional', 'Required')),
    registration_lastname      text NOT NULL DEFAULT 'Optional'
        CHECK (registration_lastname IN ('Off', 'Optional', 'Required')),
    -- Pages.
    hosted_enabled             boolean NOT NULL DEFAULT false,
    hosted_methods             text[] NOT NULL DEFAULT '{passkey,email-code,magic-link}'
        CONSTRAINT realm_hosted_methods
        CHECK (hosted_methods <@ '{passkey,email-code,magic-link,phone-code}' AND cardinality(hosted_methods) > 0),
    default_locale             text NOT NULL DEFAULT 'en'
        CONSTRAINT realm_default_locale CHECK (default_locale COLLATE "C" ~ '\A[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*\Z'),
    sso_idle                   interval NOT NULL DEFAULT '30 days'
        CONSTRAINT realm_sso_idle CHECK (sso_idle = '0 seconds' OR sso_idle BETWEEN '1 hour' AND '365 days'),
    sso_absolute               interval NOT NULL DEFAULT '180 days'
        CONSTRAINT realm_sso_absolute CHECK (sso_absolute BETWEEN '1 hour' AND '3650 days'),
    sign_in_lifetime           interval NOT NULL DEFAULT '30 minutes'
        CONSTRAINT realm_sign_in_lifetime CHECK (sign_in_lifetime BETWEEN '5 minutes' AND '60 minutes'),
    code_lifetime              interval NOT NULL DEFAULT '60 seconds'
        CONSTRAINT realm_code_lifetime CHECK (code_lifetime BETWEEN '30 seconds' AND '600 seconds'),
    offer_passkey              boolean NOT NULL DEFAULT true,
    -- Trusted devices and approvals.
    approvals_enabled          boolean NOT NULL DEFAULT false,
    approvals_public           boolean NOT NULL DEFAULT false,
    approval_lifetime          interval NOT NULL DEFAULT '120 seconds',
    approval_probation         interval NOT NULL DEFAULT '24 hours',
    -- Possession of phone numbers.
    possession_enabled         boolean NOT NULL DEFAULT false,
    possession_otp_lifetime    interval NOT NULL DEFAULT interval '120 seconds',
    possession_link_lifetime   interval NOT NULL DEFAULT interval '5 minutes',
    possession_resend_cooldown interval NOT NULL DEFAULT interval '10 seconds',
    possession_otp_digits      integer NOT NULL DEFAULT 6
        CONSTRAINT realm_possession_otp_digits CHECK (possession_otp_digits BETWEEN 4 AND 8),
    CONSTRAINT realm_has_an_origin CHECK (primary_domain IS NOT NULL OR public_origin IS NOT NULL),
    CONSTRAINT realm_deleted CHECK ((deleted_at IS NULL) = (erased_at IS NULL) AND (deleted_at IS NULL OR NOT enabled))
);
COMMENT ON TABLE postern.realm IS 'A tenant: its hosts, lifetimes and switches';
COMMENT ON COLUMN postern.realm.public_origin IS 'Issuer when set; otherwise https:// and the primary domain';
COMMENT ON COLUMN postern.realm.config_version IS 'Changes with every change of this realm''s configuration';
COMMENT ON COLUMN postern.realm.deleted_at IS 'When an administrator deleted it; until erased_at it can be undeleted';
COMMENT ON COLUMN postern.realm.erased_at IS 'From when on the sweeper erases it';
COMMENT ON COLUMN postern.realm.hosted_enabled IS
    'Whether the realm serves sign-in pages and the authorization endpoint';
COMMENT ON COLUMN postern.realm.sso_idle IS 'Idle time of a browser session; 0: no single sign-on';
COMMENT ON COLUMN postern.realm.dpop_nonce IS
    'Whether each proof of possession needs a nonce of the server, or only one whose iat is not of this minute';
COMMENT ON COLUMN postern.realm.dpop_nonce_lifetime IS 'How long a nonce is accepted';
COMMENT ON COLUMN postern.realm.approvals_enabled IS 'Whether there are trusted devices and approvals';
COMMENT ON COLUMN postern.realm.approvals_public IS 'Whether public clients may ask for approvals';
COMMENT ON COLUMN postern.realm.approval_lifetime IS 'How long an approval can be given';
COMMENT ON COLUMN postern.realm.approval_probation IS
    'How long a device that was added beside others may not approve, adopt or sign in';
COMMENT ON COLUMN postern.realm.possession_enabled IS 'Whether phone numbers may be proven for clients'' backends';
-- As postern.tenant_table does it: the realm of a realm is its id.
ALTER TABLE postern.realm ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.realm USING (id = postern.current_realm()) WITH CHECK (id = postern.current_realm());
CREATE POLICY owner ON postern.realm TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.realm FROM PUBLIC;
GRANT SELECT ON postern.realm TO postern_app;

-- A fresh realm has the scopes every client library expects.
CREATE FUNCTION postern.realm_seed_scopes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    INSERT INTO postern.scope (realm_id, name, description)
    VALUES (NEW.id, 'openid', 'Sign in'),
           (NEW.id, 'offline_access', 'Stay signed in'),
           (NEW.id, 'profile', 'Name'),
           (NEW.id, 'email', 'E-mail address');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_seed_scopes IS 'Trigger: the standard scopes of a new realm';
CREATE TRIGGER realm_seed_scopes AFTER INSERT ON postern.realm
    FOR EACH ROW EXECUTE FUNCTION postern.realm_seed_scopes();

-- Configuration changes: a new version for the realm and a notification to every server, sent at commit.
CREATE FUNCTION postern.realm_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM pg_notify('postern_config', OLD.id::text);
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' OR to_jsonb(NEW) - 'config_version' <> to_jsonb(OLD) - 'config_version' THEN
        NEW.config_version := nextval('postern.config_version');
        PERFORM pg_notify('postern_config', NEW.id::text);
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.realm_changed IS 'Trigger: numbers and announces changes of a realm''s own row';
CREATE TRIGGER realm_changed BEFORE INSERT OR UPDATE OR DELETE ON postern.realm
    FOR EACH ROW EXECUTE FUNCTION postern.realm_changed();

CREATE FUNCTION postern.realm_deletion_recorded() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.deleted_realm AS d SET erased_at = now() WHERE d.realm_id = OLD.id;
    INSERT INTO postern.deleted_realm (realm_id, erased_at, created_at, users, clients, slug, issuer, deleted_by)
    SELECT OLD.id, now(), OLD.created_at, (SELECT count(*) FROM postern.user_account AS u WHERE u.realm_id = OLD.id),
           (SELECT count(*) FROM postern.client AS c WHERE c.realm_id = OLD.id), OLD.slug,
           coalesce(OLD.public_origin, 'https://' || OLD.primary_domain), 'sql:' || session_user
        ON CONFLICT (realm_id) DO NOTHING;
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION postern.realm_deletion_recorded IS 'Trigger: the deletion of a realm leaves a record';
CREATE TRIGGER realm_deletion_recorded BEFORE DELETE ON postern.realm
    FOR EACH ROW EXECUTE FUNCTION postern.realm_deletion_recorded();

CREATE TABLE postern.scope (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    name         text NOT NULL CHECK (postern.is_scope(name)),
    description  text CHECK (postern.is_plain_text(description, 500)),
    resources    text[] NOT NULL DEFAULT '{}',
    in_discovery boolean NOT NULL DEFAULT true,
    enabled      boolean NOT NULL DEFAULT true,
    PRIMARY KEY (realm_id, name)
);
COMMENT ON TABLE postern.scope IS 'Scopes of a realm and the resources (audiences) they open';
CALL postern.tenant_table('scope', 'SELECT', 'cascade', p_is_configuration => true);

-- admin.set_rate_limit asks rate_limit_policy; the constraints keep the shape only.
CREATE TABLE postern.rate_limit (
    realm_id  uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    policy    text NOT NULL CONSTRAINT rate_limit_policy_name CHECK (policy COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    dimension text NOT NULL CHECK (dimension COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    permits   integer NOT NULL CHECK (permits >= 1),
    per       interval NOT NULL CHECK (per BETWEEN '1 second' AND '1 day'),
    burst     integer NOT NULL CHECK (burst BETWEEN 1 AND 1000000),
    mode      text NOT NULL DEFAULT 'enforce' CHECK (mode IN ('enforce', 'log-only')),
    PRIMARY KEY (realm_id, policy, dimension),
    CONSTRAINT rate_limit_ceiling CHECK (permits <= 1000000 * extract(epoch FROM per) / 60)
);
COMMENT ON TABLE postern.rate_limit IS 'Overrides of the default rate limits (postern.default_rate_limits)';
CALL postern.tenant_table('rate_limit', 'SELECT', 'cascade', p_is_configuration => true);

-- Rows that come and go by the thousand, here and in other tables, have no foreign key to realm: each insert would lock
-- the realm's one row.
CREATE TABLE postern.rate_bucket (
    realm_id uuid NOT NULL,
    tat      timestamptz NOT NULL,
    key      text NOT NULL,
    PRIMARY KEY (realm_id, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE postern.rate_bucket IS 'GCRA: theoretical arrival time per limited key';
CALL postern.tenant_table('rate_bucket', 'SELECT, INSERT, UPDATE', 'delete');

-- The audit log of a realm goes with it. This stays: no name or address of a person is in it.
CREATE TABLE postern.deleted_realm (
    realm_id   uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL,
    users      bigint NOT NULL,
    clients    bigint NOT NULL,
    slug       text NOT NULL,
    issuer     text,
    deleted_by text NOT NULL,
    erased_at  timestamptz
);
COMMENT ON TABLE postern.deleted_realm IS 'Realms that were deleted, when and by whom';
COMMENT ON COLUMN postern.deleted_realm.erased_at IS
    'When its last row went; NULL: it can still be undeleted, or is being erased';
CALL postern.tenant_table('deleted_realm', NULL, 'keep');

RESET ROLE;
