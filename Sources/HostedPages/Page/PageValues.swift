/// What a template shows beside the texts and the look: names with values, in the order in which they were set.
///
/// Values that differ from request to request are kept apart from the rest, the shape, of which there are few: a page
/// is rendered once for its shape (``PageShell``).
struct PageValues: Sendable, ExpressibleByDictionaryLiteral {
    /// A value that a name has.
    enum Value: Sendable {
        /// Any text. It has no part in the page but to be shown: whether it is set is what a section sees.
        case value(String)
        /// A text of the catalogue, by its key.
        case text(String)
        /// Whether a section is shown.
        case flag(Bool)
        /// For a section that is repeated.
        case rows([PageValues])
    }

    /// A name, with what is known of its value before there is a request.
    struct Member: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case slot
            case text(String)
            case flag(Bool)
            case rows([[Member]])
        }

        let name: String
        let kind: Kind
    }

    private(set) var shape: [Member] = []
    /// The texts of all slots, in the order of the shape.
    private(set) var slots: [String] = []

    init() {}

    init(dictionaryLiteral elements: (String, Value)...) {
        for (name, value) in elements { set(name, value) }
    }

    /// Gives a name its value; once for each name.
    mutating func set(_ name: String, _ value: Value) {
        switch value {
        case .value(let text):
            shape.append(Member(name: name, kind: .slot))
            slots.append(text)
        case .text(let key): shape.append(Member(name: name, kind: .text(key)))
        case .flag(let flag): shape.append(Member(name: name, kind: .flag(flag)))
        case .rows(let rows):
            shape.append(Member(name: name, kind: .rows(rows.map(\.shape))))
            for row in rows { slots += row.slots }
        }
    }

    /// The same for a value that may be missing.
    mutating func set(_ name: String, value: String?) {
        if let value { set(name, .value(value)) }
    }
}
