import Persistence

/// A code that proves an address and opens no session: the request for it as it is recorded, and its message.
struct AddressCode {
    let handle: AuthSessionHandle
    let code: String
    let request: SignInRequest

    /// - Parameters:
    ///   - authSession: a handle to send again for; it counts when it is of the same address.
    ///   - pageOrigin: of the page where the code is typed; `nil`: an app asks for it.
    init(
        to address: MessageAddress, authSession: String?, client: Client, locale: String?, pageOrigin: String?,
        realm: Realm, source: String, keyring: Keyring
    ) {
        let presented = authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        handle = AuthSessionHandle(addressKey: address.key, channel: address.channel)
        code = OneTimeCode.random(digits: realm.policy.otpDigits)
        request = SignInRequest(
            realm: realm, id: handle.id, resendOf: presented?.addressKey == address.key ? presented?.id : nil,
            address: address, firstName: nil, lastName: nil, client: client, source: source, hint: nil, locale: locale,
            pageOrigin: pageOrigin)
    }

    /// As the store takes the request.
    var record: SignInRequestStore.Request { request.record(lifetime: request.realm.policy.otpLifetime) }

    /// The message with the code, sealed for the queue.
    func message(under keyring: Keyring) throws -> SealedMessage {
        let realm = request.realm
        let payload = MessagePayload(
            originHost: Realm.host(ofOrigin: request.pageOrigin ?? realm.issuer),
            content: .otp(code: code, minutes: (realm.policy.otpLifetime + 59) / 60))
        return try payload.sealed(under: keyring, realm: realm.id)
    }
}
