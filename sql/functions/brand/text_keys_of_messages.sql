-- The texts of messages that a realm may replace. Written by scripts/text-keys from Sources/Texts/Templates/en.json.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.text_key (key, default_text, placeholders)
SELECT v.key, v.text, ARRAY(SELECT DISTINCT m[1] COLLATE "C"
                              FROM regexp_matches(v.text, '{([^{}]*)}', 'g') AS m ORDER BY 1) FROM (VALUES
    ('mail-account-deleted-effect', 'Nothing needs to be done. This is the last mail about this account.'),
    ('mail-account-deleted-lead', 'Your {name} account was deleted, with its passkeys and sessions.'),
    ('mail-account-deleted-not-you', 'Ask {name} for help at once, and make sure that nobody else reads your mail.'),
    ('mail-account-deleted-subject', 'Your {name} account was deleted'),
    ('mail-account-secured-effect', 'What is older still works. Sign in again as you did before.'),
    ('mail-account-secured-lead',
     '{name} has ended every session of your account and removed what was added to it '
     'lately: ways to sign in, addresses, devices.'),
    ('mail-account-secured-next',
     'Look at the addresses, passkeys and devices of your account. If something is missing '
     'or is not yours, ask {name} for help.'),
    ('mail-account-secured-subject', 'Your {name} account was secured'),
    ('mail-address-changed-effect',
     'Codes, links and notices go to the new address. The old address no longer signs in.'),
    ('mail-address-changed-lead', 'The e-mail address of your {name} account was changed.'),
    ('mail-address-changed-not-you', 'Ask {name} for help at once.'),
    ('mail-address-changed-subject', 'The address of your {name} account was changed'),
    ('mail-approval-reported-effect',
     'For 24 hours your devices show no more requests. You can still sign in with codes, '
     'links and passkeys.'),
    ('mail-approval-reported-lead', 'You reported a sign-in request for your account at {name}.'),
    ('mail-approval-reported-not-you',
     'Sign in, check your devices and end your other sessions, or ask {name} for help.'),
    ('mail-approval-reported-subject', 'You reported a sign-in request for your account at {name}'),
    ('mail-code-lead', 'Your {name} verification code is:'),
    ('mail-code-not-you', 'Then ignore this mail: without the code nobody gets in.'),
    ('mail-code-origin', 'Asked for by {client}.'),
    ('mail-code-subject', '{code} is your {name} verification code'),
    ('mail-code-use',
     'It is valid for {validity} and works once. Type it only into the app you are signing '
     'in to. Nobody from {name} will ask you for it.'),
    ('mail-device-added-effect', 'It can be used to sign in and to approve sign-ins, at once or after a waiting time.'),
    ('mail-device-added-lead', 'A device was added to your {name} account.'),
    ('mail-device-added-not-you',
     'Make sure that nobody else reads your mail. Then sign in, remove this device and end '
     'your other sessions, or ask {name} for help.'),
    ('mail-device-added-subject', 'A device was added to your {name} account'),
    ('mail-device-origin', '{device}: added through {client}, on {time}, from {address}.'),
    ('mail-device-removed-effect', 'It can no longer be used to sign in.'),
    ('mail-device-removed-lead', 'A device was removed from your {name} account.'),
    ('mail-device-removed-not-you',
     'Make sure that nobody else reads your mail. Then sign in, check your devices and end '
     'your other sessions, or ask {name} for help.'),
    ('mail-device-removed-subject', 'A device was removed from your {name} account'),
    ('mail-device-unnamed', 'Device without a name'),
    ('mail-identifier-added-effect', 'It can be used to sign in from now on.'),
    ('mail-identifier-added-lead', 'An address or phone number was added to your {name} account:'),
    ('mail-identifier-added-not-you', 'Sign in, remove it and end your other sessions, or ask {name} for help.'),
    ('mail-identifier-added-subject', 'An address was added to your {name} account'),
    ('mail-identifier-moved-effect',
     'Another person has received a code at this number. You had not used it for a long '
     'time, so it no longer signs in to your account. Your other ways to sign in are as '
     'before.'),
    ('mail-identifier-moved-lead', 'A phone number of your {name} account belongs to somebody else now:'),
    ('mail-identifier-moved-not-you',
     'If the number is still yours, sign in in another way and add it again, or ask {name} '
     'for help.'),
    ('mail-identifier-moved-subject', 'A phone number left your {name} account'),
    ('mail-identifier-removed-effect', 'It no longer signs in.'),
    ('mail-identifier-removed-lead', 'An address or phone number was removed from your {name} account:'),
    ('mail-identifier-removed-not-you',
     'Sign in, check your account and end your other sessions, or ask {name} for help.'),
    ('mail-identifier-removed-subject', 'An address was removed from your {name} account'),
    ('mail-link-button', 'Sign in'),
    ('mail-link-lead', 'Open this link to sign in to {name}:'),
    ('mail-link-not-you', 'Then ignore this mail, or open the link and press “This was not me”.'),
    ('mail-link-origin', 'Asked for by {client}, on {time}, from {address}.'),
    ('mail-link-subject', 'Sign in to {name}'),
    ('mail-link-use',
     'It is valid for {validity} and works once. If a page asks for a number, type the one '
     'that your app shows. Do not forward this mail: with the link, somebody else could '
     'sign in as you.'),
    ('mail-minute', '1 minute'),
    ('mail-minutes', '{count} minutes'),
    ('mail-not-you', 'Not you?'),
    ('mail-passkey-added-effect', 'It can be used to sign in from now on.'),
    ('mail-passkey-added-lead', 'A passkey was added to your {name} account:'),
    ('mail-passkey-added-not-you',
     'Make sure that nobody else reads your mail. Then sign in, delete this passkey and end '
     'your other sessions, or ask {name} for help.'),
    ('mail-passkey-added-subject', 'A passkey was added to your {name} account'),
    ('mail-passkey-removed-effect', 'It can no longer be used to sign in.'),
    ('mail-passkey-removed-lead', 'A passkey was removed from your {name} account:'),
    ('mail-passkey-removed-not-you',
     'Make sure that nobody else reads your mail. Then sign in, check your passkeys and end '
     'your other sessions, or ask {name} for help.'),
    ('mail-passkey-removed-subject', 'A passkey was removed from your {name} account'),
    ('mail-phone-key-added-effect', 'From now on it proves this number without a code, and can sign in with it.'),
    ('mail-phone-key-added-lead', 'A device was linked to the phone number of your {name} account:'),
    ('mail-phone-key-added-not-you',
     'Sign in, remove this device and end your other sessions, or ask {name} for help.'),
    ('mail-phone-key-added-subject', 'A device was linked to your phone number at {name}'),
    ('mail-plain-link', 'If the button does not work, open this address:'),
    ('mail-recovery-codes-used-up-effect',
     'Set up your authenticator app again to get new recovery codes. If you lose the app '
     'before that, only a passkey signs you in, or {name} has to help you.'),
    ('mail-recovery-codes-used-up-lead', 'The last recovery code of your {name} account was used to sign in.'),
    ('mail-recovery-codes-used-up-not-you',
     'Somebody has your recovery codes. Sign in, end your other sessions and set up your '
     'authenticator app again, or ask {name} for help.'),
    ('mail-recovery-codes-used-up-subject', 'You have used your last {name} recovery code'),
    ('mail-totp-added-effect',
     'From now on a code from this app is needed to sign in with a code or a link from your '
     'mail. An authenticator app and recovery codes that you had before no longer work.'),
    ('mail-totp-added-lead', 'An authenticator app was added to your {name} account.'),
    ('mail-totp-added-not-you',
     'Somebody who reads your mail may have done it. Secure your mailbox. Then ask {name} '
     'to remove the authenticator app: without its codes only a passkey signs you in.'),
    ('mail-totp-added-subject', 'An authenticator app was added to your {name} account'),
    ('mail-totp-removed-effect', 'From now on a code or a link from your mail is enough to sign in.'),
    ('mail-totp-removed-lead',
     'The authenticator app was removed from your {name} account, and its recovery codes '
     'with it.'),
    ('mail-totp-removed-not-you',
     'Secure your mailbox. Then sign in, end your other sessions and set up an '
     'authenticator app again, or ask {name} for help.'),
    ('mail-totp-removed-subject', 'The authenticator app was removed from your {name} account'),
    ('mail-undo', 'Undo this and end all sessions, within 7 days:'),
    ('mail-undo-button', 'Undo and end all sessions'),
    ('mail-unknown-address', 'an unknown address'),
    ('sms-account-deleted', 'Your {name} account was deleted.'),
    ('sms-account-secured',
     'Your {name} account was secured: all sessions ended, recent additions removed. Sign '
     'in again.'),
    ('sms-address-changed', 'The address of your {name} account was changed. Not you? Contact support.'),
    ('sms-approval-reported', 'A sign-in request for your account at {name} was reported. Not you? Sign in.'),
    ('sms-code', '{code} is your code for {name}. Never share it.'),
    ('sms-device-added', 'A device was added to your {name} account. Not you? Sign in and remove it.'),
    ('sms-device-removed', 'A device was removed from your {name} account. Not you? Contact support.'),
    ('sms-identifier-added',
     'A phone number or address was added to your {name} account. Not you? Sign in and '
     'remove it.'),
    ('sms-identifier-moved', 'A phone number left your {name} account. Not you? Sign in and check.'),
    ('sms-identifier-removed',
     'A phone number or address was removed from your {name} account. Not you? Sign in and '
     'check.'),
    ('sms-link', 'Sign in to {name} with this link. Never share it:'),
    ('sms-passkey-added', 'A passkey was added to your {name} account. Not you? Sign in and delete it.'),
    ('sms-passkey-removed', 'A passkey was removed from your {name} account. Not you? Contact support.'),
    ('sms-phone-key-added',
     'A device was linked to the phone number of your {name} account. Not you? Sign in and '
     'remove it.'),
    ('sms-recovery-codes-used-up', 'All recovery codes of your {name} account are used up.'),
    ('sms-totp-added', 'An authenticator app was added to your {name} account. Not you? Sign in and remove it.'),
    ('sms-totp-removed', 'The authenticator app was removed from your {name} account. Not you? Contact support.'),
    ('voice-code', 'Your code for {name} is: {spaced_code}. Once more: {spaced_code}.')
    ) AS v (key, text)
    ON CONFLICT (key) DO UPDATE SET default_text = excluded.default_text, placeholders = excluded.placeholders;

RESET ROLE;
