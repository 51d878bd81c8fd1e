-- Apps of a realm, and the hosts of realm and Apps.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.app (
    realm_id               uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    slug                   text NOT NULL CHECK (slug COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    display_name           text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    subdomain              text CHECK (postern.is_host(subdomain)),
    registration           text NOT NULL DEFAULT 'JitOnOtp'
        CHECK (registration IN ('Off', 'JitOnOtp', 'ExplicitEndpoint')),
    native_grants_enabled  boolean NOT NULL DEFAULT true,
    registration_firstname text CHECK (registration_firstname IN ('Off', 'Optional', 'Required')),
    registration_lastname  text CHECK (registration_lastname IN ('Off', 'Optional', 'Required')),
    created_at             timestamptz NOT NULL DEFAULT now(),
    hosted_enabled         boolean NOT NULL DEFAULT true,
    hosted_methods         text[] CONSTRAINT app_hosted_methods
        CHECK (hosted_methods <@ '{passkey,email-code,magic-link,phone-code}' AND cardinality(hosted_methods) > 0),
    default_locale         text
        CONSTRAINT app_default_locale CHECK (default_locale COLLATE "C" ~ '\A[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*\Z'),
    offer_passkey          boolean,
    PRIMARY KEY (realm_id, slug)
);
COMMENT ON TABLE postern.app IS 'An App of a realm: its host, registration posture and required names';
COMMENT ON COLUMN postern.app.hosted_enabled IS 'The App''s own switch of the pages; the realm''s counts as well';
COMMENT ON COLUMN postern.app.hosted_methods IS 'NULL: the realm''s';
CALL postern.tenant_table('app', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.realm_domain (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    domain     text PRIMARY KEY CHECK (postern.is_host(domain)),
    app        text,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT realm_domain_app FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE
);
CREATE INDEX realm_domain_realm ON postern.realm_domain (realm_id);
COMMENT ON TABLE postern.realm_domain IS
    'Which host belongs to which realm, and to which App of it; it belongs to one realm (hence no realm in the key)';
COMMENT ON COLUMN postern.realm_domain.claimed_at IS
    'Of two clusters'' realms the earlier one keeps a host, served or not';
-- A change of a row can be copied to another cluster only when it says which realm it is of. The tables without the
-- realm in their key need this; the others have it there.
ALTER TABLE postern.realm_domain REPLICA IDENTITY FULL;
CALL postern.tenant_table('realm_domain', 'SELECT', 'cascade', p_is_configuration => true);

RESET ROLE;
