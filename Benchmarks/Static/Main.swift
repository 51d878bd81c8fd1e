import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Answers every request with the bytes of a file, with no router and no middleware: what the HTTP framework itself
/// costs. Usage: BenchStatic PORT FILE
@main
struct Main {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[1]) else { fatalError("usage: BenchStatic PORT FILE") }
        let body = ByteBuffer(bytes: try Data(contentsOf: URL(fileURLWithPath: arguments[2])))
        let responder = CallbackResponder<BasicRequestContext> { _, _ in
            Response(status: .ok, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: body))
        }
        try await Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            logger: Logger(label: "static") { _ in SwiftLogNoOpLogHandler() }
        ).run()
    }
}
