import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends HTTP requests. Wrap it for certificate pinning or proxies.
public protocol Transport: Sendable {
    /// Sends one request once and follows no redirect. Whatever it throws counts as "no answer".
    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse)
}
