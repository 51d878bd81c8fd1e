-- Codes for addresses to add, and links to unproven addresses, get the priority of codes that register
-- (sql/functions/outbox/admission.sql). A user can ask for such messages to any address.
SET LOCAL ROLE postern_owner;

COMMENT ON COLUMN postern.mail_outbox.priority IS
    '0: for somebody with an account; 1: notice; 2: to an address that is not proven. Set by the trigger mail_admission';

RESET ROLE;
