import Glibc

/// Bytes from the system's generator, by one getentropy(3): Swift's own `SystemRandomNumberGenerator` makes a call for
/// every 8.
public func randomBytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        // All or nothing, and at most 256 bytes; what it did not fill, Swift's generator does.
        if count <= 256, getentropy(buffer.baseAddress, count) == 0 { filled = count }
        var generator = SystemRandomNumberGenerator()
        while filled < count {
            buffer.initializeElement(at: filled, to: generator.next())
            filled += 1
        }
    }
}
