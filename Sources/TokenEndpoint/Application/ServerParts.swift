package import Grants
package import Persistence
package import ServiceLifecycle

/// What the sender of messages needs of the application.
package struct DeliveryParts: Sendable {
    /// The cluster whose messages are sent.
    package let database: Database
    /// Signs calls to operators' endpoints.
    package let hookTokens: HookTokens
    /// Rings when a message was queued.
    package let wakes: WakeSignal
    /// Counts how an attempt at a message ended, by channel.
    package let count: @Sendable (_ channel: String, _ outcome: String) -> Void
}

/// What the application takes from modules above it.
package struct ServerParts {
    /// Makes the pages.
    package let pages: (PageParts) throws -> any ComposedPages
    /// Makes the sender of the messages of one cluster; `nil`: what is queued stays queued.
    package let delivery: ((DeliveryParts) throws -> any Service)?
    /// Posts a form to a client.
    package let postLogoutToken: LogoutTokens.Post
    /// Posts an event to a webhook.
    package let postEvent: EventSender.Post
    /// Where events are signed, posted and recorded; `nil`: where other tasks run.
    package let eventExecutor: (any TaskExecutor)?
    /// Asks an operator about a phone number.
    package let postSignal: PossessionSignals.Post
    /// The pages of `postern dev`.
    package let routes: [Route]
    /// What is at hosts that no realm has.
    package let elsewhere: OtherHosts

    package init(
        pages: @escaping (PageParts) throws -> any ComposedPages,
        delivery: ((DeliveryParts) throws -> any Service)? = nil, postLogoutToken: @escaping LogoutTokens.Post,
        postEvent: @escaping EventSender.Post, eventExecutor: (any TaskExecutor)? = nil,
        postSignal: @escaping PossessionSignals.Post = { _, _, _, _ in nil },
        routes: [Route] = [], elsewhere: OtherHosts = OtherHosts()
    ) {
        self.pages = pages
        self.delivery = delivery
        self.postLogoutToken = postLogoutToken
        self.postEvent = postEvent
        self.eventExecutor = eventExecutor
        self.postSignal = postSignal
        self.routes = routes
        self.elsewhere = elsewhere
    }
}
