import Foundation
import Testing

@testable import PosternClient

/// A file of docs/vectors (docs/vectors/README.md).
struct VectorFile: Sendable {
    let members: JSONValue
    var cases: [VectorCase] { (members["cases"]?.array ?? []).map { VectorCase(members: $0) } }

    init(_ kind: String) {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../../docs/vectors/\(kind).json")
        members = (try? Data(contentsOf: folder)).flatMap { JSONValue($0) } ?? .null
    }

    static let proofs = VectorFile("proofs")
    static let refresh = VectorFile("refresh")
    static let signIn = VectorFile("sign-in")
    static let errors = VectorFile("errors")
    static let links = VectorFile("links")
    static let challenges = VectorFile("challenges")
    static let ceremonies = VectorFile("ceremonies")

    /// The value with ID tokens in the place of their names.
    func named(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text): members["id_tokens"]?[text]?["jwt"] ?? value
        case .array(let values): .array(values.map(named))
        case .object(let members): .object(members.mapValues(named))
        default: value
        }
    }
}

struct VectorCase: Sendable, CustomTestStringConvertible {
    let members: JSONValue
    var name: String { members["name"]?.string ?? "" }
    var testDescription: String { name }
}

/// Something is not as a case says.
struct VectorDifference: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Compares a value with what is expected in its place.
/// - Parameter isPart: whether members that are not named may be there.
func match(_ expected: JSONValue, _ value: JSONValue?, _ place: String, isPart: Bool = false) throws {
    func check(_ holds: Bool) throws {
        guard holds else {
            throw VectorDifference("\(place): \(text(value)) instead of \(text(expected))")
        }
    }
    switch (expected, expected["$"]?.string) {
    case (_, "any"?): break
    case (_, "absent"?): try check(value == nil)
    case (_, "string"?): try check(value?.string != nil)
    case (_, "match"?):
        let pattern = expected["pattern"]?.string ?? ""
        try check(value?.string?.range(of: "^(?:\(pattern))$", options: .regularExpression) != nil)
    case (_, "number"?):
        guard let number = value?.number else { return try check(false) }
        try check(number >= expected["min"]?.number ?? 0 && number <= expected["max"]?.number ?? 0)
    case (.object(let members), _):
        guard let value, case .object(let found) = value else { return try check(false) }
        for name in Set(members.keys).union(isPart ? [] : Array(found.keys)) {
            try match(members[name] ?? ["$": "absent"], found[name], "\(place).\(name)")
        }
    case (.array(let values), _):
        guard let found = value?.array, found.count == values.count else { return try check(false) }
        for (one, other) in zip(values, found) { try match(one, other, place) }
    default: try check(value == expected)
    }
}

/// Test values have no secrets, so that they can be shown.
private func text(_ value: JSONValue?) -> String { value.map { String(decoding: $0.data, as: UTF8.self) } ?? "nothing" }
