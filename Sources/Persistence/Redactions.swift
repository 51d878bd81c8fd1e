// What holds a secret and has no other reason to conform.

extension DatabaseConfiguration: Redacted {}
extension LiveServiceAccount: Redacted {}
extension LiveSession: Redacted {}
extension MessagePayload: Redacted {}
extension MessagePayload.Content: Redacted {}
extension NewSession: Redacted {}
extension Parameter: Redacted {}
extension SecondFactorPrompt: Redacted {}
extension SecondFactorProof: Redacted {}
extension SessionSettings: Redacted {}
extension SessionStore.Rotated: Redacted {}
extension SessionStore.Rotation: Redacted {}
extension TestIdentityStore.PendingCode: Redacted {}
