import Persistence
import Testing

@Suite("Random bytes")
struct RandomBytesTests {
    @Test func `a million values of 32 bytes are all different, and each byte takes every value`() {
        var values = Set<[UInt8]>(minimumCapacity: 1_000_000)
        var counts = [[Int]](repeating: [Int](repeating: 0, count: 256), count: 32)
        for number in 0..<1_000_000 {
            let value = randomBytes(32)
            counts[number % 32][Int(value[number % 32])] += 1
            values.insert(value)
        }
        #expect(values.count == 1_000_000)
        // 122 are expected; eight standard deviations are 88.
        #expect(counts.allSatisfy { $0.allSatisfy { (34...210).contains($0) } })
    }

    @Test(arguments: [0, 1, 255, 256, 257, 5000])
    func `any number of bytes is filled`(_ count: Int) {
        #expect(randomBytes(count).count == count)
        #expect(count < 255 || Set(randomBytes(count)).count > 100)
    }
}
