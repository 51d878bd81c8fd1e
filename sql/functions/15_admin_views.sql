-- What administrators may see: everything but secrets, codes and mail bodies. Owner's rights on purpose (postern_admin cannot read the
-- tables), and no function in them takes a realm from the session.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE VIEW admin.realms AS
SELECT r.slug, r.id, r.display_name, r.primary_domain, coalesce(r.public_origin, 'https://' || r.primary_domain) AS public_origin,
       ARRAY(SELECT d.domain FROM postern.realm_domain AS d WHERE d.realm_id = r.id AND d.app IS NULL ORDER BY d.domain) AS domains,
       r.enabled, r.native_grants_enabled, r.access_token_lifetime, r.refresh_token_lifetime, r.refresh_retry_window, r.session_lifetime,
       r.otp_lifetime, r.otp_attempts, r.magic_link_lifetime, r.resend_cooldown, r.ceremony_lifetime,
       r.registration_firstname, r.registration_lastname, r.created_at, r.otp_digits
  FROM postern.realm AS r;
COMMENT ON VIEW admin.realms IS 'Realms and their settings';

CREATE OR REPLACE VIEW admin.scopes AS
SELECT r.slug AS realm, s.name AS scope, s.description, s.resources, s.in_discovery, s.enabled
  FROM postern.scope AS s JOIN postern.realm AS r ON r.id = s.realm_id;
COMMENT ON VIEW admin.scopes IS 'Scopes of each realm, with their resources';

CREATE OR REPLACE VIEW admin.clients AS
SELECT r.slug AS realm, c.client_id, c.id, c.client_type, c.display_name, c.access_token_type, coalesce(c.rp_id, r.primary_domain) AS rp_id,
       coalesce(c.access_token_lifetime, r.access_token_lifetime) AS access_token_lifetime,
       coalesce(c.refresh_token_lifetime, r.refresh_token_lifetime) AS refresh_token_lifetime,
       c.require_dpop, c.enabled, c.secret_hash IS NOT NULL AS has_secret, c.previous_secret_expires_at,
       (SELECT a.name FROM postern.service_account AS a WHERE a.realm_id = c.realm_id AND a.client = c.id) AS service_account,
       ARRAY(SELECT i.team_id || '.' || i.bundle_id FROM postern.client_ios_app AS i WHERE i.realm_id = c.realm_id AND i.client = c.id ORDER BY 1) AS ios_apps,
       ARRAY(SELECT n.package_name FROM postern.client_android_app AS n WHERE n.realm_id = c.realm_id AND n.client = c.id ORDER BY 1) AS android_apps,
       ARRAY(SELECT o.origin FROM postern.client_web_origin AS o WHERE o.realm_id = c.realm_id AND o.client = c.id
             UNION SELECT postern.android_origin(f) FROM postern.client_android_app AS n, unnest(n.fingerprints) AS f WHERE n.realm_id = c.realm_id AND n.client = c.id
             ORDER BY 1) AS origins,
       c.created_at, c.signing_alg, c.jwks
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id;
COMMENT ON VIEW admin.clients IS 'Clients, with what they inherit from their realm filled in';

CREATE OR REPLACE VIEW admin.permissions AS
SELECT r.slug AS realm, c.client_id, p.permission
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id, unnest(c.permissions) AS p (permission);
COMMENT ON VIEW admin.permissions IS 'Permissions of clients, one per row';

CREATE OR REPLACE VIEW admin.apps AS
SELECT r.slug AS realm, a.slug AS app, a.display_name, a.subdomain, a.registration, a.native_grants_enabled,
       coalesce(a.registration_firstname, r.registration_firstname) AS registration_firstname,
       coalesce(a.registration_lastname, r.registration_lastname) AS registration_lastname,
       ARRAY(SELECT c.client_id FROM postern.app_client AS k JOIN postern.client AS c ON c.realm_id = k.realm_id AND c.id = k.client
              WHERE k.realm_id = a.realm_id AND k.app = a.slug ORDER BY 1) AS client_ids, a.created_at
  FROM postern.app AS a JOIN postern.realm AS r ON r.id = a.realm_id;
COMMENT ON VIEW admin.apps IS 'Apps and their clients';

CREATE OR REPLACE VIEW admin.users AS
SELECT r.slug AS realm, u.id, u.email, u.first_name, u.last_name, u.email_verified, u.enabled, g.locked_until AS codes_locked_until, u.created_at, u.has_totp
  FROM postern.user_account AS u JOIN postern.realm AS r ON r.id = u.realm_id
  LEFT JOIN postern.code_guard AS g ON g.realm_id = u.realm_id AND g.email_key = u.email_key AND g.locked_until > now();
COMMENT ON VIEW admin.users IS 'Users of each realm';

CREATE OR REPLACE VIEW admin.passkeys AS
SELECT r.slug AS realm, u.email, p.id, p.rp_id, p.display_name, p.aaguid, p.backup_eligible, p.backup_state, p.transports, p.created_at, p.last_used_at
  FROM postern.passkey AS p JOIN postern.realm AS r ON r.id = p.realm_id JOIN postern.user_account AS u ON u.realm_id = p.realm_id AND u.id = p.user_id;
COMMENT ON VIEW admin.passkeys IS 'Passkeys of users, without credential ids and keys';

CREATE OR REPLACE VIEW admin.sessions AS
SELECT r.slug AS realm, s.id, u.email, s.client_id, s.scope, s.amr, s.auth_time, s.created_at, s.last_used_at, s.refresh_expires_at, s.expires_at, s.revoked_at,
       s.revoked_at IS NULL AND s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true) AND u.enabled AND u.security_stamp = s.security_stamp AS active,
       s.user_agent
  FROM postern.session AS s JOIN postern.realm AS r ON r.id = s.realm_id JOIN postern.user_account AS u ON u.realm_id = s.realm_id AND u.id = s.user_id;
COMMENT ON VIEW admin.sessions IS 'Sign-ins and whether they are alive';

CREATE OR REPLACE VIEW admin.audit_log AS
SELECT r.slug AS realm, a.id, a.at, a.event, c.client_id, a.user_id, a.session_id, a.source, a.detail,
       coalesce(postern.is_test_identity(a.user_id), false) AS test_identity
  FROM postern.audit_event AS a JOIN postern.realm AS r ON r.id = a.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = a.realm_id AND c.id = a.client;
COMMENT ON VIEW admin.audit_log IS 'What happened, by whom and when';

CREATE OR REPLACE VIEW admin.outbox AS
SELECT r.slug AS realm, m.id, m.recipient, m.template, m.state, m.attempts, m.last_error, m.created_at, m.not_before, m.expires_at, m.sent_at
  FROM postern.mail_outbox AS m JOIN postern.realm AS r ON r.id = m.realm_id;
COMMENT ON VIEW admin.outbox IS 'Mail queued, sent and dead, without its content';

CREATE OR REPLACE VIEW admin.rate_limits AS
SELECT r.slug AS realm, l.policy, l.dimension, l.permits, l.per, l.burst, l.mode, false AS is_default
  FROM postern.rate_limit AS l JOIN postern.realm AS r ON r.id = l.realm_id
UNION ALL
SELECT r.slug, d.policy, d.dimension, d.permits, d.per, d.burst, d.mode, true
  FROM postern.realm AS r, postern.default_rate_limits() AS d
 WHERE NOT EXISTS (SELECT FROM postern.rate_limit AS l WHERE l.realm_id = r.id AND l.policy = d.policy AND l.dimension = d.dimension);
COMMENT ON VIEW admin.rate_limits IS 'Rate limits in force; is_default: not overridden';

REVOKE ALL ON ALL TABLES IN SCHEMA admin FROM PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA admin TO postern_admin;
-- Functions inside a view run with the caller's rights.
GRANT EXECUTE ON FUNCTION postern.android_origin(text), postern.default_rate_limits() TO postern_admin;

RESET ROLE;
