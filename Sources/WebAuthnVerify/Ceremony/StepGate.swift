#if POSTERN_STEP_PROOF
    import FoundationEssentials

    /// The one step that `scripts/prove-webauthn-steps` has switched off, as `ceremony.number` in `POSTERN_SKIP_STEP`.
    ///
    /// Exists only in builds with `POSTERN_STEP_PROOF`, which no product is built with: the script removes one step
    /// after another and sees a test go red, which proves that every step is there and is tested.
    enum StepMask {
        static let skipped = ProcessInfo.processInfo.environment["POSTERN_SKIP_STEP"]

        static func skips(_ step: some CeremonyStep) -> Bool {
            skipped == "\(type(of: step).ceremony).\(step.rawValue)"
        }
    }
#endif

extension CeremonyStep {
    /// Fails the ceremony at this step unless `condition` holds. Every check of the two procedures passes through this
    /// function or its two neighbours.
    @inline(__always)
    func require(
        _ condition: @autoclosure () -> Bool, else reason: @autoclosure () -> FailureReason
    ) throws(VerificationFailure<Self>) {
        #if POSTERN_STEP_PROOF
            if StepMask.skips(self) { return }
        #endif
        guard condition() else { throw VerificationFailure(self, reason()) }
    }

    /// Reads something whose failure is a failure of this step. `fallback` is used only when the proof has removed the
    /// step.
    @inline(__always)
    func read<Value, Failure: FailureReasonConvertible>(
        orElse fallback: @autoclosure () -> Value, _ body: () throws(Failure) -> Value
    ) throws(VerificationFailure<Self>) -> Value {
        do throws(Failure) {
            return try body()
        } catch {
            #if POSTERN_STEP_PROOF
                if StepMask.skips(self) { return fallback() }
            #endif
            throw VerificationFailure(self, error.reason)
        }
    }

    /// Computes the value this step defines. `fallback` is used only when the proof has removed the step.
    @inline(__always)
    func compute<Value>(orElse fallback: @autoclosure () -> Value, _ body: () -> Value) -> Value {
        #if POSTERN_STEP_PROOF
            if StepMask.skips(self) { return fallback() }
        #endif
        return body()
    }
}
