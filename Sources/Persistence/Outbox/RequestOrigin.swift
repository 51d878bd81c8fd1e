/// What a link's mail and page say about the request that caused the link, so that its owner can tell a stranger's from
/// their own.
public struct RequestOrigin: Codable, Sendable, Equatable {
    /// The name shown for the requester: the App's display name, else the client's, else the realm's.
    public let application: String
    /// When it was asked for, in seconds since 1970.
    public let time: Double
    /// Where it was asked for from, shortened; `nil` when unknown. The whole address is not kept in mails.
    public let address: String?

    /// - Parameter source: the whole address, as limits count it.
    public init(application: String, time: Double, source: String?) {
        self.application = application
        self.time = time
        address = source.flatMap(Self.shortened)
    }

    /// `198.51.x.x` of an IPv4 address, the first 32 bits of an IPv6 address, `nil` of any other text.
    static func shortened(_ source: String) -> String? {
        let address = source.prefix { $0 != "/" }
        if address.contains(":") {
            let groups = address.split(separator: ":", omittingEmptySubsequences: false)
            guard groups.count >= 3, groups.prefix(2).allSatisfy({ $0.utf8.count <= 4 && Int($0, radix: 16) != nil })
            else { return nil }
            return "\(groups[0]):\(groups[1]):x:x:x:x:x:x"
        }
        let groups = address.split(separator: ".", omittingEmptySubsequences: false)
        guard groups.count == 4, groups.allSatisfy({ UInt8($0) != nil }) else { return nil }
        return "\(groups[0]).\(groups[1]).x.x"
    }
}

extension RequestOrigin {
    /// How a request is described by the functions that decide about one.
    static func columns(_ columns: inout Columns) -> RowDecoder<Self?> {
        let application = columns("asked_by", String?.self)
        let origin = columns.record { (row) throws(StoreError) in
            RequestOrigin(application: try row("asked_by"), time: try row("asked_at"), source: try row("source"))
        }
        return { (row) throws(StoreError) in try row[application] == nil ? nil : origin(row) }
    }
}
