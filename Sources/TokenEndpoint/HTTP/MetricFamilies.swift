import Telemetry

extension Metrics {
    /// Every metric of `/metrics`, in the order of the text. A label's value is a route, a grant, an outcome or a name
    /// that an administrator gave: nothing a caller chooses.
    static let families: [MetricFamily] = [
        .counter("postern_http_requests_total", "Answers, by route and status."),
        .histogram("postern_http_request_duration_seconds", "From the arrived request to the answer, by route."),
        .counter("postern_grants_total", "Token requests, by grant and outcome."),
        .histogram("postern_grant_duration_seconds", "Duration of token requests, by grant and outcome."),
        .counter("postern_refreshes_total", "Refresh tokens that were used, by what came of it."),
        .counter("postern_messages_total", "Attempts to send a message, by channel and outcome."),
        .counter("postern_webhook_events_total", "Attempts to deliver an event, by outcome."),
        .counter("postern_rate_limit_exceeded_total", "Requests that found a limit used up."),
        .counter("postern_wrong_codes_total", "Codes that were compared and wrong."),
        .counter("postern_code_lockouts_total", "Accounts whose codes closed."),
        .counter("postern_code_brake_refusals_total", "Tries refused while a realm's limit of wrong codes is used up."),
        .counter(
            "postern_repeated_sign_ins_total", "Requests that were answered as the same request was before them."),
        .gauge("postern_key_line_in_use", "What each line of the key file protects."),
        .gauge("postern_pool_connections", "Database connections, by state."),
        .gauge(
            "postern_clock_difference_seconds",
            "This machine's clock less the database's, beyond what the round trip explains."),
        .gauge("postern_pool_waiting", "Requests that wait for a database connection."),
        .histogram(
            "postern_batch_size", "Callers that shared a statement, by what was batched.",
            bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        .histogram("postern_batch_wait_seconds", "How long callers that joined a batch waited until it began."),
        .counter("postern_sweep_rows_total", "Expired rows that this process deleted."),
        .histogram(
            "postern_sweep_duration_seconds", "Duration of the removal of expired rows.",
            bounds: MetricFamily.seconds + [10, 60]),
        .gauge(
            "postern_sweep_last_success_timestamp_seconds",
            "When the removal of expired rows last worked, or the process started."),
        .gauge("postern_held_requests", "Requests that wait for something to happen."),
        .gauge("postern_configuration_realms", "Realms that this process knows."),
        .gauge("postern_configuration_version", "Sum of the versions of all realms' configurations."),
        .gauge("postern_queue_entries", "Entries of a queue that wait."),
        .gauge("postern_queue_oldest_seconds", "Age of the oldest entry of a queue that is due."),
        .gauge("postern_queue_realm_entries", "Entries that wait, of the realms that wait longest."),
        .gauge("postern_queue_realm_oldest_seconds", "Age of the oldest entry, of the realms that wait longest."),
        .gauge("postern_webhook_lag_seconds", "Age of the oldest event that a webhook has not got."),
        .gauge("postern_webhook_pending_events", "Events that a webhook has not got."),
        .gauge("postern_webhook_refused_events", "Events that a webhook refused for good."),
        .counter("postern_trace_spans_total", "Spans of sampled traces, by what came of them."),
        .gauge("postern_connections", "Open client connections."),
        .counter("postern_connections_refused_total", "Client connections closed at once, by the limit."),
        .counter("postern_connections_dropped_total", "Waiting client connections closed to make room."),
        .counter("postern_accept_pauses_total", "Pauses of accepting for want of descriptors or memory."),
        .counter("postern_untrusted_forwarded_total", "Requests with X-Forwarded-For from a peer that is no proxy."),
        .counter("postern_unknown_host_total", "Requests for a host that no realm has."),
        .counter("postern_missing_api_key_total", "Requests of Cotter's wire without API_KEY_ID."),
    ]
}
