import CLibPQ

/// Receives the notices that the server sends without a query. Nothing is printed or kept, since the text may
/// hold data; only whether the session is being ended (class 57P) is remembered: an idle session learns of its
/// termination in no other way.
///
/// Lives as long as the session that calls it, and is called on that session's thread only.
final class NoticeWatch {
    private(set) var isTerminating = false

    func install(on session: OpaquePointer) {
        isTerminating = false
        PQsetNoticeReceiver(
            session,
            { context, result in
                guard let context, let result, let sqlstate = PQresultErrorField(result, POSTERN_DIAG_SQLSTATE) else {
                    return
                }
                // 57P01 admin_shutdown, 57P02 crash_shutdown, 57P03 cannot_connect_now, 57P04 database_dropped, 57P05
                // idle_session_timeout
                if String(cString: sqlstate).hasPrefix("57P") {
                    Unmanaged<NoticeWatch>.fromOpaque(context).takeUnretainedValue().isTerminating = true
                }
            }, Unmanaged.passUnretained(self).toOpaque())
        PQsetNoticeProcessor(session, { _, _ in }, nil)
    }
}
