import Foundation

/// What to do after each attempt of a call.
struct Attempts {
    enum Next {
        case done(Answer)
        case again
        case pause(TimeInterval)
        case giveUp(TimeInterval?)
    }

    private let call: Call
    private let end: TimeInterval
    private var pauses = Pauses()
    private var hadNonce = false
    private var hadNewProof = false
    /// The nonce that the call brings along, for its first attempt.
    private(set) var nonce: String?

    init(_ call: Call, until end: TimeInterval) {
        self.call = call
        self.end = end
        nonce = call.nonce
    }

    /// - Parameters:
    ///   - answer: `nil` when there was none.
    ///   - now: by `uptime`.
    mutating func next(after answer: Answer?, now: TimeInterval) -> Next {
        nonce = nil
        guard let answer, answer.body.count <= Answer.largestBody else { return lost(nil, now) }
        let hasProof = call.hasProof
        switch answer.dpopError {
        case "use_dpop_nonce"? where hasProof:
            guard answer.nonce != nil, !hadNonce else { return .giveUp(nil) }
            hadNonce = true
            return .again
        case "invalid_dpop_proof"? where hasProof:
            // HTTP stacks repeat requests by themselves; the copy then finds its proof used.
            guard call.mayFollowUsedProof else { return lost(nil, now) }
            guard !hadNewProof else { return .done(answer) }
            hadNewProof = true
            return .again
        default: break
        }
        if answer.status == 408 || answer.status >= 500 { return lost(answer.retryAfter, now) }
        return .done(answer)
    }

    private mutating func lost(_ retryAfter: TimeInterval?, _ now: TimeInterval) -> Next {
        guard call.repeats == .whileLost else { return .giveUp(retryAfter) }
        let pause = max(pauses.next(), retryAfter ?? 0)
        return now + pause < end ? .pause(pause) : .giveUp(retryAfter)
    }
}

extension Answer {
    /// `error` of a refused proof: of the body, or of `WWW-Authenticate` (RFC 9449 §7.1, §8, §9).
    var dpopError: String? {
        guard status == 400 || status == 401 else { return nil }
        if let error { return error }
        return challenges.first { $0.scheme == "dpop" }?.parameters["error"]
    }
}

/// Growing pauses: 0.5, 1, 2, 4, then 8 s, each a fifth more or less.
struct Pauses {
    private var pause: TimeInterval = 0.5

    mutating func next() -> TimeInterval {
        defer { pause = min(pause * 2, 8) }
        return pause * TimeInterval.random(in: 0.8...1.2)
    }
}
