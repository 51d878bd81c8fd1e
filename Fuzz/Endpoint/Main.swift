import EndpointFuzzTargets
import FuzzDriver

@main
struct Main {
    static func main() {
        FuzzDriver.main(EndpointFuzzTarget.allCases.map { target in (target.rawValue, { target.run($0) }) })
    }
}
