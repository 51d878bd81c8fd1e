import CLibFuzzer
import FoundationEssentials
import Glibc

/// Runs one target under libFuzzer, in a process of its own.
public enum FuzzDriver {
    /// Takes any bytes. - Returns: what does not hold, or nil.
    public typealias Target = @Sendable ([UInt8]) -> String?

    /// Set once, before libFuzzer starts.
    nonisolated(unsafe) private static var target: Target = { _ in nil }

    /// Runs the target that `POSTERN_FUZZ_TARGET` names until libFuzzer ends the process.
    public static func main(_ targets: [(name: String, run: Target)]) -> Never {
        let name = ProcessInfo.processInfo.environment["POSTERN_FUZZ_TARGET"] ?? ""
        guard let named = targets.first(where: { $0.name == name }) else {
            fatalError("POSTERN_FUZZ_TARGET is one of \(targets.map(\.name))")
        }
        target = named.run
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(LLVMFuzzerRunDriver(&count, &arguments) { (data, size) in FuzzDriver.run(data, size) })
    }

    /// The most processor time one input may take.
    private static let nanosecondsAllowed = 10_000_000

    /// One input.
    private static func run(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
        let bytes = [UInt8](UnsafeBufferPointer(start: data, count: size))
        // The first run of an input may pay for what is set up once; only a second slow one is slow.
        for attempt in 1...2 {
            let start = threadNanoseconds()
            if let problem = target(bytes) { fatalError(problem) }
            let elapsed = threadNanoseconds() - start
            if elapsed <= nanosecondsAllowed { break }
            if attempt == 2 { fatalError("slow: \(elapsed / 1_000_000) ms") }
        }
        return 0
    }

    /// Processor time of this thread, which other work on the machine does not change.
    private static func threadNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
