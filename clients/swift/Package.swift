// swift-tools-version: 6.0
import PackageDescription

// The privacy manifest is for Apple's platforms. A resource would give every other build a bundle beside the program.
#if canImport(Darwin)
    let resources: [Resource] = [.copy("PrivacyInfo.xcprivacy")]
    let excluded: [String] = []
#else
    let resources: [Resource] = []
    let excluded = ["PrivacyInfo.xcprivacy"]
#endif

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "postern-client",
    platforms: [.iOS(.v16), .macOS(.v13), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [.library(name: "PosternClient", targets: ["PosternClient"])],
    targets: [
        // P-256 and SHA-256 where there is no CryptoKit.
        .systemLibrary(name: "CLibCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .target(
            name: "PosternClient",
            dependencies: [.target(name: "CLibCrypto", condition: .when(platforms: [.linux]))],
            exclude: excluded,
            resources: resources,
            swiftSettings: settings
        ),
        // Calls the library as a line of JSON on its input says. The tests against a real server drive it.
        .executableTarget(
            name: "ClientDriver", dependencies: ["PosternClient"], path: "Tests/ClientDriver", swiftSettings: settings),
        .testTarget(name: "PosternClientTests", dependencies: ["PosternClient"], swiftSettings: settings),
    ]
)
