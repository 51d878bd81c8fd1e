import Foundation
import Testing

@testable import Persistence

private let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

@Suite("Channels")
struct ChannelTests {
    /// The database and the server know the same of each channel: rules of both depend on it.
    @Test func `the rows of known_channel are the channels of the server`() throws {
        let text = try String(
            contentsOf: repository.appending(path: "sql/functions/channel/0_channels.sql"), encoding: .utf8)
        let rows = text.matches(of: /\('(\w+)', '(\w+)', '\{([\w,]*)\}', (\d+)\)/).map { row in
            "\(row.1) \(row.2) \(row.3) \(row.4)"
        }
        let channels = Channel.all.enumerated().map { index, channel in
            "\(channel.rawValue) \(channel.reaches.rawValue) \(channel.amr.joined(separator: ",")) \(index + 1)"
        }
        #expect(rows == channels)
    }

    @Test func `a text message is the default of phones`() {
        #expect(Channel.phones.first == .sms)
    }
}
