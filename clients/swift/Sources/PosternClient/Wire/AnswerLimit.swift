/// How much of an answer is taken in, and for how long. ``URLSessionTransport`` gives up what is more, before it is in
/// memory.
package struct AnswerLimit: Sendable {
    package let bytes: Int
    package let time: Duration?

    /// Of an API of the app's.
    @TaskLocal package static var current = AnswerLimit(bytes: 64 << 20, time: nil)

    /// Of the server itself. A minute is more than it holds any call.
    package static let ofPostern = AnswerLimit(bytes: Answer.largestBody, time: .seconds(60))

    package init(bytes: Int, time: Duration?) { (self.bytes, self.time) = (bytes, time) }
}
