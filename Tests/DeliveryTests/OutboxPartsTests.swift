import CCurl
import Foundation
import Persistence
import Testing

@testable import Delivery

@Suite("Pace, retries, verdicts and the dev outbox")
struct OutboxPartsTests {
    private let start = ContinuousClock.now

    @Test func `a well server gets as many mails as are allowed`() {
        var pace = SendingPace(concurrency: 4)
        #expect(pace.allowance(at: start) == 4)
        pace.take(3)
        #expect(pace.allowance(at: start) == 1)
        pace.finish(.accepted, at: start)
        pace.finish(.permanent(.reply(550)), at: start)
        #expect(pace.allowance(at: start) == 3)
        pace.finish(.inDoubt, at: start)
        #expect(pace.isIdle)
    }

    @Test func `a server that is not there is left alone, then tried with one mail`() {
        var pace = SendingPace(concurrency: 4)
        pace.take(4)
        for _ in 0..<4 { pace.finish(.temporary(.connection), at: start) }
        #expect(pace.allowance(at: start) == 0)
        #expect(pace.allowance(at: start + .milliseconds(999)) == 0)
        #expect(pace.allowance(at: start + .seconds(1)) == 1)
        var now = start + .seconds(1)
        for expected in [2, 4, 8, 16, 30, 30] {
            pace.take(1)
            #expect(pace.allowance(at: now) == 0)
            pace.finish(.temporary(.tls), at: now)
            #expect(pace.allowance(at: now + .seconds(expected) - .milliseconds(1)) == 0)
            now += .seconds(expected)
            #expect(pace.allowance(at: now) == 1)
        }
        pace.take(1)
        pace.finish(.temporary(.payload), at: now)
        #expect(pace.allowance(at: now) == 1)
        pace.take(1)
        pace.finish(.temporary(.reply(451)), at: now)
        #expect(pace.allowance(at: now) == 4)
    }

    @Test func `retries back off from five seconds to a quarter of an hour`() {
        let pauses = (1...10).map { RetrySchedule.pause(afterAttempt: $0, .reply(451)) / .seconds(1) }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900])
        #expect(RetrySchedule.pause(afterAttempt: .max, .reply(451)) == .seconds(900))
        #expect(RetrySchedule.pause(afterAttempt: .min, .reply(451)) == .seconds(5))
        #expect(RetrySchedule.pause(afterAttempt: 9, .connection) == .seconds(30))
    }

    @Test(
        "what libcurl, the reply and the progress mean together",
        arguments: [
            (CURLE_OK, 250, true, true, .accepted), (CURLE_SEND_ERROR, 550, false, false, .permanent(.reply(550))),
            (CURLE_SEND_ERROR, 450, false, false, .temporary(.reply(450))),
            (CURLE_SEND_ERROR, 530, false, false, .temporary(.authentication)),
            (CURLE_LOGIN_DENIED, 535, false, false, .temporary(.authentication)),
            (CURLE_WEIRD_SERVER_REPLY, 554, false, false, .temporary(.reply(554))),
            (CURLE_REMOTE_ACCESS_DENIED, 502, false, false, .temporary(.reply(502))),
            (CURLE_WEIRD_SERVER_REPLY, 554, true, true, .permanent(.reply(554))),
            (CURLE_WEIRD_SERVER_REPLY, 421, true, true, .temporary(.reply(421))),
            (CURLE_RECV_ERROR, 354, true, true, .inDoubt),
            (CURLE_RECV_ERROR, 354, true, false, .temporary(.connection)),
            (CURLE_OPERATION_TIMEDOUT, 354, true, true, .inDoubt),
            (CURLE_OPERATION_TIMEDOUT, 354, true, false, .temporary(.timeout)),
            (CURLE_ABORTED_BY_CALLBACK, 354, true, true, .inDoubt),
            (CURLE_ABORTED_BY_CALLBACK, 220, false, false, .temporary(.cancelled)),
            (CURLE_USE_SSL_FAILED, 454, false, false, .temporary(.tls)),
            (CURLE_COULDNT_RESOLVE_HOST, 0, false, false, .temporary(.connection)),
            (CURLE_OUT_OF_MEMORY, 0, false, false, .temporary(.connection)),
        ] as [(CURLcode, Int, Bool, Bool, DeliveryOutcome)])
    func verdicts(_ code: CURLcode, _ reply: Int, _ started: Bool, _ finished: Bool, _ expected: DeliveryOutcome) {
        #expect(SMTPVerdict.outcome(code, reply: reply, started: started, finished: finished) == expected)
    }

    @Test func `the dev outbox keeps the newest mails, newest first`() async throws {
        let outbox = DevOutbox(capacity: 3)
        for number in 1...5 {
            let mail = try sampleMail(id: "m\(number)", subject: "Mail \(number)")
            #expect(await outbox.send(OutgoingMail(message: mail.message, code: "12345\(number)")) == .accepted)
        }
        #expect(outbox.mails.map(\.subject) == ["Mail 5", "Mail 4", "Mail 3"])
        let json = try JSONEncoder().encode(outbox.mails)
        let decoded = try #require(try JSONSerialization.jsonObject(with: json) as? [[String: String]])
        #expect(Set(decoded[0].keys) == ["to", "subject", "text", "code", "at"])
        #expect(decoded[0]["code"] == "123455" && decoded[0]["to"] == "ada@example.com")
        #expect(decoded[0]["at"]?.hasSuffix("Z") == true)
    }

    @Test func `a payload opens for its realm and row only`() throws {
        let keyring = try Keyring(parsing: Keyring.generateLine())
        let (realm, mail) = (UUIDValue.random(), UUIDValue.random())
        let payload = MailPayload(
            realmName: "Acme", originHost: "a.example", content: .otp(code: "123456", minutes: 10))
        let sealed = try payload.sealed(under: keyring, realm: realm, mail: mail)
        #expect(try MailPayload(opening: sealed, with: keyring, realm: realm, mail: mail) == payload)
        #expect(throws: KeyringError.cannotOpen) {
            try MailPayload(opening: sealed, with: keyring, realm: mail, mail: realm)
        }
        #expect(!String(decoding: sealed, as: UTF8.self).contains("123456"))
    }
}
