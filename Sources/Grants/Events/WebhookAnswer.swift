import Persistence
import WebAuthnVerify

/// What a receiver said to an event, and what follows from it (RFC 8935 §2.2 to §2.4).
public enum WebhookAnswer: Sendable, Equatable {
    /// It answered; `body` is the beginning of the body, 64 KiB at most.
    case answered(status: Int, body: [UInt8], retryAfter: Duration?)
    /// It was not reached, or did not answer. The text is a class of failure.
    case failed(String)

    /// What to record; `nil`: the receiver has it. - Parameter attempt: the number of this try, from 1.
    func failure(attempt: Int) -> WebhookStore.Failure? {
        switch self {
        case .answered(200, _, _), .answered(202, _, _), .answered(204, _, _): return nil
        case .answered(let status, let body, let retryAfter):
            if status == 400, let code = Self.errorCode(body) { return .refused(code) }
            let wanted = min(retryAfter?.components.seconds ?? 0, 3600)
            return .failed("HTTP \(status)", retryAfter: max(Self.pause(afterAttempt: attempt), Int32(wanted)))
        case .failed(let failure):
            return .failed(failure, retryAfter: Self.pause(afterAttempt: attempt))
        }
    }

    /// A second, then twice as long each time, five minutes at most.
    static func pause(afterAttempt attempt: Int) -> Int32 {
        Int32(min(1 << min(max(attempt, 1) - 1, 9), 300))
    }

    /// `err` (RFC 8935 §2.3); `nil` when there is none, so that a proxy's page is no refusal. A value that is no plain
    /// code is not kept, because it might repeat the token.
    private static func errorCode(_ body: [UInt8]) -> String? {
        guard let code = try? member("err", of: body) else { return nil }
        let isCode =
            (1...64).contains(code.utf8.count)
            && code.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        return isCode ? code : "other"
    }

    private static func member(_ wanted: String, of body: [UInt8]) throws(JSONError) -> String? {
        try JSONReader.validate(body.span, maximumLength: 64 * 1024)
        var json = JSONReader(validated: body.span)
        var members = try json.object()
        var found: String?
        while let name = try json.key(of: &members) {
            if name == wanted { found = try json.string() } else { _ = try json.skip(in: members) }
        }
        try json.finish()
        return found
    }
}
