import NIOCore
import NIOHTTP1

/// Looks at the request target as it came (RFC 9112 §3.2), which the typed codec behind it no longer shows.
///
/// An absolute-form target must name the host of `Host`; one that does not is given a second `Host`, which ends in 400 like any
/// other request with two.
final class TargetHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data),
            !Self.isOwn(head.uri, host: head.headers.first(name: "host"))
        else {
            context.fireChannelRead(data)
            return
        }
        head.headers.add(name: "host", value: "")
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Whether a target is in origin form, or in absolute form for `host`.
    static func isOwn(_ uri: String, host: String?) -> Bool {
        if uri.hasPrefix("/") { return true }
        guard let host, let scheme = ["http://", "https://"].first(where: uri.lowercased().hasPrefix) else {
            return false
        }
        return uri.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }.lowercased() == host.lowercased()
    }
}
