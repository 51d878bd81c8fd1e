import Foundation

extension TrustedDevice {
    /// Answers a request to sign in. What is signed is what ``inbox`` showed.
    /// - Throws: ``PosternError/denied`` for a wrong number: the request is over. ``PosternError/refused(code:description:status:)``
    ///   with `already_decided`, or with status 404 when it is over. ``PosternError/misuse(_:)`` without the number that the
    ///   approval needs: nothing is sent.
    public func answer(_ approval: Approval, _ decision: Decision) async throws {
        if approval.needsNumber, case .approve(let number) = decision, Digits.read(number ?? "").isEmpty {
            throw PosternError.misuse("this approval needs the two digits that the other device shows")
        }
        var claims: [String: JSONValue] = [
            "approval_id": .string(approval.id), "challenge": .string(approval.challenge),
            "client_id": .string(approval.clientID), "event": .string(approval.event),
            "decision": .string(decision.name),
        ]
        claims["binding_message"] = approval.bindingMessage.map(JSONValue.string)
        if case .approve(let number?) = decision { claims["match_number"] = .string(Digits.read(number)) }
        let response = try await client.statement("postern-approval+jwt", claims)
        do {
            // The same answer again changes nothing.
            _ = try await client.post(
                try Path.item(approval.id, of: "/connect/approvals"), ["Response": .string(response)], proof: .none,
                repeats: .whileLost)
        } catch PosternError.refused("number_mismatch", _, _) {
            throw PosternError.denied
        }
    }

    /// The requests that wait for an answer.
    public struct Inbox: Sendable, Hashable {
        /// The oldest first.
        public let approvals: [Approval]
        /// Until when nothing is shown, because the person refused some lately.
        public let quietUntil: Date?
        /// Until when this device may answer nothing.
        public let probationUntil: Date?
    }

    /// A request to sign in.
    public struct Approval: Sendable, Hashable, Identifiable {
        /// Of the server.
        public let id: String
        /// What is asked for; `LOGIN` for a sign-in.
        public let event: String
        /// `client_id` of the app that asks.
        public let clientID: String
        /// Its name.
        public let clientName: String?
        /// What the app wants the person to read.
        public let bindingMessage: String?
        /// The network address of who asks, if the server tells it.
        public let source: String?
        /// When it was asked.
        public let createdAt: Date
        /// When it expires.
        public let expiresAt: Date
        /// Whether ``Decision/approve(number:)`` needs the two digits that the asking app shows.
        public let needsNumber: Bool

        let challenge: String
    }

    /// What the person decided.
    public enum Decision: Sendable, Hashable {
        /// It was this person. The two digits as typed, where they are needed; they have one try.
        case approve(number: String? = nil)
        /// Not now.
        case deny
        /// Somebody else asks: all requests stay hidden for a day.
        case report
    }
}

extension TrustedDevice.Approval: Discreet {
    /// Client, event and times.
    public var shown: [(String, any Sendable)] {
        [
            ("id", id), ("event", event), ("clientID", clientID), ("createdAt", createdAt), ("expiresAt", expiresAt),
            ("needsNumber", needsNumber),
        ]
    }
}

extension TrustedDevice.Decision: Discreet {
    /// The kind; not the number.
    public var shown: [(String, any Sendable)] { [("kind", name)] }

    /// As the server spells it.
    var name: String {
        switch self {
        case .approve: "approve"
        case .deny: "deny"
        case .report: "report"
        }
    }
}

extension TrustedDevice.Inbox {
    init?(_ json: JSONValue?) {
        guard let items = json?["Approvals"]?.array else { return nil }
        // An item that this version cannot read must not hide the others.
        self.init(
            approvals: items.compactMap(TrustedDevice.Approval.init), quietUntil: json?["QuietUntil"]?.time,
            probationUntil: json?["ProbationUntil"]?.time)
    }
}

extension TrustedDevice.Approval {
    init?(_ json: JSONValue?) {
        guard let json, let id = json["Id"]?.string, let event = json["Event"]?.string,
            let clientID = json["ClientId"]?.string, let challenge = json["Challenge"]?.string,
            let createdAt = json["CreatedAt"]?.time, let expiresAt = json["ExpiresAt"]?.time
        else { return nil }
        self.init(
            id: id, event: event, clientID: clientID, clientName: json["ClientName"]?.string,
            bindingMessage: json["BindingMessage"]?.string, source: json["Source"]?.string, createdAt: createdAt,
            expiresAt: expiresAt, needsNumber: json["MatchRequired"]?.bool ?? true, challenge: challenge)
    }
}

/// Digits that are signed cannot be read leniently by the server, so they are read here.
enum Digits {
    /// Decimal digits of every script as ASCII, without white space and hyphens.
    static func read(_ text: String) -> String {
        var digits = ""
        for scalar in text.unicodeScalars {
            if let value = scalar.properties.numericType == .decimal ? scalar.properties.numericValue : nil {
                digits += "\(Int(value))"
            } else if !scalar.properties.isWhitespace, !scalar.properties.isDefaultIgnorableCodePoint,
                scalar.properties.generalCategory != .dashPunctuation
            {
                digits.unicodeScalars.append(scalar)
            }
        }
        return digits
    }
}

extension PosternClient {
    /// A statement that this device signs for the server (RFC 7515).
    func statement(_ type: String, _ claims: [String: JSONValue]) async throws -> String {
        let issuer = try await issuer()
        let document = try await document()
        guard let key = try await key(for: .device, in: document) else { throw PosternError.signedOut(.keyLost) }
        let now = surroundings.now().addingTimeInterval(document.clockOffset).timeIntervalSince1970
        let stated = claims.merging(["aud": .string(issuer), "iat": .number(now.rounded(.down))]) { $1 }
        return try await sign(type, .object(stated), by: key, in: document)
    }
}
