/// The parameters of one COSE key as read from the input: the map is read once, checks of meaning come after.
struct COSEKeyParameters {
    /// A parameter below zero, whose meaning depends on `kty`.
    enum Parameter: Equatable {
        case integer(Int64)
        case bytes(Range<Int>)
    }

    private(set) var kty: Int64?
    private(set) var alg: Int64?
    private(set) var first: Parameter?  // label -1
    private(set) var second: Parameter?  // label -2
    private(set) var third: Parameter?  // label -3

    /// Reads one map. A COSE key in WebAuthn holds `kty`, `alg` and the public parameters of its type, nothing else
    /// (WebAuthn L3 §6.5.1.1), so an unknown label, a text label or the private `d` (-4) ends the reading.
    init(_ reader: inout CBORReader) throws(COSEKeyError) {
        do throws(CBORError) {
            var previous: Int64?
            for _ in 0..<(try reader.mapCount()) {
                guard let label = try Self.label(&reader) else { throw .unexpectedType }
                if reader.keyOrder == .canonical, let previous, !Self.precedes(previous, label) {
                    throw previous == label ? .duplicateKey : .keyOrder
                }
                previous = label
                switch label {
                case CredentialPublicKey.Label.kty:
                    guard kty == nil else { throw .duplicateKey }
                    kty = try reader.integer()
                case CredentialPublicKey.Label.alg:
                    guard alg == nil else { throw .duplicateKey }
                    alg = try reader.integer()
                case -1:
                    guard first == nil else { throw .duplicateKey }
                    first = try Self.parameter(&reader)
                case -2:
                    guard second == nil else { throw .duplicateKey }
                    second = try Self.parameter(&reader)
                case -3:
                    guard third == nil else { throw .duplicateKey }
                    third = try Self.parameter(&reader)
                default:
                    throw .unexpectedType
                }
            }
        } catch {
            throw error == .unexpectedType ? .wrongParameterType : .cbor(error)
        }
    }

    /// The next label; nil when it is one that no WebAuthn key has.
    private static func label(_ reader: inout CBORReader) throws(CBORError) -> Int64? {
        let label = try reader.integer()
        return (-3...3).contains(label) ? label : nil
    }

    private static func parameter(_ reader: inout CBORReader) throws(CBORError) -> Parameter {
        // The initial bytes of major types 0 and 1 are below 0x40 (RFC 8949 §3).
        guard let initial = reader.input.peek else { throw .truncated }
        return initial < 0x40 ? .integer(try reader.integer()) : .bytes(try reader.byteString())
    }

    /// CTAP2 order among one-byte integers: non-negative before negative, each by distance from zero.
    private static func precedes(_ left: Int64, _ right: Int64) -> Bool {
        left >= 0 ? (right < 0 || left < right) : (right < left)
    }
}
