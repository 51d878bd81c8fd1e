-- Realm `demo` on localhost, with an app that signs its users in by codes, and one user. Runs again without harm.
SELECT admin.put_realm('demo', primary_domain => 'localhost', display_name => 'Demo',
                       public_origin => 'http://localhost:8080');
SELECT admin.set_native_grants('demo', enabled => true);
SELECT admin.put_client('demo', 'demo-app', 'public', 'Demo App');
SELECT admin.grant_permission('demo', 'demo-app', 'gt:urn:cocoar:otp', 'gt:refresh_token', 'scp:profile', 'scp:email');
SELECT admin.put_user('demo', 'ada@example.com', 'Ada', 'Lovelace', email_verified => true);
