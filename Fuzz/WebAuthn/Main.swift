import FuzzDriver
import WebAuthnFuzzTargets

@main
struct Main {
    static func main() {
        FuzzDriver.main(FuzzTarget.allCases.map { target in (target.rawValue, { target.run($0) }) })
    }
}
