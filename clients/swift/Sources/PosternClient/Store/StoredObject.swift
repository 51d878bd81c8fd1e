import Foundation

/// A JSON object of the store. Members that this version does not know stay as they are.
protocol StoredObject: Sendable, Hashable {
    var members: [String: JSONValue] { get set }
}

extension StoredObject {
    func string(_ name: String) -> String? { members[name]?.string }
    mutating func set(_ name: String, _ value: String?) { members[name] = value.map(JSONValue.string) }

    func date(_ name: String) -> Date? { members[name]?.date }
    mutating func set(_ name: String, _ value: Date?) {
        members[name] = value.map { .number($0.timeIntervalSince1970) }
    }

    func strings(_ name: String) -> [String] { members[name]?.strings ?? [] }
    mutating func set(_ name: String, _ value: [String]) {
        members[name] = value.isEmpty ? nil : .array(value.map(JSONValue.string))
    }

    func objects(_ name: String) -> [[String: JSONValue]] { members[name]?.array?.compactMap(\.object) ?? [] }
    mutating func set(_ name: String, _ value: [some StoredObject]) {
        members[name] = value.isEmpty ? nil : .array(value.map { .object($0.members) })
    }
}
