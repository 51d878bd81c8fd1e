import Foundation

/// What the user sees in the list of sessions.
enum UserAgent {
    /// Name and version of the app, model and system: `Garden/2.1 (iPhone16,2; Version 26.1)`.
    static let ofThisApp: String = {
        let information = Bundle.main.infoDictionary ?? [:]
        let name = information["CFBundleName"] as? String ?? ProcessInfo.processInfo.processName
        let version = (information["CFBundleShortVersionString"] as? String).map { "/\($0)" } ?? ""
        let text = "\(name)\(version) (\(model); \(ProcessInfo.processInfo.operatingSystemVersionString))"
        return String(
            String.UnicodeScalarView(text.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.prefix(256)))
    }()

    private static var model: String {
        var names = utsname()
        guard uname(&names) == 0 else { return "unknown" }
        return withUnsafeBytes(of: names.machine) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
