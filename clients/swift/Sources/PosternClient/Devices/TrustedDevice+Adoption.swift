import Foundation

extension TrustedDevice {
    /// Offers this new device for adoption by one that the person trusts. Show ``Offer/qrText`` as a QR code and
    /// ``Offer/checkCode`` beside it, and ask ``info()`` now and then until this device is known.
    public func offer(named name: String? = nil) async throws -> Offer {
        let now = client.surroundings.now()
        let members = Self.members(name).merging(["ClientId": .string(client.configuration.clientID)]) { $1 }
        return try await client.deviceCall("POST", Self.path + "/offer", .object(members)).item { Offer($0, at: now) }
    }

    /// Takes a new device in, whose QR code this trusted device has read. Wants a sign-in of the last ten minutes.
    /// - Parameters:
    ///   - qrText: the text of the QR code.
    ///   - confirm: shows the person what is offered, and returns the four digits that they type from the other screen. What
    ///     it throws ends the adoption.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with `invalid_offer` for a code of another server, wrong
    ///   digits, and an offer that is over.
    public func adopt(
        _ qrText: String, confirm: @Sendable (OfferedDevice) async throws -> String
    ) async throws -> Info {
        let offer = try await offerText(qrText)
        let inspected = try await client.accountCall("POST", Self.path + "/inspect", .json(["Offer": .string(offer)]))
        let device = try inspected.item(OfferedDevice.init)
        let digits = try await PosternError.ofDialog { try await confirm(device) }
        let approval = try await client.statement(
            "postern-adopt+jwt",
            [
                "offer": .string(Base64URL.encode(Digest.sha256(Data(offer.utf8)))),
                // The offer names the key that it is for.
                "jkt": .string(String(offer.dropFirst(4).prefix { $0 != "." })),
                "check_code": .string(Digits.read(digits)),
            ])
        let body: JSONValue = ["Offer": .string(offer), "Approval": .string(approval)]
        return try await client.accountCall("POST", Self.path + "/adopt", .json(body)).item(Info.init)
    }

    /// The offer of `postern-device:HOST:OFFER`, if the host is this server's.
    private func offerText(_ text: String) async throws -> String {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let refusal = PosternError.refused(code: "invalid_offer", description: nil, status: 0)
        guard parts.count >= 3, parts[0] == "postern-device", let offer = parts.last, offer.hasPrefix("pdo_"),
            offer.utf8.count <= 4096
        else { throw refusal }
        let host = parts[1..<(parts.count - 1)].joined(separator: ":").lowercased()
        if host == Origin(client.configuration.origin)?.host { return String(offer) }
        guard host == URL(string: try await client.issuer()).flatMap(Origin.init)?.host else { throw refusal }
        return String(offer)
    }

    /// What a new device shows.
    public struct Offer: Sendable, Hashable {
        /// For the QR code.
        public let qrText: String
        /// Four digits, to type on the trusted device.
        public let checkCode: String
        /// When the offer expires, by the clock of this device.
        public let expiresAt: Date
    }

    /// What the person is about to take in.
    public struct OfferedDevice: Sendable, Hashable {
        /// The name that the device gave itself.
        public let name: String?
        /// The name of its app.
        public let clientName: String?
        /// Its network address.
        public let source: String?
        /// When it was offered.
        public let createdAt: Date
    }
}

extension TrustedDevice.Offer: Discreet {
    /// The time alone.
    public var shown: [(String, any Sendable)] { [("expiresAt", expiresAt)] }
}

extension TrustedDevice.OfferedDevice: Discreet {
    /// Names and time; not the network address.
    public var shown: [(String, any Sendable)] {
        [("name", name), ("clientName", clientName), ("createdAt", createdAt)]
    }
}

extension TrustedDevice.Offer {
    init?(_ json: JSONValue?, at now: Date) {
        guard let qrText = json?["QrText"]?.string, let checkCode = json?["CheckCode"]?.string,
            let life = json?["ExpiresIn"]?.seconds
        else { return nil }
        self.init(qrText: qrText, checkCode: checkCode, expiresAt: now.addingTimeInterval(life))
    }
}

extension TrustedDevice.OfferedDevice {
    init?(_ json: JSONValue?) {
        guard let createdAt = json?["CreatedAt"]?.time else { return nil }
        self.init(
            name: json?["DisplayName"]?.string, clientName: json?["ClientName"]?.string,
            source: json?["Source"]?.string, createdAt: createdAt)
    }
}
