import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Gives the answer of a file, header fields and body, to every request, with no router and no middleware: what the
/// HTTP framework itself costs. Usage: BenchStatic PORT FILE
@main
struct Main {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[1]) else { fatalError("usage: BenchStatic PORT FILE") }
        let answer = try Data(contentsOf: URL(fileURLWithPath: arguments[2]))
        guard let end = answer.firstRange(of: Data("\r\n\r\n".utf8)) else { fatalError("FILE has no empty line") }
        var fields = HTTPFields()
        for line in String(decoding: answer[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else { fatalError("no field: \(line)") }
            fields.append(HTTPField(name: name, value: parts[1].trimmingCharacters(in: .whitespaces)))
        }
        let head = fields
        let body = ByteBuffer(bytes: answer[end.upperBound...])
        let responder = CallbackResponder<BasicRequestContext> { _, _ in
            Response(status: .ok, headers: head, body: ResponseBody(byteBuffer: body))
        }
        try await Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            logger: Logger(label: "static") { _ in SwiftLogNoOpLogHandler() }
        ).run()
    }
}
