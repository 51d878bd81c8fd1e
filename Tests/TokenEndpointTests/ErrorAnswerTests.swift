@testable import Grants
import HTTPTypes
import NIOCore
import Logging
import NIOHTTP1
import Persistence
import Testing
@testable import TokenEndpoint

@Suite("Errors as answers")
struct ErrorAnswerTests {
    private static let limit = TokenError.ExceededLimit(policy: .token, dimension: .client, retryAfterSeconds: 7)

    /// Status of the token endpoint; status of the native endpoints, and whether their body is `error` alone.
    private static let table: [TokenError.Code: (oauth: Int, native: Int, isBare: Bool)] = [
        .invalidRequest: (400, 400, false), .invalidClient: (401, 400, true), .invalidGrant: (400, 400, false),
        .unauthorizedClient: (400, 400, true), .unsupportedGrantType: (400, 400, false),
        .invalidScope: (400, 400, false), .invalidTarget: (400, 400, false),
        .unmetAuthenticationRequirements: (400, 400, false), .invalidDPoPProof: (400, 400, false),
        .useDPoPNonce: (400, 400, false), .authorizationPending: (400, 400, false),
        .slowDown: (400, 400, false), .accessDenied: (400, 400, false), .expiredToken: (400, 400, false),
        .invalidBindingMessage: (400, 400, false), .temporarilyUnavailable: (503, 503, true),
        .rateLimited: (503, 503, true),
    ]

    private func answer(_ error: any Error, _ form: ErrorForm = .oauth, basicUsed: Bool = false) -> Answer {
        ErrorAnswer(error, form: form, basicUsed: basicUsed).answer
    }

    @Test(arguments: TokenError.Code.allCases)
    func `every code has its status and body, in both forms`(_ code: TokenError.Code) throws {
        let expected = try #require(Self.table[code])
        let error = TokenError(code, "Why.", reason: "for the log only")
        for (form, status) in [(ErrorForm.oauth, expected.oauth), (.native, expected.native)] {
            let answer = answer(error, form)
            #expect(answer.status.code == status)
            #expect(!answer.text.contains("log"))
            if status == 503 {
                #expect(answer == .unavailable)
            } else {
                #expect(answer.member("error") == code.rawValue)
                #expect(answer.member("error_description") == (form == .native && expected.isBare ? nil : "Why."))
            }
        }
    }

    @Test func `a used-up limit is 429 in both forms, and says which one and how long`() {
        for form in [ErrorForm.oauth, .native] {
            let answer = answer(TokenError.limited(Self.limit), form)
            #expect(answer.status == .tooManyRequests)
            #expect(answer.header("Retry-After") == "7")
            #expect(answer.member("error") == "rate_limited")
            #expect(answer.member("policy") == "token")
            #expect(answer.member("dimension") == "client")
            #expect(answer.member("retryAfterSeconds") == 7)
        }
    }

    @Test func `a client that used the header is challenged in kind, another is not`() {
        let error = TokenError(.invalidClient, "Client authentication failed.")
        #expect(
            answer(error, basicUsed: true).headers[.wwwAuthenticate] == "Basic realm=\"postern\", charset=\"UTF-8\"")
        #expect(answer(error).headers[.wwwAuthenticate] == nil)
        #expect(answer(TokenError(.invalidGrant, "x"), basicUsed: true).headers[.wwwAuthenticate] == nil)
    }

    @Test func `what is not an error of the wire is 503, and its text reaches the log alone`() {
        struct Leak: Error, CustomStringConvertible { let description = "secret-text" }
        for error in [Leak(), StoreError.inDoubt, StoreError.violation(sqlstate: "23505", constraint: "x")]
            as [any Error]
        {
            let failed = ErrorAnswer(error, form: .oauth, basicUsed: false)
            #expect(failed.answer == .unavailable)
            #expect(failed.line?.level == .warning)
            #expect(failed.line?.metadata["reason"] == "\(error)")
        }
    }

    @Test(arguments: TokenError.Code.allCases)
    func `an outage is a warning, a poll is nothing, another refusal is worth a line`(_ code: TokenError.Code) {
        let failed = ErrorAnswer(TokenError(code, "x", reason: "why"), form: .oauth, basicUsed: false)
        switch code {
        case .temporarilyUnavailable: #expect(failed.line?.level == .warning)
        case .authorizationPending: #expect(failed.line?.level == .debug)
        default: #expect(failed.line?.level == .info)
        }
        #expect(failed.line?.metadata == ["outcome": "\(code.rawValue)", "reason": "why"])
    }

    @Test func `an error may bring labels and a level of its own, and reads as without them`() {
        let error = TokenError(.invalidGrant, "x", reason: "why")
        let labelled = LabelledError(error: error, labels: ["client": "app"], level: .error)
        let failed = ErrorAnswer(labelled, form: .oauth, basicUsed: false)
        #expect(failed.answer == answer(error))
        #expect(failed.isAboutAccount)
        #expect(failed.line?.level == .error)
        #expect(failed.line?.metadata == ["outcome": "invalid_grant", "reason": "why", "client": "app"])
    }

    @Test func `an error that brings its answer is answered with it, and logged when it has a cause`() {
        let plain = ErrorAnswer(Refusal(.error(.conflict, "taken")), form: .native, basicUsed: false)
        #expect(plain.answer == .error(.conflict, "taken"))
        #expect(plain.line == nil)
        let cause = TokenError(.invalidClient, "x", reason: "secret")
        let caused = ErrorAnswer(Refusal(.oauth(cause), because: cause), form: .native, basicUsed: false)
        #expect(caused.answer.status == .unauthorized)
        #expect(caused.line?.metadata == ["outcome": "invalid_client", "reason": "secret"])
    }

    @Test func `a bearer's 401 names no error when nothing was presented`() {
        #expect(
            Answer.bearerChallenge(invalidToken: false).headers[values: .wwwAuthenticate] == [
                "Bearer", "DPoP algs=\"ES256 EdDSA PS256 RS256\"",
            ])
        #expect(
            Answer.bearerChallenge(invalidToken: true).headers[.wwwAuthenticate]?.hasPrefix(
                "Bearer error=\"invalid_token\"")
                == true)
        #expect(Answer.insufficientScope("email").headers[.wwwAuthenticate]?.hasSuffix("scope=\"email\"") == true)
        #expect(Answer.stepUp(maximumAge: 300).headers[.wwwAuthenticate]?.hasSuffix("max_age=\"300\"") == true)
        #expect(Answer.stepUp(maximumAge: 300).status == .unauthorized)
    }

    @Test func `a refused token is challenged in the scheme that it came by`() {
        func challenge(_ answer: Answer, _ authorization: String) -> [String] {
            answer.challenging(.fixture(.GET, "/connect/userinfo", [("Authorization", authorization)]))
                .headers[values: .wwwAuthenticate]
        }
        let scope = "error=\"insufficient_scope\", scope=\"email\""
        #expect(challenge(.insufficientScope("email"), "Bearer x") == ["Bearer \(scope)"])
        #expect(challenge(.insufficientScope("email"), "dpop x") == ["DPoP \(scope)"])
        #expect(challenge(.insufficientScope(), "DPoP x") == ["DPoP error=\"insufficient_scope\""])
        let stepUp = challenge(.stepUp(maximumAge: 300, context: .twoFactors), "DPoP x")
        #expect(stepUp.count == 1)
        #expect(stepUp[0].hasPrefix("DPoP error=\"insufficient_user_authentication\", "))
        #expect(stepUp[0].hasSuffix("max_age=\"300\", acr_values=\"urn:postern:acr:2\""))
        let dead = challenge(.bearerChallenge(invalidToken: true), "DPoP x")
        #expect(dead == Answer.dpopTokenChallenge.headers[values: .wwwAuthenticate])
        // Another answer is left as it is, whatever its header begins with.
        var foreign = Answer(.unauthorized)
        foreign.headers[.wwwAuthenticate] = "Bearer error=\"other\""
        #expect(challenge(foreign, "DPoP x") == ["Bearer error=\"other\""])
        let none = challenge(.bearerChallenge(invalidToken: false), "DPoP x")
        #expect(none == Answer.bearerChallenge(invalidToken: false).headers[values: .wwwAuthenticate])
    }
}

@Suite("Answers on the wire")
struct AnswerMessageTests {
    /// Lines of the head, then the body.
    private func lines(_ answer: Answer, hasBody: Bool = true, isLast: Bool = false) -> [String] {
        String(buffer: answer.encoded(hasBody: hasBody, isLast: isLast, ByteBufferAllocator()))
            .split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test func `an answer is a status line, fields, an empty line and a body`() {
        let message = lines(Answer(.created, json: Array("{}".utf8), headers: [.location: "/a"]))
        #expect(message.first == "HTTP/1.1 201 Created")
        #expect(message.contains("Location: /a"))
        #expect(message.suffix(2) == ["", "{}"])
        let head = lines(Answer(json: Array("{}".utf8)), hasBody: false)
        #expect(head.contains("Content-Length: 2"))
        #expect(head.suffix(2) == ["", ""])
    }

    @Test func `no value of a field begins another one`() {
        let message = lines(Answer(.seeOther, headers: [.location: "/a\r\nSet-Cookie: b=c\n\0"]))
        #expect(!message.contains { $0.lowercased().hasPrefix("set-cookie") })
        #expect(message.filter { $0.hasPrefix("Location") }.count == 1)
    }

    @Test func `an answer is not stored unless it says how it may be cached`() {
        let plain = lines(Answer(json: []))
        #expect(plain.contains("Cache-Control: no-store"))
        #expect(plain.contains("Pragma: no-cache"))
        let cacheable = lines(Answer(json: [], headers: [.cacheControl: "public, max-age=5"]))
        #expect(cacheable.filter { $0.hasPrefix("Cache-Control") } == ["Cache-Control: public, max-age=5"])
        #expect(!cacheable.contains { $0.hasPrefix("Pragma") })
    }

    @Test func `every answer is dated and not sniffed, and only the last one of a connection says so`() {
        let message = lines(Answer(.notFound))
        #expect(message.contains("X-Content-Type-Options: nosniff"))
        #expect(message.filter { $0.hasPrefix("Date: ") && $0.hasSuffix(" GMT") }.count == 1)
        #expect(!message.contains { $0.hasPrefix("Connection") })
        #expect(lines(Answer(.notFound), isLast: true).contains("Connection: close"))
    }

    @Test func `an answer has the length of its body, unless it can have none`() {
        #expect(lines(Answer(.notFound)).contains("Content-Length: 0"))
        for status in [HTTPResponse.Status.noContent, .notModified] {
            #expect(!lines(Answer(status)).contains { $0.hasPrefix("Content-Length") })
        }
    }
}
