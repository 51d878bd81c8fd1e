// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// Coverage for libFuzzer in the code under test; not in the C libraries, which would only slow it down.
let fuzzed: [SwiftSetting] = Context.environment["POSTERN_FUZZ"] == nil ? [] : [.unsafeFlags(["-sanitize=fuzzer"])]

/// With `POSTERN_TESTABLE`, optimised modules show their internals to the tests too, as unoptimised ones do anyway:
/// `scripts/test` makes tests and server of the same objects. No released binary is built with it.
let isTestable = Context.environment["POSTERN_TESTABLE"] != nil
let testable: [SwiftSetting] = isTestable ? [.unsafeFlags(["-enable-testing"], .when(configuration: .release))] : []

/// An executable with the Swift runtime in it, so that it is the only file to install. The linker alone is told: tests
/// need the shared runtime, and would have to be compiled apart. The compiler does not name Foundation's archives then.
let standAlone: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-static-stdlib", "-lFoundationNetworking", "-l_CFURLSessionInterface", "-lFoundation", "-lCoreFoundation",
            "-lFoundationInternationalization", "-lFoundationEssentials", "-l_FoundationCShims",
            "-l_FoundationCollections", "-l_FoundationICU", "-lswiftSynchronization",
        ], .when(platforms: [.linux], configuration: .release))
]

/// gold trips over the debug information of this combination.
let fuzzLinking: [LinkerSetting] = [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]

let package = Package(
    name: "postern",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "WebAuthnVerify", targets: ["WebAuthnVerify"]),
        .executable(name: "postern", targets: ["postern"]),
    ],
    // Exact versions. What these pull in is resolved anew in each clone: `scripts/pins --check` compares all of it with
    // Package.pins, so that two builds of one commit link the same. `scripts/sbom` prints it.
    dependencies: [
        // Hashing, HMAC, AES-GCM, ECDSA/EdDSA/ML-DSA: the fastest verification here (docs/decisions/0000, F12).
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        // X.509 path validation of attestation certificates.
        .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
        // Strict DER for signatures, keys and certificate extensions.
        .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
        // Names and fields of HTTP.
        .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
        // Event loops, sockets and the HTTP/1.1 codec.
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        // PEM certificate and key for TLS that ends here.
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        // Subcommands, options and --help of the executable.
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        // Structured logging facade.
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        // Start, SIGTERM drain and stop order of the long-running services.
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        // Logic-less templates of pages and mails.
        .package(url: "https://github.com/hummingbird-project/swift-mustache", exact: "2.1.1"),
        // Settings from the environment and from a file of the same names.
        .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0", traits: []),
        // The interface that metrics are recorded through; `/metrics` is a backend of it.
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
        // The interface that spans are made through; the exporter to OpenTelemetry is a backend of it.
        .package(url: "https://github.com/apple/swift-distributed-tracing", exact: "1.7.3"),
    ],
    targets: [
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CEpoll"),  // epoll's C union, which Swift does not set without a detour
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // libphonenumber's C++ behind one C function; Debian's package brings the headers of protobuf that it needs.
        .target(name: "CPhoneNumber", linkerSettings: [.linkedLibrary("phonenumber")]),
        // Domains in every script (UTS 46): Debian's tables, which libcurl brings along at run time.
        .systemLibrary(name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        // The client library, which apps get as a package of its own. Here the same sources are a part of `postern try`.
        .systemLibrary(
            name: "CLibCrypto", path: "clients/swift/Sources/CLibCrypto", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]),
        .target(
            name: "PosternClient", dependencies: ["CLibCrypto"], path: "clients/swift/Sources/PosternClient",
            exclude: ["PrivacyInfo.xcprivacy"],
            swiftSettings: [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // Base64, base32, hexadecimal, JSON, HTML, timestamps: texts of values, without I/O.
        .target(name: "Encoding", swiftSettings: settings + fuzzed),
        .target(
            name: "WebAuthnVerify",
            dependencies: [
                "Encoding", "COpenSSL",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
            ],
            swiftSettings: settings + [.enableExperimentalFeature("Lifetimes"), .strictMemorySafety()] + fuzzed
        ),
        // An authenticator in software: the tests' counterpart, and the client of `postern try passkey`.
        .target(
            name: "SoftwareAuthenticator",
            dependencies: [
                "Encoding", "WebAuthnVerify", "COpenSSL",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
            ],
            swiftSettings: settings
        ),
        // What scripts/fuzz runs on any bytes, and what the tests replay its corpora through.
        .target(
            name: "WebAuthnFuzzTargets",
            dependencies: [
                "WebAuthnVerify", "SoftwareAuthenticator",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Fuzz/WebAuthnTargets",
            swiftSettings: settings
        ),
        // What /metrics shows of swift-metrics, and the exporter of spans.
        .target(
            name: "Telemetry",
            dependencies: [
                "Encoding",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings + fuzzed + testable
        ),
        .target(
            name: "Persistence",
            dependencies: [
                "CLibPQ", "CEpoll",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings + testable,
            plugins: ["EmbedFiles"]
        ),
        // Embeds sql/ and templates into the executable, so that it is the only file to install.
        .plugin(name: "EmbedFiles", capability: .buildTool(), dependencies: ["embed-files"]),
        .executableTarget(name: "embed-files", swiftSettings: settings),
        .target(
            name: "Grants",
            dependencies: [
                "Encoding", "Persistence", "WebAuthnVerify", "CIDN2", "COpenSSL", "CPhoneNumber",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings + fuzzed + testable
        ),
        .target(
            name: "DPoPFuzzTargets",
            dependencies: [
                "Encoding", "Grants", "Persistence",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Fuzz/DPoPTargets",
            swiftSettings: settings
        ),
        .target(
            name: "GrantsFuzzTargets", dependencies: ["Grants"], path: "Fuzz/GrantsTargets", swiftSettings: settings),
        .target(
            name: "EndpointFuzzTargets",
            dependencies: [
                "Telemetry", "TokenEndpoint",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            path: "Fuzz/EndpointTargets",
            swiftSettings: settings
        ),
        // The words of pages and messages in every language, and the engine of their templates.
        .target(
            name: "Texts",
            dependencies: ["Encoding", .product(name: "Mustache", package: "swift-mustache")],
            exclude: ["Templates"],
            swiftSettings: settings + testable,
            plugins: ["EmbedFiles"]
        ),
        .target(
            name: "Delivery",
            dependencies: [
                "Encoding", "Persistence", "Texts", "CCurl",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            exclude: ["Templates"],
            swiftSettings: settings + testable,
            plugins: ["EmbedFiles"]
        ),
        .target(
            name: "TokenEndpoint",
            dependencies: [
                "Encoding", "Grants", "Persistence", "Telemetry", "Texts", "WebAuthnVerify",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings + fuzzed + testable
        ),
        // The pages of browsers and web views.
        .target(
            name: "HostedPages",
            dependencies: [
                "Encoding", "TokenEndpoint", "Grants", "Persistence", "Texts",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Templates"],
            swiftSettings: settings + testable,
            plugins: ["EmbedFiles"]
        ),
        .executableTarget(
            name: "postern",
            dependencies: [
                "TokenEndpoint", "HostedPages", "Delivery", "Persistence", "Grants", "SoftwareAuthenticator",
                "PosternClient", "WebAuthnVerify", "Encoding", "Telemetry",
                "CLibPQ", "CCurl", "COpenSSL",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            exclude: ["Templates"],
            swiftSettings: settings,
            // Addresses of functions are looked up at the start and are then read-only.
            linkerSettings: standAlone + [
                .unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"], .when(platforms: [.linux]))
            ],
            plugins: ["EmbedFiles"]
        ),
        .testTarget(
            name: "EncodingTests", dependencies: ["Encoding", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "WebAuthnVerifyTests",
            dependencies: [
                "Encoding", "WebAuthnVerify", "SoftwareAuthenticator", "WebAuthnFuzzTargets",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: settings),
        .target(
            name: "TestSupport",
            dependencies: ["Persistence", .product(name: "Logging", package: "swift-log")],
            path: "Tests/Support", swiftSettings: settings),
        .testTarget(
            name: "PersistenceTests",
            dependencies: [
                "Persistence", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "GrantsTests",
            dependencies: [
                "Encoding", "Grants", "Persistence", "TestSupport", "DPoPFuzzTargets", "GrantsFuzzTargets",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "DeliveryTests",
            dependencies: [
                "Delivery", "Persistence", "Texts", "CCurl", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            exclude: ["Servers"],
            swiftSettings: settings),
        .testTarget(
            name: "TelemetryTests",
            dependencies: [
                "Telemetry",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings),
        .testTarget(name: "TextsTests", dependencies: ["Texts"], swiftSettings: settings),
        .testTarget(
            name: "HostedPagesTests",
            dependencies: [
                "HostedPages", "TokenEndpoint", "Grants", "Persistence", "Texts",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TokenEndpointTests",
            dependencies: [
                "TokenEndpoint", "HostedPages", "Grants", "Persistence", "TestSupport",
                "EndpointFuzzTargets",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: settings),
    ],
    cxxLanguageStandard: .cxx17
)

// Tools that ordinary builds do not see. With fuzzing the package holds what is fuzzed alone, so that it is quick.
if Context.environment["POSTERN_FUZZ"] != nil {
    let kept: Set<String> = [
        "COpenSSL", "Encoding", "WebAuthnVerify", "SoftwareAuthenticator", "WebAuthnFuzzTargets",
        "CLibPQ", "CEpoll", "CIDN2", "CPhoneNumber", "EmbedFiles", "embed-files", "Persistence", "Grants",
        "DPoPFuzzTargets", "GrantsFuzzTargets",
        "Texts", "Telemetry", "TokenEndpoint", "EndpointFuzzTargets",
    ]
    package.products = []
    package.targets = package.targets.filter { kept.contains($0.name) }
    package.targets += [
        .systemLibrary(name: "CLibFuzzer", path: "Fuzz/CLibFuzzer"),
        .target(name: "FuzzDriver", dependencies: ["CLibFuzzer"], path: "Fuzz/Driver", swiftSettings: settings),
        .executableTarget(
            name: "WebAuthnFuzz", dependencies: ["WebAuthnFuzzTargets", "FuzzDriver"], path: "Fuzz/WebAuthn",
            swiftSettings: settings, linkerSettings: fuzzLinking),
        .executableTarget(
            name: "DPoPFuzz", dependencies: ["DPoPFuzzTargets", "FuzzDriver"], path: "Fuzz/DPoP",
            swiftSettings: settings, linkerSettings: fuzzLinking),
        .executableTarget(
            name: "GrantsFuzz", dependencies: ["GrantsFuzzTargets", "FuzzDriver"], path: "Fuzz/Grants",
            swiftSettings: settings, linkerSettings: fuzzLinking),
        .executableTarget(
            name: "EndpointFuzz", dependencies: ["EndpointFuzzTargets", "FuzzDriver"], path: "Fuzz/Endpoint",
            swiftSettings: settings, linkerSettings: fuzzLinking),
    ]
}
if Context.environment["POSTERN_BENCH"] != nil {
    package.targets += [
        .systemLibrary(
            name: "CFIDO2", path: "Benchmarks/CFIDO2", pkgConfig: "libfido2", providers: [.apt(["libfido2-dev"])]),
        .executableTarget(
            name: "WebAuthnBench",
            dependencies: [
                "Encoding", "WebAuthnVerify", "SoftwareAuthenticator", "CFIDO2",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Benchmarks/WebAuthn", exclude: ["assertions.py"], swiftSettings: settings),
        // Makes tokens, codes and assertions as the server would, for the load generator to present.
        .executableTarget(
            name: "BenchSeed",
            dependencies: [
                "Grants", "Persistence", "SoftwareAuthenticator", "WebAuthnVerify",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Benchmarks/Seed", swiftSettings: settings),
        // The floor of every route: NIO's HTTP codec and fixed bytes.
        .executableTarget(
            name: "BenchStatic",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Benchmarks/Static", swiftSettings: settings, linkerSettings: standAlone),
    ]
}
