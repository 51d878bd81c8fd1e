public import Persistence

/// An App of a realm (`admin.put_app`): a host of its own, its clients, and whether new users may register there.
public struct App: Sendable, Equatable {
    /// The name administrators use.
    public let slug: String
    /// The name users read.
    public let displayName: String
    /// The host it is served on; `nil` when it has none yet.
    public let host: String?
    /// What an unknown address gets that asks for a code.
    public let registration: Registration
    /// The App's own switch; the realm's counts as well.
    public let nativeGrantsEnabled: Bool
    /// The App's own, or else the realm's.
    public let registrationFields: RegistrationFields
    /// The pages of its host; the realm's switch counts as well.
    public internal(set) var hosted = Hosted.off
    /// The row keys of its clients.
    public let clients: Set<UUIDValue>

    /// The registration posture: whether and how an unknown address gets an account.
    public enum Registration: String, Sendable {
        /// No registration.
        case off = "Off"
        /// Redeeming an ordinary sign-in code creates the account of an unknown address.
        case jitOnOTP = "JitOnOtp"
        /// The same by way of `POST /api/account/native/register` only.
        case explicitEndpoint = "ExplicitEndpoint"
    }
}

extension Realm {
    /// The realm as it shows itself on one of its hosts: on an App's, with the App's switch, required names and
    /// posture.
    ///
    /// Code past the host lookup (checks, discovery, endpoints) sees an ordinary `Realm` and does not need to know
    /// about Apps.
    public func seen(from host: String) -> Realm {
        views.isEmpty ? self : views[host] ?? self
    }

    /// The posture of the host; `off` without an App.
    public var registration: App.Registration { app?.registration ?? .off }

    /// Whether a client may be used on this host: on an App's host its own clients and those that belong to no App; on
    /// the realm's own hosts every client.
    public func admits(_ client: Client) -> Bool {
        guard let app else { return true }
        return app.clients.contains(client.key) || !clientsOfApps.contains(client.key)
    }

    /// The App whose posture, methods and brand the pages have for a client: the host's, else the one App that the
    /// client belongs to.
    public func pageApp(for client: Client) -> App? {
        if let app { return app }
        let own = apps.filter { $0.clients.contains(client.key) }
        return own.count == 1 ? own[0] : nil
    }

    /// The realm as pages for a client show it: with the settings of ``pageApp(for:)``.
    public func onPages(for client: Client) -> Realm {
        guard app == nil, let app = pageApp(for: client) else { return self }
        return view(of: app)
    }

    /// The look of an App.
    public func brand(of app: App) -> Brand { brands[app.slug] ?? brand }

    /// - Throws: `invalid_request` for a client of other Apps than the host's.
    public func requireAdmission(of client: Client) throws(TokenError) {
        guard admits(client) else {
            throw TokenError(
                .invalidRequest, "The client does not belong to the App of this host.", reason: "client of another App")
        }
    }

    /// The host of the public origin, without port.
    var host: String { Self.host(ofOrigin: issuer) }

    /// The host of `scheme://host[:port]`.
    static func host(ofOrigin origin: String) -> String {
        let authority = origin.firstRange(of: "://").map { origin[$0.upperBound...] } ?? origin[...]
        return String(authority.prefix { $0 != ":" && $0 != "/" })
    }

    /// Where the endpoints of the host are, without a trailing slash: the issuer, or the App's host under the issuer's
    /// scheme and port.
    public var endpointOrigin: String { app?.host.map(origin(ofHost:)) ?? issuer }

    /// The origin of one of the realm's hosts: under the issuer's scheme and port.
    public func origin(ofHost host: String) -> String {
        // Bytes: each request with a page or a proof asks for it.
        let bytes = Array(issuer.utf8), colon = UInt8(ascii: ":")
        guard let scheme = bytes.firstIndex(of: colon), bytes[scheme...].starts(with: "://".utf8) else { return issuer }
        let authority = scheme + 3
        let port = bytes[authority...].firstIndex(of: colon) ?? bytes.endIndex
        return String(decoding: bytes[..<authority] + host.utf8 + bytes[port...], as: UTF8.self)
    }

    /// The RP-ID to expect on the host before a client is named: the one all passkey clients of the App share, else the
    /// realm's.
    public var advertisedRPID: String? {
        let ofApp = clients.values.filter { client in
            client.enabled && client.mayUse(.passkey) && app?.clients.contains(client.key) == true
        }
        let rpIDs = Set(ofApp.map { rpID(for: $0) })
        if rpIDs.count == 1, let only = rpIDs.first { return only }
        return primaryRPID
    }

    /// The client's RP-ID, else the realm's primary domain; `nil` when there is neither.
    /// The primary domain may be an IP address or a single label; those are not valid RP-IDs.
    public func rpID(for client: Client) -> String? {
        Self.usable(client.rpID ?? primaryDomain)
    }

    /// The RP-ID of a client that has none of its own.
    var primaryRPID: String? { Self.usable(primaryDomain) }

    private static func usable(_ rpID: String?) -> String? {
        guard let rpID else { return nil }
        // Bytes: each page asks for it. Other scripts than Latin have no bytes of ASCII.
        let top = rpID.utf8.reversed().prefix { $0 != UInt8(ascii: ".") }
        let isDomain = top.count + 1 < rpID.utf8.count && top.contains { $0 > UInt8(ascii: "9") }
        return isDomain || rpID == "localhost" ? rpID : nil
    }

    /// The realm with an App's settings in the place of its own.
    func view(of app: App) -> Realm {
        changed { view in
            view.app = app
            view.nativeGrantsEnabled = nativeGrantsEnabled && app.nativeGrantsEnabled
            view.registrationFields = app.registrationFields
            view.hosted = app.hosted
            view.brand = brand(of: app)
            view.views = [:]
        }
    }
}
