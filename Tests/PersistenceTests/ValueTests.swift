import Testing

@testable import Persistence

@Suite("Values")
struct ValueTests {
    @Test func `a UUID is read in either case and written in lower case`() throws {
        let value = try #require(UUIDValue("F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"))
        #expect(value.description == "f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
        #expect(value.bytes.first == 0xF8 && value.bytes.last == 0xF6 && value.bytes.count == 16)
        #expect(UUIDValue(bytes: value.bytes) == value)
        #expect(UUIDValue(bytes: value.bytes[...]) == value)
    }

    @Test(
        "what is no UUID is refused",
        arguments: [
            "", "f81d4fae", "f81d4fae7dec11d0a76500a0c91e6bf6", "{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf", "f81d4fae-7dec-11d0-a765-00a0c91e6bf60",
            "g81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf\u{0}", "f81d4fae-7dec-11d0-a765-00a0c91e6b\u{fc}",
            "f81d4fae+7dec-11d0-a765-00a0c91e6bf6",
        ])
    func refusal(_ text: String) {
        #expect(UUIDValue(text) == nil)
    }

    @Test func `other lengths than 16 bytes are no UUID`() {
        for count in [0, 15, 17] { #expect(UUIDValue(bytes: Array(repeating: UInt8(1), count: count)) == nil) }
    }

    @Test func `random UUIDs are of version 4 and differ`() {
        let values = (0..<1000).map { _ in UUIDValue.random() }
        #expect(Set(values).count == values.count)
        for value in values {
            #expect(value.bytes[6] >> 4 == 4)
            #expect(value.bytes[8] >> 6 == 2)
        }
    }

    @Test func `a repetition budget allows one repetition, three conflicts and every dead connection`() {
        var budget = RetryBudget(connections: 2)
        #expect(budget.pause(before: .none) == nil)
        #expect((0..<4).map { _ in budget.pause(before: .anotherConnection) != nil } == [true, true, true, false])
        #expect((0..<2).map { _ in budget.pause(before: .onceMore) != nil } == [true, false])
        #expect((0..<4).map { _ in budget.pause(before: .backOff) != nil } == [true, true, true, false])
    }

    @Test func `durations in milliseconds saturate instead of trapping`() {
        #expect(Duration.milliseconds(250).milliseconds == 250)
        #expect(Duration.seconds(Int64.max).milliseconds == Int(Int32.max))
        #expect((Duration.zero - .milliseconds(3)).milliseconds == -3)
    }
}
