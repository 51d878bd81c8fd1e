import Encoding
import Persistence

extension AuthorizationRequest {
    /// The parameters of a request that count, and a compact form of them for storage and for sealed values.
    ///
    /// What is stored is read again by the same checks, so that a configuration that changed meanwhile counts.
    struct Parameters: Sendable {
        let form: FormParameters
        /// User and session of an `id_token_hint` that was checked before.
        let device: (user: UUIDValue, session: UUIDValue)?
        /// `iss` of the response.
        let issuer: String
        /// The address that is to be proven; comes with no parameter.
        var proof: WantedProof?
        /// Thumbprint of the key that was proven with a pushed request; afterwards it is the parameter `dpop_jkt`.
        var key: [UInt8]?

        subscript(name: String) -> String? { form[name] ?? (name == "dpop_jkt" ? key.map(Base64.urlEncode) : nil) }

        init(
            _ form: FormParameters, device: (user: UUIDValue, session: UUIDValue)? = nil, issuer: String,
            proof: WantedProof? = nil, key: [UInt8]? = nil
        ) {
            self.form = form
            self.device = device
            self.issuer = issuer
            self.proof = proof
            self.key = key
        }

        /// User and session in place of the hint, which is much longer.
        func keeping(_ device: (user: UUIDValue, session: UUIDValue)?) -> Parameters {
            Parameters(form, device: device, issuer: issuer, proof: proof, key: key)
        }

        /// In the order of their numbers.
        private static let names = [
            "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
            "code_challenge_method", "prompt", "max_age", "acr_values", "login_hint", "ui_locales",
            "dpop_jkt",
        ]
        private static let resource: UInt8 = 64
        private static let proofNumber: UInt8 = 66
        /// `user (16) ‖ session (16)`.
        private static let deviceNumber: UInt8 = 67

        /// `number (1) ‖ length (2) ‖ value` of each.
        var encoded: [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(512)
            func append(_ number: UInt8, _ value: some Collection<UInt8>) {
                guard let count = UInt16(exactly: value.count) else { return }
                bytes.append(number)
                bytes.append(UInt8(count >> 8))
                bytes.append(UInt8(truncatingIfNeeded: count))
                bytes.append(contentsOf: value)
            }
            for (number, name) in Self.names.enumerated() {
                if let value = self[name] { append(UInt8(number), value.utf8) }
            }
            for value in form.resources { append(Self.resource, value.utf8) }
            if let device { append(Self.deviceNumber, device.user.bytes + device.session.bytes) }
            if let proof { append(Self.proofNumber, proof.encoded) }
            return bytes
        }

        /// Reads ``encoded``; `nil` for anything else.
        init?(_ encoded: some Collection<UInt8>, issuer: String) {
            var rest = Array(encoded)[...]
            var values: [(String, String)] = []
            var device: (user: UUIDValue, session: UUIDValue)?
            var proof: WantedProof?
            while let number = rest.popFirst() {
                guard let count = rest.prefix(2).bigEndianInteger(as: UInt16.self).map(Int.init),
                    rest.count >= 2 + count
                else { return nil }
                let bytes = rest.dropFirst(2).prefix(count)
                rest = rest.dropFirst(2 + count)
                if number == Self.deviceNumber {
                    guard let user = UUIDValue(bytes: bytes.prefix(16)),
                        let session = UUIDValue(bytes: bytes.dropFirst(16))
                    else { return nil }
                    device = (user, session)
                } else if number == Self.proofNumber {
                    guard let value = WantedProof(bytes) else { return nil }
                    proof = value
                } else {
                    let name =
                        number == Self.resource
                        ? "resource"
                        : Self.names.indices.contains(Int(number))
                            ? Self.names[Int(number)] : nil
                    guard let name, let value = String(validating: bytes, as: UTF8.self) else { return nil }
                    values.append((name, value))
                }
            }
            guard let form = FormParameters(values) else { return nil }
            self.init(form, device: device, issuer: issuer, proof: proof)
        }
    }

    /// The most bytes of a request that is stored, all parameters together; anybody can make the server store one.
    private static let maximumStored = 4096
    /// The most bytes of each of the lists, of which a request that is stored may have any number of values.
    private static let maximumStoredList = 1024

    /// ``encoded``, of a request that is to be stored. - Throws: `invalid_request` when it is too long.
    var encodedToBeStored: [UInt8] {
        get throws(AuthorizationRefusal) {
            let encoded = encoded
            let lists = ["acr_values", "ui_locales", "scope"].map { parameters[$0]?.utf8.count ?? 0 }
            let resources = parameters.form.resources.reduce(0) { $0 + $1.utf8.count }
            guard encoded.count <= Self.maximumStored,
                (lists + [resources]).allSatisfy({ $0 <= Self.maximumStoredList })
            else { throw .response(.failure(.invalidRequest, "The request is too long.", to: target)) }
            return encoded
        }
    }

    /// The request in bytes, to be sealed.
    public var encoded: [UInt8] {
        let kind: [UInt8] =
            switch origin {
            case .query: [0]
            case .pushed(let id): [1] + id
            case .stored(let id): [2] + id
            }
        return kind + parameters.encoded
    }

    /// Reads ``encoded`` under the present configuration: every check of steps 3 to 13 runs again.
    /// - Throws: as the authorization endpoint; `invalid_request` for bytes that are not ours.
    public init(_ encoded: [UInt8], realm: Realm) throws(AuthorizationRefusal) {
        let origin: Origin
        switch encoded.first {
        case 0: origin = .query
        case 1 where encoded.count >= 33: origin = .pushed(id: Array(encoded[1..<33]))
        case 2 where encoded.count >= 33: origin = .stored(id: Array(encoded[1..<33]))
        default: throw .page(.invalidRequest)
        }
        guard let parameters = Parameters(encoded.dropFirst(origin.id == nil ? 1 : 33), issuer: realm.issuer) else {
            throw .page(.invalidRequest)
        }
        try self.init(parameters, realm: realm, from: origin)
    }

    /// Checks steps 2, 3 and 5 to 13.
    init(_ parameters: Parameters, realm: Realm, from origin: Origin) throws(AuthorizationRefusal) {
        guard realm.hosted.isEnabled else { throw .page(.hostedDisabled) }
        guard let client = parameters["client_id"].flatMap({ realm.clients[$0] }), client.enabled,
            realm.admits(client), parameters.proof == nil || client.permissions.contains("cap:cotter")
        else { throw .page(.invalidClient) }
        try self.init(parameters, realm: realm, client: client, from: origin)
    }
}
