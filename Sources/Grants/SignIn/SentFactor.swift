public import Persistence

/// A factor that is sent to an address on request: a code, a link.
///
/// One value serves both halves of a request: it records the request while the caller waits, and decides about it in a
/// worker, which alone looks whether the address has an account.
public protocol SentFactor: Sendable {
    /// `sign_in_request.kind` of its requests.
    var kind: String { get }
    /// The limits of its requests by mail.
    var policy: RateLimit.Policy { get }
    /// What may carry it to a phone; the first is the default.
    var phoneChannels: [Channel] { get }
    /// Whether a request may hold the names of a new user.
    var takesNames: Bool { get }
    /// How long the handle of a request lives, in seconds.
    func lifetime(in realm: Realm) -> Int
    /// What an app must know to poll with the handle; `nil` where the factor comes back to the app itself.
    func polling(ofHandle id: [UInt8]) -> Polling.Terms?

    /// Records a request, without a look at the users. - Returns: `nil` when a limit refused it.
    func record(
        _ request: SignInRequest, permits: PermitRequest
    ) async throws(StoreError) -> (SignInRequestStore.Recorded?, PermitVerdict)
    /// Decides a recorded request: the factor and its mail, or nothing.
    func decide(
        _ request: SignInRequestStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> SignInRequestStore.Decision
}

/// A request for a code or a link, complete and bounded.
public struct SignInRequest: Sendable {
    let realm: Realm
    /// The new handle's id, 16 random bytes.
    let id: [UInt8]
    /// The handle to send again for, if the app presented one of this address.
    let resendOf: [UInt8]?
    let address: MessageAddress
    let firstName: PersonName?
    let lastName: PersonName?
    let client: Client?
    /// The backend that has the number proven, and answers for it; `nil`: anybody may ask.
    var backend: Client?
    /// Where it came from: an address, IPv6 by /64.
    let source: String
    /// The device it says it comes from.
    let hint: IDTokenHint?
    /// The language that the message is to be in; `nil`: the realm's.
    let locale: String?
    /// Origin of the page that asks; `nil`: an app does.
    var pageOrigin: String?
    /// SHA-256 of the cookie of the browser whose page asks.
    var pageBrowser: [UInt8]?
    /// Of the key that the handle is bound to.
    var proof: ProofUse?

    /// As the store takes it.
    func record(lifetime: Int) -> SignInRequestStore.Request {
        SignInRequestStore.Request(
            realm: realm.id, id: id, resendOf: resendOf, address: address.text, addressKey: address.key,
            channel: address.channel, region: address.region, client: client?.key, app: realm.app?.slug, source: source,
            lifetime: Int32(clamping: lifetime), sends: Int32(clamping: address.sends(in: realm)),
            hint: hint.map { (user: $0.user, session: $0.session) }, locale: locale, pageOrigin: pageOrigin,
            pageBrowser: pageBrowser, proof: proof)
    }
}
