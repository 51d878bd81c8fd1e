public import Persistence

// What holds a code, a link or a password and has no other reason to conform.

extension DevOutbox.Mail: Redacted {}
extension HTTPCall: Redacted {}
extension MailMessage: Redacted {}
extension MessageWords: Redacted {}
extension OutgoingMail: Redacted {}
extension SMTPURL.Credentials: Redacted {}
