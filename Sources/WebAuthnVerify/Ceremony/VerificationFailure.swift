/// The step at which a ceremony failed, and why. Holds no input, so it may be logged; it is not for the client's eyes.
public struct VerificationFailure<Step: CeremonyStep>: Error, Equatable, CustomStringConvertible {
    /// The numbered step.
    public let step: Step
    /// What was wrong.
    public let reason: FailureReason

    /// A failure of `step`.
    public init(_ step: Step, _ reason: FailureReason) {
        self.step = step
        self.reason = reason
    }

    /// For example `authentication step 12 (origin): mismatch`.
    public var description: String { "\(Step.ceremony) step \(step.rawValue) (\(step)): \(reason)" }
}

extension CeremonyStep {
    /// Fails the ceremony at this step unless `condition` holds.
    @inline(__always)
    func require(_ condition: Bool, else reason: FailureReason) throws(VerificationFailure<Self>) {
        guard condition else { throw VerificationFailure(self, reason) }
    }

    /// Reads something whose failure is a failure of this step.
    @inline(__always)
    func read<Value, Failure: FailureReasonConvertible>(
        _ body: () throws(Failure) -> Value
    ) throws(VerificationFailure<Self>) -> Value {
        do throws(Failure) { return try body() } catch { throw VerificationFailure(self, error.reason) }
    }
}

/// A failed registration (WebAuthn L3 §7.1).
public typealias RegistrationFailure = VerificationFailure<RegistrationStep>
/// A failed authentication (WebAuthn L3 §7.2).
public typealias AuthenticationFailure = VerificationFailure<AuthenticationStep>

/// What was wrong at a step.
public enum FailureReason: Error, Equatable, Sendable {
    /// The value is not the expected one.
    case mismatch
    /// Something required is absent.
    case missing
    /// The relying party's policy does not accept it.
    case notAllowed
    /// Longer than allowed.
    case tooLong
    /// The cryptographic check failed.
    case invalidSignature
    /// The signature counter did not move forward: the credential may have been cloned.
    case signCountRegressed
    /// JSON that could not be read.
    case json(JSONError)
    /// CBOR that could not be read.
    case cbor(CBORError)
    /// A serialised `PublicKeyCredential` that could not be read.
    case response(ResponseFormatError)
    /// Authenticator data that could not be read.
    case authenticatorData(AuthenticatorDataError)
    /// A credential public key that is not acceptable.
    case key(COSEKeyError)
    /// An attestation statement that is not correct.
    case attestation(AttestationError)
}

/// An error of one of the parsers, seen as the reason a step failed.
protocol FailureReasonConvertible: Error {
    var reason: FailureReason { get }
}

extension FailureReason: FailureReasonConvertible { var reason: FailureReason { self } }
extension JSONError: FailureReasonConvertible { var reason: FailureReason { .json(self) } }
extension CBORError: FailureReasonConvertible { var reason: FailureReason { .cbor(self) } }
extension ResponseFormatError: FailureReasonConvertible { var reason: FailureReason { .response(self) } }
extension AuthenticatorDataError: FailureReasonConvertible { var reason: FailureReason { .authenticatorData(self) } }
extension COSEKeyError: FailureReasonConvertible { var reason: FailureReason { .key(self) } }
extension AttestationError: FailureReasonConvertible { var reason: FailureReason { .attestation(self) } }
