-- Provisioning: what is asked before a message is sent: rules for addresses, and the pre-send hook.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_address_rule(realm text, domain text, action text, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    IF domain IS NULL OR NOT postern.is_host(regexp_replace(domain, '\A\*\.', '')) THEN
        PERFORM postern.refuse(format('domain %s is not a domain', postern.shown(domain)),
            'Allowed is a domain as in example.com, or *.example.com for its sub-domains: lower case, international '
            'names in their xn-- form.');
    END IF;
    IF action IS NULL THEN
        PERFORM postern.refuse('action is NULL', 'Allowed: allow, deny.');
    END IF;
    PERFORM postern.check_choice('action', action, 'allow', 'deny');
    PERFORM postern.check_app(v_realm, app);
    INSERT INTO postern.address_rule AS a (realm_id, app, domain, action)
    VALUES (v_realm, app, domain, action)
        ON CONFLICT ON CONSTRAINT address_rule_realm_id_app_domain_key DO UPDATE SET action = excluded.action;
    PERFORM postern.admin_audit(v_realm, 'address_rule_put',
                                detail => jsonb_build_object('domain', domain, 'action', action, 'app', app));
END
$$;
COMMENT ON FUNCTION admin.put_address_rule IS
'Accepts or refuses the mail addresses of a domain, for the realm or for one App. A request for a code or link to an
address that is not accepted gets 400, whether or not the address has an account.
domain: exact, or *.domain for all sub-domains (not the domain itself). action: allow or deny.
The rule of the longest domain decides; rules of the App go before those of the realm. Where no rule fits, an address
is accepted, unless the App (if it has rules; else the realm) has a rule that allows: then only what is allowed is.
Example: SELECT admin.put_address_rule(''acme'', ''mailinator.com'', ''deny'');';

CREATE OR REPLACE FUNCTION admin.delete_address_rule(realm text, domain text, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.address_rule AS a
     WHERE a.realm_id = v_realm AND a.domain = domain AND a.app IS NOT DISTINCT FROM app;
    PERFORM postern.admin_removed(v_realm, FOUND, 'address_rule_deleted',
        detail => jsonb_build_object('domain', domain, 'app', app),
        p_missing => format('domain %s has no rule here', postern.shown(domain)),
        p_hint => 'SELECT app, domain FROM admin.address_rules WHERE realm = … lists them.');
END
$$;
COMMENT ON FUNCTION admin.delete_address_rule IS
'Deletes the rule of a domain, of the realm or of one App.
Example: SELECT admin.delete_address_rule(''acme'', ''mailinator.com'');';

CREATE OR REPLACE FUNCTION admin.set_pre_send_hook(realm text, url text, on_failure text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    IF url IS NULL THEN
        PERFORM postern.refuse('url is NULL', 'admin.delete_pre_send_hook(realm) takes the hook away.');
    END IF;
    PERFORM postern.check_call_url('url', url);
    PERFORM postern.check_choice('on_failure', on_failure, 'allow', 'deny');
    INSERT INTO postern.pre_send_hook AS h (realm_id, url, on_failure)
    VALUES (v_realm, url, coalesce(on_failure, 'deny'))
        ON CONFLICT ON CONSTRAINT pre_send_hook_pkey DO UPDATE
       SET url = excluded.url, on_failure = coalesce(on_failure, h.on_failure);
    PERFORM postern.admin_audit(v_realm, 'pre_send_hook_set',
                                detail => jsonb_build_object('url', url, 'on_failure', on_failure));
END
$$;
COMMENT ON FUNCTION admin.set_pre_send_hook IS
'Asks an endpoint of yours before each message of the realm is sent (mail too): it answers 200 {"allow":true} or
{"allow":false} within 3 seconds. It sees channel, recipient and purpose, never the code or link.
on_failure: what any other answer, or none, means: deny (default) or allow. NULL leaves it as it is.
A message that is denied is dropped and audited (message_denied); the asker is not told.
Example: SELECT admin.set_pre_send_hook(''acme'', ''https://hooks.acme.example/check'', ''allow'');';

CREATE OR REPLACE FUNCTION admin.delete_pre_send_hook(realm text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.pre_send_hook AS h WHERE h.realm_id = v_realm;
    PERFORM postern.admin_removed(v_realm, FOUND, 'pre_send_hook_deleted',
        p_missing => 'this realm has no pre-send hook', p_hint => 'admin.set_pre_send_hook(realm, url) sets one.');
END
$$;
COMMENT ON FUNCTION admin.delete_pre_send_hook IS
'Sends the messages of a realm without asking.
Example: SELECT admin.delete_pre_send_hook(''acme'');';

CREATE OR REPLACE VIEW admin.address_rules AS
SELECT r.slug AS realm, a.app, a.domain, a.action
  FROM postern.address_rule AS a JOIN postern.realm AS r ON r.id = a.realm_id;
COMMENT ON VIEW admin.address_rules IS
    'E-mail domains that realms and Apps (app NULL: the whole realm) accept or refuse';

CREATE OR REPLACE VIEW admin.pre_send_hooks AS
SELECT r.slug AS realm, h.url, h.on_failure
  FROM postern.pre_send_hook AS h JOIN postern.realm AS r ON r.id = h.realm_id;
COMMENT ON VIEW admin.pre_send_hooks IS 'Whom each realm asks before a message is sent';

RESET ROLE;
