import FuzzDriver
import GrantsFuzzTargets

@main
struct Main {
    static func main() {
        FuzzDriver.main(GrantsFuzzTarget.allCases.map { target in (target.rawValue, { target.run($0) }) })
    }
}
