import Crypto
import FoundationEssentials
import Glibc
import SoftwareAuthenticator
import WebAuthnVerify

/// Compares a full ES256 assertion check with the bare signature check and with libfido2, in rounds that alternate, so
/// that whatever else the machine does falls on all of them. Figures are processor time; ratios are what counts.
@main
struct Main {
    static func main() throws {
        let subject = try Subject()
        let rounds = 31, repetitions = 400
        var times = [[Double]](repeating: [], count: Subject.Kind.allCases.count)
        for _ in 0..<rounds {
            for (index, kind) in Subject.Kind.allCases.enumerated() {
                times[index].append(try microseconds(repetitions) { try subject.run(kind) })
            }
        }
        let medians = times.map { $0.sorted()[$0.count / 2] }
        for (kind, median) in zip(Subject.Kind.allCases, medians) {
            // The ratio of each round, and its median: neighbours in time share the machine's mood.
            let ratios = zip(times[kind.index], times[0]).map { $0 / $1 }.sorted()
            print(
                kind.rawValue, format(median), "µs,", format(1_000_000 / median, digits: 0), "a second,",
                format(ratios[ratios.count / 2], digits: 3), "× bare")
        }
        try subject.writeForPython()
    }

    static func microseconds(_ repetitions: Int, _ body: () throws -> Void) rethrows -> Double {
        let start = processorNanoseconds()
        for _ in 0..<repetitions { try body() }
        return Double(processorNanoseconds() - start) / 1000 / Double(repetitions)
    }

    static func processorNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    static func format(_ value: Double, digits: Int = 1) -> String {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let text = String(Int((value * scale).rounded()))
        guard digits > 0 else { return text }
        let padded = String(repeating: "0", count: max(0, digits + 1 - text.count)) + text
        return "\(padded.dropLast(digits)).\(padded.suffix(digits))"
    }
}
