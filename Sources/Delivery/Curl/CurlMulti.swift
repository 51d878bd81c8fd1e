import CCurl

/// A libcurl multi handle: transfers of one thread, and the connections that they leave open. Only ``wake()`` may be
/// called on another thread.
final class CurlMulti: @unchecked Sendable {
    private let raw: UnsafeMutableRawPointer

    /// - Parameter connections: how many are kept open. - Returns: `nil` when there is no memory or descriptor.
    init?(connections: Int) {
        guard let raw = curl_multi_init() else { return nil }
        self.raw = raw
        postern_curl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, connections)
    }

    deinit { curl_multi_cleanup(raw) }

    /// Lets ``wait(_:)`` return, or the next one.
    func wake() { curl_multi_wakeup(raw) }

    /// Waits until a transfer can go on, or for so long at most. - Returns: whether it could wait.
    func wait(_ time: Duration) -> Bool {
        curl_multi_poll(raw, nil, 0, Int32(clamping: time.milliseconds), nil) == CURLM_OK
    }

    func add(_ handle: borrowing CurlHandle) -> Bool { curl_multi_add_handle(raw, handle.raw) == CURLM_OK }

    func remove(_ handle: borrowing CurlHandle) { curl_multi_remove_handle(raw, handle.raw) }

    /// Does what can be done now. - Parameter ended: told of each transfer that ended; it has to remove it.
    func perform(_ ended: (_ handle: UnsafeMutableRawPointer, _ code: CURLcode) -> Void) {
        var running: Int32 = 0
        curl_multi_perform(raw, &running)
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else { continue }
            ended(handle, message.pointee.data.result)
        }
    }
}
