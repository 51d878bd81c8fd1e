#if POSTERN_STEP_PROOF
    import FoundationEssentials
#endif

/// The checks of a proof (RFC 9449 §4.3), in the order in which they run.
enum DPoPCheck: Int, CaseIterable {
    case field = 1
    case format
    case type
    case algorithm
    case key
    case claims
    case signature
    case method
    case url
    case accessToken
    case nonce
    case time

    /// Refuses the proof unless `condition` holds. Each check passes through this function or ``holds(_:)``.
    func require(_ condition: @autoclosure () -> Bool, _ reason: String) throws(DPoPRefusal) {
        guard holds(condition()) else { throw refusal(reason) }
    }

    /// Whether `condition` holds, or `scripts/prove-dpop-checks` has removed the check.
    func holds(_ condition: @autoclosure () -> Bool) -> Bool {
        #if POSTERN_STEP_PROOF
            if Self.removed == rawValue { return true }
        #endif
        return condition()
    }

    func refusal(_ reason: String) -> DPoPRefusal { .invalid(reason: reason) }

    #if POSTERN_STEP_PROOF
        /// The one check that the script has removed. Exists only in builds with `POSTERN_STEP_PROOF`, which no product
        /// is built with.
        private static let removed = ProcessInfo.processInfo.environment["POSTERN_SKIP_CHECK"].flatMap(Int.init)
    #endif
}
