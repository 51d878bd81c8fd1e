import NIOCore

/// A classic BPF program on a listening socket (socket(7), `SO_ATTACH_FILTER`), which lets no new connection begin.
///
/// A client whose SYN is dropped sends it again after a second, and is then refused by the closed port, as one that
/// comes later: a proxy takes another process, because it has sent no request yet. Without it the connections that wait
/// to be accepted when the listener closes are reset, after their clients have sent a request that must not be sent
/// twice.
enum SocketFilter {
    /// `struct sock_filter` of linux/filter.h.
    private struct Instruction {
        let code: UInt16
        var ifTrue: UInt8 = 0
        var ifFalse: UInt8 = 0
        let operand: UInt32
    }

    /// `struct sock_fprog`; the kernel copies what it points to, which lives as long as the process.
    private struct Program: @unchecked Sendable {
        let count: UInt16
        let instructions: UnsafePointer<Instruction>
    }

    private static let attach = NIOBSDSocket.Option(rawValue: 26)
    private static let flagsOffset: UInt32 = 13
    private static let (syn, ack): (UInt32, UInt32) = (0x02, 0x10)

    private static let withoutSYN: Program = {
        let program = [
            Instruction(code: 0x30, operand: flagsOffset),  // load a byte
            Instruction(code: 0x54, operand: syn | ack),  // and
            Instruction(code: 0x15, ifFalse: 1, operand: syn),  // jump if equal
            Instruction(code: 0x06, operand: 0),  // drop
            Instruction(code: 0x06, operand: .max),  // keep
        ]
        let lasting = UnsafeMutablePointer<Instruction>.allocate(capacity: program.count)
        lasting.initialize(from: program, count: program.count)
        return Program(count: UInt16(program.count), instructions: lasting)
    }()

    /// Lets no new connection begin at a listener. A system that has no such filter loses what waits when it closes.
    static func refuseNewConnections(to listener: any Channel) async {
        guard let socket = listener as? any SocketOptionProvider else { return }
        try? await socket.unsafeSetSocketOption(level: .socket, name: attach, value: withoutSYN).get()
    }
}
