/// Why bytes are not one of the CBOR items this library reads (RFC 8949; CTAP2 §8 "Message Encoding").
///
/// The cases name a rule, never the data, so they may be logged.
public enum CBORError: Error, Equatable, Sendable, CaseIterable {
    /// Fewer bytes remain than the item needs; also a declared length or count that the input cannot hold.
    case truncated
    /// Bytes follow where a single item was promised.
    case trailingBytes
    /// Reserved additional information (28 to 30), a stray break, or a one-byte simple value below 32 (RFC 8949 §3).
    case malformed
    /// An integer or a length that has a shorter encoding (CTAP2: "as small as possible").
    case notShortestForm
    /// Indefinite-length strings, arrays and maps are refused (CTAP2).
    case indefiniteLength
    /// Tags are refused (CTAP2).
    case tag
    /// The same map key twice (RFC 8949 §5.6).
    case duplicateKey
    /// Map keys out of CTAP2 order, where canonical order was asked for.
    case keyOrder
    /// Arrays and maps nested deeper than allowed (CTAP2: four levels).
    case tooDeep
    /// A text string that is not UTF-8.
    case invalidUTF8
    /// A well-formed item of another type than the caller needs.
    case unexpectedType
    /// An integer outside the range of `Int64`, where one was needed.
    case integerOutOfRange
}
