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
        pace.finish(.temporary(.sender(550)), at: now)
        #expect(pace.allowance(at: now) == 1, "one realm's sender tells nothing of the server")
        pace.take(1)
        pace.finish(.temporary(.reply(451)), at: now)
        #expect(pace.allowance(at: now) == 4)
    }

    @Test func `a mail holds its place from the moment it is taken until a second after it is out of hand`() {
        var rate = SendingRate(mailsPerSecond: 3)
        #expect(rate.room(at: start) == 3 && rate.nextRoom(at: start) == nil)
        rate.take(2)
        #expect(rate.room(at: start + .seconds(30)) == 1)
        rate.finish(wasSent: true, at: start + .seconds(30))
        rate.take(1)
        #expect(rate.room(at: start + .milliseconds(30_999)) == 0)
        #expect(rate.nextRoom(at: start + .milliseconds(30_999)) == start + .seconds(31))
        #expect(rate.room(at: start + .seconds(31)) == 1)
        rate.take(1)
        #expect(rate.room(at: start + .seconds(31)) == 0)
        #expect(rate.nextRoom(at: start + .seconds(31)) == nil, "a mail in hand comes first")
        rate.finish(wasSent: false, at: start + .seconds(31))
        #expect(rate.room(at: start + .seconds(31)) == 1, "what was not sent costs nothing")
    }

    @Test(
        "however long each mail is under way, no second at the server sees more of them than the rate",
        arguments: [1, 3, 17, 50])
    func rateAtTheServer(_ mailsPerSecond: Int) {
        var generator = SystemRandomNumberGenerator()
        var pace = SendingPace(concurrency: 8, mailsPerSecond: mailsPerSecond)
        var now = start
        var arrivals: [ContinuousClock.Instant] = []
        var inHand: [ContinuousClock.Instant] = []  // when each will be out of hand
        for _ in 0..<4000 {
            for mail in inHand where mail <= now { pace.finish(.accepted, at: now) }
            inHand.removeAll { $0 <= now }
            let count = pace.allowance(at: now)
            pace.take(count)
            for _ in 0..<count {
                let travel = Int.random(in: 0...400, using: &generator)
                arrivals.append(now + .milliseconds(Int.random(in: 0...travel, using: &generator)))
                inHand.append(now + .milliseconds(travel))
            }
            now += .milliseconds(Int.random(in: 1...20, using: &generator))
        }
        arrivals.sort()
        let busiest = arrivals.indices.map { index in
            arrivals[index...].prefix { $0 < arrivals[index] + .seconds(1) }.count
        }
        #expect(arrivals.count > mailsPerSecond * 10)
        #expect(busiest.max() ?? 0 <= mailsPerSecond)
    }

    @Test func `the rate bounds the pace, and mails that were not sent are not counted`() {
        var pace = SendingPace(concurrency: 4, mailsPerSecond: 2)
        #expect(pace.allowance(at: start) == 2)
        pace.take(2)
        pace.finish(.permanent(.expired), at: start)
        pace.finish(.permanent(.recipient), at: start)
        #expect(pace.allowance(at: start) == 2)
        pace.take(2)
        pace.finish(.permanent(.noSuchMailbox(550)), at: start)
        pace.finish(.inDoubt, at: start)
        #expect(pace.allowance(at: start) == 0 && pace.nextRoom(at: start) == start + .seconds(1))
        #expect(pace.allowance(at: start + .seconds(1)) == 2)
    }

    @Test(
        "which answers to a recipient say that the mailbox is not there",
        arguments: [
            ("550 5.1.1 no such user\r\n", true), ("550-5.1.1 no such user\r\n", true), ("550 5.1.1\r\n", true),
            ("553 5.1.3 syntax", true), ("551 5.1.6 moved", true), ("556 5.1.10 null MX", true),
            ("550 5.2.1 disabled", true), ("550 5.7.1 blocked", false), ("552 5.2.2 full", false),
            ("554 5.7.1 relay access denied", false), ("550 relay not permitted", false), ("550 no 5.1.1", false),
            ("450 4.1.1 later", false), ("450 5.1.1 later", false), ("550 5.1.11 what", false),
            ("550 5.1.8 sender", false), ("550", false), ("", false), ("\u{FF}\u{FE} 5.1.1", false),
        ])
    func denials(_ line: String, _ denies: Bool) {
        #expect(SMTPVerdict.deniesMailbox(reply: Array(line.utf8)) == denies)
    }

    @Test func `retries back off from five seconds to a quarter of an hour`() {
        let pauses = (1...10).map { RetrySchedule.pause(afterAttempt: $0, .reply(451)) / .seconds(1) }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900])
        #expect(RetrySchedule.pause(afterAttempt: .max, .reply(451)) == .seconds(900))
        #expect(RetrySchedule.pause(afterAttempt: .min, .reply(451)) == .seconds(5))
        #expect(RetrySchedule.pause(afterAttempt: 9, .connection) == .seconds(30))
        #expect(RetrySchedule.pause(afterAttempt: 9, .sender(550)) == .seconds(900))
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

    @Test func `a mailbox that is not there is no policy, no sender and no passing trouble`() {
        func outcome(_ reply: Int, refusesSender: Bool = false) -> DeliveryOutcome {
            SMTPVerdict.outcome(
                CURLE_SEND_ERROR, reply: reply, refusesSender: refusesSender, deniesMailbox: true, started: false,
                finished: false)
        }
        #expect(outcome(550) == .permanent(.noSuchMailbox(550)))
        #expect(outcome(450) == .temporary(.reply(450)))
        #expect(outcome(550, refusesSender: true) == .temporary(.sender(550)))
        #expect("\(DeliveryFailure.sender(550))" == "5xx")
        #expect("\(DeliveryFailure.noSuchMailbox(550))" == "5xx")
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
        #expect(Set(decoded[0].keys) == ["channel", "to", "subject", "text", "code", "at"])
        #expect(decoded[0]["code"] == "123455" && decoded[0]["to"] == "ada@example.com")
        #expect(decoded[0]["at"]?.hasSuffix("Z") == true)
    }

    @Test func `a payload opens for its realm and row only`() throws {
        let keyring = try Keyring(parsing: Keyring.generateLine())
        let (realm, mail) = (UUIDValue.random(), UUIDValue.random())
        let payload = MessagePayload(
            originHost: "a.example", content: .otp(code: "123456", minutes: 10))
        let sealed = try payload.sealed(under: keyring, realm: realm, mail: mail)
        #expect(try MessagePayload(opening: sealed, with: keyring, realm: realm, mail: mail) == payload)
        #expect(throws: KeyringError.cannotOpen) {
            try MessagePayload(opening: sealed, with: keyring, realm: mail, mail: realm)
        }
        #expect(!String(decoding: sealed, as: UTF8.self).contains("123456"))
    }
}
