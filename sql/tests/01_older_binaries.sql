\ir helpers/setup.psql
BEGIN;
SELECT plan(1);

-- While nodes are upgraded one after the other, a binary of version 0 calls these. They may be rewritten, never dropped.
CREATE TEMP TABLE called (signature text);
COPY called FROM stdin;
postern.add_link(uuid,bytea,uuid,bytea,uuid,bytea)
postern.add_passkey(uuid,uuid,text,bytea,bytea,bigint,uuid,boolean,boolean,boolean,text[],text,text,text,uuid,bytea)
postern.add_signing_key(uuid,text,text,jsonb,bytea,boolean)
postern.begin_assertion(uuid,bytea,float8,text,bytea,text[],int4[],int4[],float8[],int4[])
postern.client_credentials(uuid,uuid,text,text[],int4[],int4[],float8[],int4[])
postern.config_stamp()
postern.confirm_link(uuid,uuid,bytea,int4,text,text[],int4[],int4[],float8[],int4[])
postern.decide_link(uuid,bytea)
postern.decide_otp(uuid,bytea,uuid,bytea,bytea,uuid,bytea,text)
postern.delete_passkey(uuid,uuid,uuid,uuid,text,uuid,bytea)
postern.directory()
postern.end_own_session(uuid,uuid,uuid,uuid,text)
postern.enrol_totp(uuid,uuid,bytea,float8,uuid,bytea,bigint,bytea[],text)
postern.enrolment_options(uuid,uuid,text)
postern.introspect(uuid,uuid,bytea)
postern.introspect_service(uuid,uuid,bytea)
postern.key_test_code(uuid,uuid,text,bytea,bytea)
postern.link_number(uuid,uuid,bytea)
postern.list_passkeys(uuid,uuid,uuid)
postern.outbox_failed(uuid,uuid,text,interval,boolean)
postern.outbox_refused(uuid,uuid,text)
postern.outbox_sent(uuid,uuid)
postern.outbox_take(int4,interval)
postern.own_sessions(uuid,uuid)
postern.pending_test_codes()
postern.poll_magic(uuid,uuid,text,bytea,uuid,bytea,bytea,text[],text[],text[],int4,int4,text,text[],int4[],int4[],float8[],int4[],uuid,bigint,bytea[])
postern.realm_config(uuid)
postern.realm_id(text)
postern.redeem_assertion(uuid,uuid,text,uuid,bigint,boolean,uuid,bytea,bytea,text[],text[],text[],int4,int4,text)
postern.redeem_magic(uuid,uuid,text,uuid,bytea,uuid,bytea,bytea,text[],text[],text[],int4,int4,text,text[],int4[],int4[],float8[],int4[],uuid,bigint,bytea[])
postern.redeem_otp(uuid,uuid,text,text,bytea,bytea[],uuid,bytea,bytea,text[],text[],text[],int4,int4,text,text[],int4[],int4[],float8[],int4[],int4,float8,int4,uuid,bigint,bytea[])
postern.refresh(uuid,uuid,uuid,int4,bytea,bytea[],int4,int4,text,text[],int4[],int4[],float8[],int4[],text[],text[])
postern.remove_totp(uuid,uuid,text)
postern.rename_passkey(uuid,uuid,uuid,text)
postern.request_code(uuid,bytea,bytea,text,text,text,uuid,text,text,int4,text[],int4[],int4[],float8[],int4[],text)
postern.request_link(uuid,bytea,bytea,text,text,uuid,text,int4,text[],int4[],int4[],float8[],int4[],text)
postern.revoke_access_token(uuid,uuid,uuid,bytea,float8)
postern.revoke_service_token(uuid,uuid,uuid,bytea,float8)
postern.revoke_session(uuid,uuid,uuid,text)
postern.rotate_signing_key(uuid,text,text,jsonb,bytea,boolean,boolean,boolean,text)
postern.schema_version()
postern.server_probe()
postern.signing_key_requests()
postern.spend_assertion(uuid,bytea,float8)
postern.spend_ceremony(uuid,bytea,float8)
postern.sweep(int4)
postern.take_realm_permits(uuid,text[],int4[],int4[],float8[],int4[])
postern.take_requests(int4)
\.

SELECT is_empty($$
    SELECT c.signature FROM called AS c
     WHERE to_regprocedure(c.signature) IS NULL
        OR NOT has_function_privilege('postern_app', to_regprocedure(c.signature), 'EXECUTE')$$,
    'every function that a binary of version 0 calls is there for it');

SELECT * FROM finish();
ROLLBACK;
