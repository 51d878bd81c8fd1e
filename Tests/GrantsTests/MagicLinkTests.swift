import Encoding
@testable import Grants
import Persistence
import Testing

@Suite("Magic links")
struct MagicLinkTests {
    private let user = UUIDValue.random()

    @Test func `a link is read back from its address and from the page's form`() throws {
        let link = MagicLink(for: user)
        let url = link.url(origin: "https://r.example")
        let token = try #require(url.split(separator: "=").last.map(String.init))
        #expect(url == "https://r.example/magic-login?userId=\(user)&token=\(token)")
        #expect(MagicLink(userID: user.description, token: token) == link)
        #expect(MagicLink(formUserID: link.formUserID, formToken: link.formToken) == link)
    }

    @Test func `of 100,000 links no two share a piece, and nothing in a token follows user, time or order`() {
        let count = 100_000
        let other = UUIDValue.random()
        var pieces: Set<UInt64> = []
        var repeats = 0
        var ones = [Int](repeating: 0, count: 256)
        var sames = [Int](repeating: 0, count: 256)
        var values = [[Int]](repeating: [Int](repeating: 0, count: 256), count: 32)
        var previous: [UInt8]?
        var oddSizes = 0
        for number in 0..<count {
            // One user half of the time, as when somebody asks again and again.
            let token = MagicLink(for: number.isMultiple(of: 2) ? user : other).token
            guard token.count == 32 else {
                oddSizes += 1
                continue
            }
            for start in stride(from: 0, to: 32, by: 8) {
                let piece = token[start..<(start + 8)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                if !pieces.insert(piece).inserted { repeats += 1 }
            }
            for bit in 0..<256 {
                let isOne = token[bit / 8] >> (bit % 8) & 1
                ones[bit] += Int(isOne)
                if let previous, previous[bit / 8] >> (bit % 8) & 1 == isOne { sames[bit] += 1 }
            }
            for (position, byte) in token.enumerated() { values[position][Int(byte)] += 1 }
            previous = token
        }
        // 400,000 pieces of 64 random bits: two alike once in a hundred million runs.
        #expect(oddSizes == 0 && repeats == 0)
        // Seven standard deviations: 512 bits and 8192 counts stay within them but once in millions of runs. A bit that
        // is fixed, counts, or tells user from user (they alternate) is far outside.
        let deviation = 7 * (Double(count) / 4).squareRoot()
        #expect(ones.allSatisfy { abs(Double($0) - Double(count) / 2) < deviation })
        #expect(sames.allSatisfy { abs(Double($0) - Double(count) / 2) < deviation })
        let expected = Double(count) / 256
        #expect(values.joined().allSatisfy { abs(Double($0) - expected) < 7 * expected.squareRoot() })
    }

    @Test func `each spelling reads what was written in it and nothing else`() {
        let link = MagicLink(for: user)
        let token = Base64.urlEncode(link.token)
        for text in ["", String(token.dropLast()), token + "=", token + "A", link.formToken, token.lowercased() + "."] {
            #expect(MagicLink(userID: user.description, token: text) == nil, "\(text)")
        }
        for text in ["", "1", user.description.uppercased(), "{\(user)}", link.formUserID, " \(user)"] {
            #expect(MagicLink(userID: text, token: token) == nil, "\(text)")
        }
        #expect(MagicLink(formUserID: user.description, formToken: link.formToken) == nil)
        #expect(MagicLink(formUserID: link.formUserID, formToken: token) == nil)
        #expect(MagicLink(formUserID: String(repeating: "é", count: 16), formToken: link.formToken) == nil)
    }

    @Test func `a number is what the database computes of the same handle`() {
        #expect(MatchNumber.of(handle: Array(0..<16)) == 23)  // sql/tests/magic_link/links.sql
    }

    @Test func `a link is kept as bytes of one length`() throws {
        let link = MagicLink(for: user)
        #expect(MagicLink(encoded: link.encoded) == link)
        #expect(MagicLink(encoded: link.encoded.dropLast()) == nil && MagicLink(encoded: [UInt8]()) == nil)
    }

    @Test func `a statement that finds its lock taken runs again, and in the end gives up`() async throws {
        let turns = Turns(.init(maximumWait: .milliseconds(100)))
        var runs = 0
        let answer = try await turns.retryWhileBusy(.whenBusy("key")) {
            runs += 1
            return runs == 3 ? "done" : nil
        }
        #expect(answer == "done" && runs == 3)
        await #expect(throws: TokenError.unavailable("busy")) {
            try await turns.retryWhileBusy(.whenBusy("key")) { String?.none }
        }
        await #expect(throws: StoreError.inDoubt) {
            try await turns.retryWhileBusy(.whenBusy("key")) { () async throws -> String? in throw StoreError.inDoubt }
        }
        #expect(turns.isIdle)
    }

    @Test(arguments: [
        ("user_id", false), ("magic_token", false), ("auth_session", true), ("user_id magic_token", true), ("", false),
        ("user_id magic_token auth_session", true), ("user_id auth_session", false),
        ("magic_token auth_session", false),
    ])
    func `the link's two parameters come together, or the handle comes alone`(_ names: String, _ enough: Bool) throws {
        let form = try FormParameters(
            parsing: names.split(separator: " ").map { "\($0)=x" }.joined(separator: "&").utf8)
        let accepted = (try? MagicLinkFactor.requireParameters(form)) != nil
        #expect(accepted == enough)
    }
}
