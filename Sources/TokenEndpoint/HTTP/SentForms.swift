import Crypto
import Foundation
package import Grants
import HTTPTypes
import Persistence

/// Does what a form asks for once, however often the form is sent: by a double click, through several nodes, or again
/// because the answer was lost. For a minute each repetition gets the answer of the first, and changes nothing.
///
/// The answer is stored sealed under the key file and under a key that only the form itself yields, so that neither a
/// copy of the database nor one with the key file holds a cookie or a code.
package struct SentForms: Sendable {
    private let store: SentFormStore
    private let keyring: Keyring
    private let countRepetition: @Sendable () -> Void

    /// How long a request waits for one that does the same, and how often it looks.
    private static let patience = Duration.seconds(10)
    private static let pause = Duration.milliseconds(40)

    /// - Parameter countRepetition: told of each request that was answered by the answer to another one.
    init(store: SentFormStore, keyring: Keyring, countRepetition: @escaping @Sendable () -> Void) {
        self.store = store
        self.keyring = keyring
        self.countRepetition = countRepetition
    }

    /// What a form led to.
    package struct Outcome: Sendable {
        /// Which requests it answers besides its own.
        package enum Reach: Sendable {
            /// Each repetition of the form within a minute, while ``session`` lives.
            case repetitions
            /// Requests that came while this one was under way: it was refused, and may be tried again.
            case concurrent
            /// None: nothing was done, or it can be done twice.
            case onlyThis
        }

        package var answer: Answer
        package var reach: Reach
        /// The browser session that the answer goes with.
        package var session: BrowserCookie?
        /// The hash of the code in the answer, as the database knows it.
        package var codeHash: [UInt8]?
        /// The answer when that code was redeemed.
        package var afterwards: Answer?

        package init(_ answer: Answer, _ reach: Reach) {
            self.answer = answer
            self.reach = reach
        }
    }

    /// Who sends a form, and what it says.
    package struct Form: Sendable {
        fileprivate let name: SentFormStore.Name
        fileprivate let key: SymmetricKey

        /// - Parameters:
        ///   - requester: what only the requester has, and the place that it sends forms to. One form is remembered
        ///     for each, so they must not be made up at will.
        ///   - fields: all else that makes two forms the same.
        package init(of requester: [[UInt8]], saying fields: [[UInt8]] = []) {
            let whole = SymmetricKey(data: Self.hash("form", requester + [[]] + fields))
            name = .init(
                requester: Self.hash("requester", requester),
                form: HMAC<SHA256>.authenticationCode(for: Array("name".utf8), using: whole)
                    .withUnsafeBytes { Array($0) })
            key = SymmetricKey(
                data: HMAC<SHA256>.authenticationCode(for: Array("answer".utf8), using: whole))
        }

        /// Each part is preceded by its length, so that no two lists are alike.
        private static func hash(_ label: String, _ parts: [[UInt8]]) -> [UInt8] {
            var hash = SHA256()
            for part in [Array(label.utf8)] + parts {
                withUnsafeBytes(of: UInt64(part.count).bigEndian) { hash.update(bufferPointer: $0) }
                hash.update(data: part)
            }
            return hash.finalize().withUnsafeBytes { Array($0) }
        }
    }

    /// The answer to a form: that of `work`, or of a request that did the same.
    /// - Throws: what `work` throws, which is then forgotten; `TokenError` when the same form is under way for too
    ///   long; or what the database threw.
    package func answer(
        _ form: Form, _ exchange: Exchange, by work: () async throws -> Outcome
    ) async throws -> Answer {
        let mark = UUIDValue.random()
        let realm = exchange.realm.id
        var hasWaited = false
        while true {
            switch try await store.begin(
                form.name, realm: realm, by: mark, host: exchange.host, hasWaited: hasWaited)
            {
            case .begun:
                do {
                    let outcome = try await work()
                    // What was done stays done, remembered or not.
                    try? await store.end(form.name, realm: realm, by: mark, with: ending(outcome, form, realm))
                    return outcome.answer
                } catch {
                    try? await store.end(form.name, realm: realm, by: mark, with: nil)
                    throw error
                }
            case .underWay:
                guard exchange.age < Self.patience else { throw TokenError.unavailable("the same form is under way") }
                hasWaited = true
                try? await Task.sleep(for: Self.pause)
            case .answered(let sealed, let isSpent):
                // A line of the key file may have gone meanwhile.
                guard let kept = open(sealed, form, realm) else { return try await work().answer }
                countRepetition()
                return (isSpent ? kept.afterwards ?? kept.answer : kept.answer).answer
            }
        }
    }

    /// - Returns: `nil` for an answer to its own request alone, and for one that is too long to be kept.
    private func ending(_ outcome: Outcome, _ form: Form, _ realm: UUIDValue) -> SentFormStore.Ending? {
        guard outcome.reach != .onlyThis,
            let text = try? JSONEncoder().encode(
                Kept(answer: KeptAnswer(outcome.answer), afterwards: outcome.afterwards.map(KeptAnswer.init))),
            let inner = try? AES.GCM.seal(text, using: form.key).combined,
            let sealed = try? keyring.seal(Array(inner), for: .sentForm, realm: realm, aad: form.name.form),
            sealed.count <= SentFormStore.maximumSealed
        else { return nil }
        return SentFormStore.Ending(
            sealed: sealed, isKept: outcome.reach == .repetitions, cookieHash: outcome.session?.hash,
            codeHash: outcome.codeHash)
    }

    private func open(_ sealed: [UInt8], _ form: Form, _ realm: UUIDValue) -> Kept? {
        guard let inner = try? keyring.open(sealed, for: .sentForm, realm: realm, aad: form.name.form),
            let box = try? AES.GCM.SealedBox(combined: inner), let text = try? AES.GCM.open(box, using: form.key)
        else { return nil }
        return try? JSONDecoder().decode(Kept.self, from: text)
    }
}

/// What is stored of an outcome.
private struct Kept: Codable {
    let answer: KeptAnswer
    let afterwards: KeptAnswer?
}

/// An answer, as it is stored.
private struct KeptAnswer: Codable {
    let status: Int
    /// Names and values in turn.
    let headers: [[String]]
    let body: Data

    init(_ answer: Answer) {
        status = answer.status.code
        headers = answer.headers.map { [$0.name.rawName, $0.value] }
        body = Data(answer.body)
    }

    var answer: Answer {
        var answer = Answer(HTTPResponse.Status(code: status))
        for header in headers where header.count == 2 {
            guard let name = HTTPField.Name(header[0]) else { continue }
            answer.headers.append(HTTPField(name: name, value: header[1]))
        }
        answer.body = Array(body)
        return answer
    }
}
