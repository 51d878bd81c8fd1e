-- Codes for addresses that an account wants to add, and links to addresses that are not proven, leave with codes that
-- register (sql/functions/outbox/admission.sql): whoever has an account can name any address.
SET LOCAL ROLE postern_owner;

COMMENT ON COLUMN postern.mail_outbox.priority IS
    '0: for somebody with an account; 1: notice; 2: to an address that is not proven. Set by the trigger mail_admission';

RESET ROLE;
