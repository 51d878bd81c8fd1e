import CCurl

/// A body on its way out and an answer on its way in, through libcurl's callbacks. Confined to the thread of its
/// loop.
final class HTTPTransfer {
    private let body: [UInt8]
    private let longestAnswer: Int
    private var offset = 0
    /// What was read of the answer's body.
    private(set) var answer: [UInt8] = []
    /// True once libcurl was given all of the body, so that the endpoint may have it.
    private(set) var hasFinished = false

    /// - Parameter longestAnswer: bytes; more are not read.
    init(_ body: [UInt8], longestAnswer: Int = HTTPCall.longestAnswer) {
        self.body = body
        self.longestAnswer = longestAnswer
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, body.count - offset)
        buffer.copyBytes(from: body[offset..<(offset + count)])
        offset += count
        hasFinished = offset == body.count
        return count
    }

    /// The call goes out once more, on another connection.
    private func rewind(to offset: Int) -> Bool {
        guard body.indices.contains(offset) || offset == body.count else { return false }
        self.offset = offset
        hasFinished = false
        return true
    }

    /// - Returns: whether there may be more.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> Bool {
        answer += bytes.prefix(longestAnswer - answer.count)
        return answer.count < longestAnswer
    }

    /// `CURLOPT_READFUNCTION`; the user data is an `HTTPTransfer`.
    static let readCallback: curl_read_callback = { buffer, size, count, userData in
        guard let buffer, let userData else { return Int(CURL_READFUNC_ABORT) }
        let transfer = Unmanaged<HTTPTransfer>.fromOpaque(userData).takeUnretainedValue()
        return transfer.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
    }

    /// `CURLOPT_SEEKFUNCTION`; the user data is an `HTTPTransfer`.
    static let seekCallback: curl_seek_callback = { userData, offset, origin in
        guard let userData, origin == SEEK_SET else { return CURL_SEEKFUNC_FAIL }
        let transfer = Unmanaged<HTTPTransfer>.fromOpaque(userData).takeUnretainedValue()
        return transfer.rewind(to: Int(offset)) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    /// `CURLOPT_WRITEFUNCTION`; the user data is an `HTTPTransfer`. Fewer bytes than given end the transfer.
    static let writeCallback: curl_write_callback = { bytes, size, count, userData in
        guard let bytes, let userData else { return 0 }
        let transfer = Unmanaged<HTTPTransfer>.fromOpaque(userData).takeUnretainedValue()
        return transfer.keep(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
    }
}
