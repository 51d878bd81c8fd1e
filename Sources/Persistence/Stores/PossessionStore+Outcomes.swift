/// What the steps of a proof lead to: the words of sql/schema/47_possession.sql.
extension PossessionStore {
    /// What a step of an app or a call of a backend led to.
    public struct Reply<Outcome: Sendable>: Sendable {
        /// The statement's own word.
        public let outcome: Outcome
        let known: PossessionFacts?

        /// What is known of the transaction after it.
        /// - Throws: ``StoreError/malformedResult`` for an outcome that tells nothing of a transaction.
        public var facts: PossessionFacts {
            get throws(StoreError) {
                guard let known else { throw .malformedResult }
                return known
            }
        }
    }

    /// What came of an app's proof.
    public enum Entered: String, Sendable, CaseIterable, ColumnValue {
        case entered = "ok"
        /// There is no such transaction, or its backend may start none now.
        case unknown
        /// Another key opened it.
        case wrongKey = "wrong_key"
    }

    /// What came of opening a transaction.
    public enum Opened: String, Sendable, CaseIterable, ColumnValue {
        case opened = "ok"
        /// Another key opened it.
        case wrongKey = "wrong_key"
    }

    /// What came of a wish for a message.
    public enum Sent: Sendable {
        case sent
        /// Nothing is sent to a test number with a certain end.
        case settled
        /// A provider refuses: the transaction is over.
        case failed
        case refused(PossessionSendRefusal)

        enum Outcome: String, CaseIterable, ColumnValue {
            case sent, settled, failed, refused
            case limited = "rate_limited"
        }
    }

    /// What came of a code.
    public enum Checked: String, Sendable, CaseIterable, ColumnValue {
        case passed, wrong
        /// That was the last try.
        case failed
        /// No code is awaited.
        case step
    }

    /// What came of what a link gave.
    public enum Finished: String, Sendable, CaseIterable, ColumnValue {
        case passed
        /// It is wrong, used or old.
        case unknown
        case wrongKey = "wrong_key"
        /// There is no such transaction.
        case gone
    }

    /// What came of giving up.
    public enum Cancelled: String, Sendable, CaseIterable, ColumnValue {
        case cancelled
        /// It has ended before.
        case over
        /// It was never opened.
        case step
        case wrongKey = "wrong_key"
        /// There is no such transaction.
        case gone
    }

    /// What came of a backend's assertion.
    public enum Bound: String, Sendable, CaseIterable, ColumnValue {
        case bound, unknown
        /// It is not the moment for it.
        case step
    }

    enum Started: String, CaseIterable, ColumnValue {
        case started
        case limited = "rate_limited"
    }

    /// What an answer to the page of a link led to.
    public struct LinkAnswer: Sendable {
        /// What came of it.
        public let outcome: Outcome
        /// Where the browser goes on; `nil` for `gone`.
        public let target: String?
        /// The transaction as URLs name it.
        public let authID: UUIDValue?

        /// What came of an answer.
        public enum Outcome: String, Sendable, CaseIterable, ColumnValue {
            /// The number is proven: the app waits elsewhere.
            case passed
            /// The app on the phone must finish it.
            case linked
            /// The person denied, or gave a wrong number.
            case failed
            /// The number is missing; nothing has changed.
            case numberDue = "number_due"
            /// The link is unknown or dead.
            case gone
        }
    }
}
