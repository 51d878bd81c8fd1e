import Foundation
@testable import Persistence
import Testing
import Texts

@testable import Delivery

@Suite("Texts of messages to phones")
struct MessageWriterTests {
    private let writer: MessageWriter

    init() throws {
        writer = try MessageWriter()
    }

    private func words(
        _ channel: Channel = .sms, locale: String?, realm: String = "Acme", client: String? = nil,
        template: String = "otp", content: MessagePayload.Content? = .otp(code: "123456", minutes: 10),
        hash: String? = nil, host: String = "auth.example.com", texts: [String: String] = [:]
    ) throws -> MessageWords {
        let message = LeasedMessage.sample(
            channel: channel, template: template, locale: locale, realmName: realm, askedBy: client, pageHost: host,
            smsHash: hash, texts: texts)
        return try writer.words(
            of: message, content.map { MessagePayload(originHost: host, content: $0) })
    }

    private static let names = [
        "Acme", "A very long name of a company that sells almost everything that people may ever want to buy & more",
        "Łódzka Spółdzielnia Mieszkaniowa imienia Świętego Wojciecha w Łodzi", "株式会社アクメ",
        "{code} {name}", "☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃",
    ]

    @Test(
        "a code is one segment, in scripts beyond GSM-7 two, and its last line binds it to the host",
        arguments: Language.allCases)
    func codes(_ language: Language) throws {
        let wide: Set<Language> = [.polish, .turkish, .japanese, .arabic]
        for name in Self.names {
            for (client, hash) in [(nil, nil), (String(name.prefix(90)) + " for iOS", "FA+9qCX9VSu")]
                as [(String?, String?)]
            {
                let host = "auth.some-long-name-of-a-company.example.com"
                let text = try #require(
                    try words(
                        locale: language.tag, realm: name, client: client,
                        content: .otp(code: "12345678", minutes: 10), hash: hash, host: host
                    ).text)
                #expect(SMSLength.segments(text) <= (wide.contains(language) ? 2 : 1), "\(text)")
                let last = try #require(text.split(separator: "\n").last)
                #expect(last == "@\(host) #12345678\(hash.map { " \($0)" } ?? "")")
                let match = try #require(try /^@(\S+) #(\S+)( .*)?$/.wholeMatch(in: last), "WICG grammar")
                #expect(match.1 == host && match.2 == "12345678")
                #expect(!text.contains("http") && text.contains("12345678"))
            }
        }
    }

    @Test func `a message names the realm and the client that asked, in the language asked for`() throws {
        #expect(
            try words(locale: "en", client: "Acme for iOS").text
                == "123456 is your code for Acme (Acme for iOS). Never share it.\n@auth.example.com #123456")
        #expect(try words(locale: "de-AT").text?.hasPrefix("123456 ist Ihr Code für Acme.") == true)
        #expect(try words(locale: "xx").text?.contains("is your code") == true)
        #expect(
            try words(locale: nil, texts: ["sms-code": "{name}: {code}"]).text
                == "Acme: 123456\n@auth.example.com #123456")
        #expect(try words(.whatsapp, locale: "en").text == "123456 is your code for Acme. Never share it.")
    }

    @Test(arguments: Language.allCases)
    func `a voice says the code twice, figure by figure, and nothing that is markup`(_ language: Language) throws {
        let text = try #require(try words(.voice, locale: language.tag, realm: "A<b>&\"'").text)
        #expect(text.split(separator: "1 2 3 4 5 6", omittingEmptySubsequences: false).count == 3)
        #expect(!text.contains { "<>&\"'".contains($0) } || language == .french)
    }

    @Test(arguments: Language.allCases, MailNotice.Template.allCases)
    func `every notice has a text that fits`(_ language: Language, _ template: MailNotice.Template) throws {
        let text = try #require(try words(locale: language.tag, template: template.rawValue, content: nil).text)
        #expect(text.contains("Acme") && !text.contains("{") && SMSLength.segments(text) <= 2, "\(text)")
    }

    @Test func `a link stands on a line of its own, and a push says nothing`() throws {
        let link = "https://auth.example.com/magic-login?userId=5c0f6a2e&token=abc"
        let words = try words(locale: "en", template: "magic-link", content: .magicLink(link: link, minutes: 15))
        #expect(words.text?.hasSuffix(":\n\(link)") == true && words.link == link && words.code == nil)
        let (user, token) = (String(repeating: "u", count: 36), String(repeating: "t", count: 43))
        let long = "https://auth.example.com/magic-login?userId=\(user)&token=\(token)"
        let short = try self.words(locale: "en", template: "magic-link", content: .magicLink(link: long, minutes: 15))
        #expect(short.text?.hasPrefix("Acme") == true && short.text?.hasSuffix(":\n\(long)") == true)
        #expect(SMSLength.segments(short.text ?? "") == 1)
        #expect(try self.words(.push, locale: "en", template: "approval", content: nil) == MessageWords())
        #expect(throws: MailRenderer.Failure.template) {
            try self.words(locale: "en", template: "from-the-future", content: nil)
        }
        #expect(throws: MailRenderer.Failure.code) {
            try self.words(locale: "en", content: .otp(code: "12 456", minutes: 1))
        }
    }

    @Test func `segments are counted as networks do`() {
        #expect(SMSLength.segments(String(repeating: "a", count: 160)) == 1)
        #expect(SMSLength.segments(String(repeating: "a", count: 161)) == 2)
        #expect(SMSLength.segments(String(repeating: "€", count: 80)) == 1)
        #expect(SMSLength.segments(String(repeating: "€", count: 81)) == 2)
        #expect(SMSLength.segments(String(repeating: "ł", count: 70)) == 1)
        #expect(SMSLength.segments(String(repeating: "ł", count: 71)) == 2)
        #expect(SMSLength.segments(String(repeating: "😀", count: 36)) == 2)
        #expect(SMSLength.folded("Łódź ç é 株") == "Lodz c é ")
    }
}

@Suite("Templates of vendors' APIs")
struct HTTPTemplateTests {
    private let message = LeasedMessage.sample(channel: .sms, template: "otp", locale: "de")
    private let words = MessageWords(text: "1 & 2 = {code}+\"\\\n😀", code: "123456", link: nil, domain: "a.example")

    private func body(_ fields: String, _ body: Provider.Body) throws -> (type: String, text: String) {
        let fields = try JSONDecoder().decode(TemplateValue.self, from: Data(fields.utf8))
        let values = HTTPTemplate.values(of: message, words, sender: "+15005550006")
        let made = try #require(HTTPTemplate.body(fields, as: body, values))
        return (made.type, String(decoding: made.bytes, as: UTF8.self))
    }

    @Test func `a form is encoded once, and a value is not looked at again`() throws {
        let made = try body(
            #"{"To":"{to}","From":"{from}","Body":"{text}","x y":"<Say>{spaced_code}</Say> {to_digits} {link}{unknown} {"}"#,
            .form)
        #expect(made.type == "application/x-www-form-urlencoded")
        #expect(
            made.text
                == "Body=1+%26+2+%3D+%7Bcode%7D%2B%22%5C%0A%F0%9F%98%80&From=%2B15005550006&To=%2B4915112345678"
                + "&x+y=%3CSay%3E1+2+3+4+5+6%3C%2FSay%3E+4915112345678+%7Bunknown%7D+%7B")
    }

    @Test func `JSON keeps its shape`() throws {
        let made = try body(
            #"{"to":"{to_digits}","n":1,"b":true,"z":null,"d":1.5,"{code}":"{id}","list":[{"text":"{text}"},"{locale}"]}"#,
            .json)
        #expect(made.type == "application/json")
        let value = try #require(
            try JSONSerialization.jsonObject(with: Data(made.text.utf8)) as? [String: Any])
        #expect(value["to"] as? String == "4915112345678" && value["n"] as? Int == 1 && value["b"] as? Bool == true)
        #expect(value["{code}"] as? String == message.id.description, "names of members are not filled")
        let list = try #require(value["list"] as? [Any])
        #expect((list[0] as? [String: String])?["text"] == words.text && list[1] as? String == "de")
    }

    @Test func `a reference is the short word that the vendor gives`() {
        func reference(_ text: String) -> String? { ProviderCaller.reference(in: Array(text.utf8)) }
        #expect(reference(#"{"sid":"SM1","id":"x"}"#) == "SM1")
        #expect(reference(#"{"id":"x-1"}"#) == "x-1")
        for text in ["", "SM1", #"{"id":7}"#, #"{"id":""}"#, #"{"id":"a b"}"#, #"{"id":"a\nb"}"#, #"{"id":"é"}"#] {
            #expect(reference(text) == nil)
        }
    }
}

@Suite("Choice of the provider")
struct ProviderChoiceTests {
    private let three = ["a", "b", "c"].map { Provider(name: $0, kind: .webhook, url: "https://x.example/") }

    @Test func `the first is asked, until it refuses or has failed twice, then the next, in a circle`() {
        func next(_ provider: String?, _ failures: Int, _ refused: [String] = []) -> String? {
            ProviderChoice(provider: provider, failures: failures, refusedBy: refused).next(of: three)?.name
        }
        #expect(next(nil, 0) == "a")
        #expect(next("a", 0) == "a" && next("a", 1) == "a" && next("a", 2) == "b")
        #expect(next("a", 1, ["a"]) == "b" && next("c", 2) == "a" && next("c", 2, ["a"]) == "b")
        #expect(next("c", 2, ["a", "b"]) == "c" && next("c", 1, ["a", "b", "c"]) == nil)
        #expect(next("gone", 2) == "a" && next("gone", 0, ["a"]) == "b")
        #expect(ProviderChoice().next(of: []) == nil)
    }

    @Test func `failures are counted per provider`() {
        let choice = ProviderChoice().after(failureOf: "a", refuses: false, counts: true)
        #expect(choice.failures == 1)
        #expect(choice.after(failureOf: "a", refuses: false, counts: true).failures == 2)
        #expect(choice.after(failureOf: "a", refuses: false, counts: false).failures == 1)
        let other = choice.after(failureOf: "b", refuses: true, counts: true)
        #expect(other.failures == 1 && other.refusedBy == ["b"])
    }
}

@Suite("Lanes")
struct LaneTests {
    private let now = ContinuousClock.now

    @Test func `a realm whose provider fails has one message in hand, and the others go on`() {
        var lane = Lane(.sms, concurrency: 8)
        let message = LeasedMessage.sample(channel: .sms, template: "otp", locale: nil)
        lane.take([message, .sample(channel: .voice, template: "otp", locale: nil)])
        let first = lane.wish(share: 4, at: now)
        #expect(first?.limit == 7, "only its own channel")
        lane.finish(message, .temporary(.timeout), at: now)
        let second = lane.wish(share: 4, at: now)
        #expect(second?.limit == 8 && second?.held.map(\.realm) == [message.realm, message.realm, message.realm])
        lane.take([message])
        lane.finish(message, .accepted, at: now)
        let third = lane.wish(share: 4, at: now)
        #expect(third?.held.isEmpty == true && lane.isIdle)
    }

    @Test func `a refused sender concerns its realm, and a failing mail server concerns all realms`() {
        var lane = Lane(.email, concurrency: 6)
        let mail = LeasedMessage.sample(channel: .email, template: "otp", locale: nil)
        lane.take([mail])
        lane.finish(mail, .temporary(.sender(550)), at: now)
        let first = lane.wish(share: 4, at: now)
        #expect(first?.limit == 6 && first?.held.map(\.realm) == [mail.realm, mail.realm, mail.realm])
        lane.take([mail])
        lane.finish(mail, .accepted, at: now)
        #expect(lane.wish(share: 4, at: now)?.held.isEmpty == true)
        for failure in [DeliveryFailure.reply(550), .connection] {
            lane.take([mail])
            lane.finish(mail, .temporary(failure), at: now)
            #expect(lane.wish(share: 4, at: now) == nil)
            let later = lane.wish(share: 4, at: now + .seconds(60))
            #expect(later?.limit == 1 && later?.held.isEmpty == true)
        }
    }
}

@Suite("Files of secrets")
struct SecretFilesTests {
    @Test func `a file is read when its owner alone may, and anew each time`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "postern-secrets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ name: String, _ text: String, mode: Int = 0o600) throws {
            let path = folder.appending(path: name).path
            #expect(FileManager.default.createFile(atPath: path, contents: Data(text.utf8)))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        let secrets = SecretFiles(folder: folder.path)
        func fault(_ name: String) async -> SecretFiles.Fault? {
            do {
                _ = try await secrets.secret(name, of: "acme")
                return nil
            } catch {
                return error
            }
        }
        try write("a", "user:pass\n")
        #expect(try await secrets.secret("a", of: "acme") == "user:pass")
        try write("a", "user:new")
        #expect(try await secrets.secret("a", of: "acme") == "user:new")
        try write("read-only", "x", mode: 0o400)
        #expect(try await secrets.secret("read-only", of: "acme") == "x")
        for mode in [0o640, 0o604, 0o620, 0o644, 0o700] {
            try write("open", "x", mode: mode)
            #expect(await fault("open") == .mode("open"))
        }
        for (name, text) in [
            ("empty", ""), ("line", "\n"), ("two", "a\nb"), ("nul", "a\0"),
            ("long", String(repeating: "x", count: 4097)),
        ] {
            try write(name, text)
            #expect(await fault(name) == .content(name))
        }
        try write("longest", String(repeating: "x", count: 4096) + "\n")
        #expect(await fault("longest") == nil)
        for name in ["absent", "../a", "/etc/passwd", "", ".", ".."] { #expect(await fault(name) == .unreadable(name)) }
        // Of its own folder first; another realm's cannot be named.
        try FileManager.default.createDirectory(at: folder.appending(path: "acme"), withIntermediateDirectories: true)
        try write("acme/a", "acme's")
        try write("acme/own", "own")
        #expect(try await secrets.secret("a", of: "acme") == "acme's")
        #expect(try await secrets.secret("a", of: "other") == "user:new")
        #expect(try await secrets.secret("own", of: "acme") == "own")
        await #expect(throws: SecretFiles.Fault.unreadable("own")) { try await secrets.secret("own", of: "other") }
        try write("acme/a", "x", mode: 0o644)
        #expect(await fault("a") == .mode("a"), "which is no reason to use that of all realms")
        let nowhere = SecretFiles(folder: nil)
        await #expect(throws: SecretFiles.Fault.noFolder) { try await nowhere.secret("a", of: "acme") }
    }
}

private let sampleRealm = UUIDValue.random()

extension LeasedMessage {
    /// A message of any kind.
    static func sample(
        channel: Channel, template: String, locale: String?, realmName: String = "Acme", askedBy: String? = nil,
        pageHost: String? = "auth.example.com", smsHash: String? = nil, texts: [String: String] = [:]
    ) -> LeasedMessage {
        LeasedMessage(
            realm: sampleRealm, id: .random(), channel: channel,
            recipient: "+4915112345678", template: template, kind: "otp", purpose: "sign-in", payload: nil, detail: nil,
            isRegistration: false, attempt: 1, queuedAt: 0, ageInSeconds: 0, secondsLeft: 600, expiresAt: 600,
            lastError: nil, locale: locale, realmSlug: "acme", realmName: realmName, app: nil, clientID: "app",
            askedBy: askedBy, pageHost: pageHost, smsHash: smsHash, provider: nil, providerFailures: 0, refusedBy: [],
            providers: [], hook: nil, mailFrom: nil, replyTo: nil, texts: texts, accent: nil,
            logo: nil)
    }
}
