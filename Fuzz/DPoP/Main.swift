import DPoPFuzzTargets
import FuzzDriver

@main
struct Main {
    static func main() {
        FuzzDriver.main(DPoPFuzzTarget.allCases.map { target in (target.rawValue, { target.run($0) }) })
    }
}
