import CLibFuzzer
import FoundationEssentials
import Glibc
import WebAuthnFuzzTargets

/// The target of this process, from `POSTERN_FUZZ_TARGET`.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["POSTERN_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        fatalError("POSTERN_FUZZ_TARGET is one of \(FuzzTarget.allCases.map(\.rawValue))")
    }
    return target
}()

/// The most processor time one input may take.
private let nanosecondsAllowed = 10_000_000

/// Processor time of this thread, which other work on the machine does not change.
private func threadNanoseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// One input.
private func run(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = [UInt8](UnsafeBufferPointer(start: data, count: size))
    // The first run of an input may pay for what is set up once; only a second slow one is slow.
    for attempt in 1...2 {
        let start = threadNanoseconds()
        if let problem = target.run(bytes) { fatalError(problem) }
        let elapsed = threadNanoseconds() - start
        if elapsed <= nanosecondsAllowed { break }
        if attempt == 2 { fatalError("slow: \(elapsed / 1_000_000) ms") }
    }
    return 0
}

@main
struct Main {
    static func main() {
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(LLVMFuzzerRunDriver(&count, &arguments) { (data, size) in run(data, size) })
    }
}
