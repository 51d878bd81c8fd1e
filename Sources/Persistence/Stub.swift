public import Logging
public struct Notifications: Sendable {
 public enum Event: Sendable { case connected, lost, notification(channel: String,payload: String), heartbeat(String, ContinuousClock.Instant) }
 public init(conninfo: String, channel: String, logger: Logger) {}
 public func run(_ b: @Sendable (Event) -> Void) async {}
}
enum Embedded { static let migrations: [(name: String,text:String)] = []; static let functions: [(name: String,text:String)] = [] }
