public import Persistence

// What holds a secret and has no other reason to conform.

extension Authentication: Redacted {}
extension AuthSessionHandle: Redacted {}
extension PresentedCredentials: Redacted {}
extension PresentedCredentials.Basic: Redacted {}
extension PresentedCredentials.Header: Redacted {}
extension FormParameters: Redacted {}
extension MagicLink: Redacted {}
extension NewSigningKey: Redacted {}
extension PasskeyCeremony: Redacted {}
extension RefreshToken: Redacted {}
extension RSAPrivateKey: Redacted {}
extension SealedReference: Redacted {}
extension SecondFactors.Begun: Redacted {}
extension SigningKey: Redacted {}
extension SigningKey.PrivateKey: Redacted {}
extension TokenRequest: Redacted {}
extension TokenResponse: Redacted {}
extension TOTPCeremony: Redacted {}
