import Foundation

/// Work that the server asks for before it sends something to an address: find the number whose SHA-256, behind a salt, is
/// given (ALTCHA, version 1).
struct WorkChallenge: Sendable {
    /// More is not worked on: a wrong server would only warm the device.
    static let most = 5_000_000

    private let challenge: String
    private let salt: String
    private let signature: String
    private let maximum: Int

    /// `nil` if it is of another kind, or too much.
    init?(_ json: JSONValue?) {
        guard let json, json["algorithm"]?.string == "SHA-256", let challenge = json["challenge"]?.string,
            let salt = json["salt"]?.string, let signature = json["signature"]?.string,
            let maximum = json["maxnumber"]?.integer, (1...Self.most).contains(maximum), salt.utf8.count <= 1024
        else { return nil }
        self.challenge = challenge
        self.salt = salt
        self.signature = signature
        self.maximum = maximum
    }

    /// The answer for the member `Challenge` of the repeated request; `nil` if no number fits.
    /// - Throws: `CancellationError`.
    func solved() async throws -> String? {
        // Off the caller's thread, at low priority. A task group ends with the caller, where a detached task would not.
        try await withThrowingTaskGroup(of: Int?.self) { group in
            group.addTask(priority: .utility) { try await number() }
            guard let number = try await group.next() ?? nil else { return nil }
            let answer: JSONValue = [
                "algorithm": "SHA-256", "challenge": .string(challenge), "number": .number(Double(number)),
                "salt": .string(salt), "signature": .string(signature),
            ]
            return answer.data.base64EncodedString()
        }
    }

    private func number() async throws -> Int? {
        guard let wanted = Self.bytes(ofHex: challenge) else { return nil }
        let prefix = Data(salt.utf8)
        for number in 0...maximum {
            if Digest.sha256(prefix + Data("\(number)".utf8)) == wanted { return number }
            guard number % 1000 == 0 else { continue }
            try Task.checkCancellation()
            // Others of the pool get their turn.
            await Task.yield()
        }
        return nil
    }

    private static func bytes(ofHex text: String) -> Data? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == 64, digits.allSatisfy({ $0 != nil }) else { return nil }
        let values = digits.compactMap { $0 }
        return Data(stride(from: 0, to: 64, by: 2).map { UInt8(values[$0] * 16 + values[$0 + 1]) })
    }
}
