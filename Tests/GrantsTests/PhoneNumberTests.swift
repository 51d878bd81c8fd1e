import Persistence
import Testing

@testable import Grants

@Suite("Phone numbers")
struct PhoneNumberTests {
    @Test(
        "what people type becomes E.164",
        arguments: [
            ("0176 1234 5678", "DE", "+4917612345678", "DE"), ("(415) 555-2671", "US", "+14155552671", "US"),
            ("011 15 2345-6789", "AR", "+5491123456789", "AR"), ("312 345 6789", "IT", "+393123456789", "IT"),
            ("+2290197123456", "DE", "+2290197123456", "BJ"), ("٠١٧٦١٢٣٤٥٦٧٨", "DE", "+4917612345678", "DE"),
            ("tel:+43-664-1234567", "DE", "+436641234567", "AT"), ("0043 664 1234567", "DE", "+436641234567", "AT"),
            ("+1 876 555 1234", "US", "+18765551234", "JM"),
        ])
    func typed(_ typed: String, _ region: String, _ e164: String, _ country: String) throws {
        let number = try #require(PhoneNumber(typed: typed, defaultRegion: region))
        #expect(number.text == e164)
        #expect(number.region == country)
    }

    @Test(
        "what no message can be sent to is refused",
        arguments: [
            "112", "+49", "+999123456789", "+1 415 555 2671 x12", "+4912345678901234567", "letters", "",
            "0900 1 123456",
            "0800 1234567", "0180 5 123456", "(00) 056 78", String(repeating: "1", count: 10_240),
            "0176 1234 5678\u{0}", "+44 70 1234 5678", "0700 12345678",
        ])
    func refused(_ typed: String) {
        #expect(PhoneNumber(typed: typed, defaultRegion: "DE") == nil)
    }

    @Test(
        "apps send E.164 alone",
        arguments: ["0176 12345678", "+49 176 12345678", "4917612345678", "+049176123456", "+49"])
    func strict(_ text: String) {
        #expect(PhoneNumber(e164: text) == nil)
    }

    @Test("a number without a country counts to the main one of its calling code")
    func main() throws {
        // Not assigned to an area, so to none of the countries of +1.
        let number = try #require(PhoneNumber(e164: "+17005550123"))
        #expect(number.region == "US")
    }

    @Test("the longest prefix decides what a message costs and whether it is sent")
    func prefixes() {
        let policy = PhonePolicy(
            regions: ["AT"], defaultRegion: nil, sends: 3,
            prefixes: [
                "+43": .init(isDenied: true, cost: 2), "+43664": .init(isDenied: false, cost: 5),
            ])
        #expect(policy.isDenied("+436761234567") && policy.cost(of: "+436761234567") == 2)
        #expect(!policy.isDenied("+436641234567") && policy.cost(of: "+436641234567") == 5)
        #expect(!policy.isDenied("+14155552671") && policy.cost(of: "+14155552671") == 1)
    }
}
