// swift-tools-version: 6.2
import PackageDescription

/// Deploy/check-costs alone sets this, for programs of other names that allocate once more for each
/// delivery and each decision, which the check has to notice.
let hasInjectedCost = Context.environment["INJECTED_COST"] != nil
let injectedCost: [SwiftSetting] = hasInjectedCost ? [.define("INJECTED_COST")] : []
let programSuffix = hasInjectedCost ? "-with-injected-cost" : ""

/// What every target of this package is compiled with: Swift 6 and no warning left standing.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// What Apple's systems have themselves: there WidgetKit keeps timelines, and an app's widgets are
/// made of SwiftUI, App Intents and WidgetKit. What is left of the client are these folders, whose
/// names meet none of theirs.
#if os(Linux)
    let clientFolders: [String]? = nil
#else
    let clientFolders: [String]? = ["Apple", "Extension", "Wire"]
#endif

/// The files of the dashboard, which are part of the program.
let dashboard = [
    "index.html", "app.css", "icon.svg", "actions.js", "app.js", "changes.js", "chart.js",
    "clients.js", "deliveries.js", "dom.js", "gateway.js", "kinds.js", "overview.js", "system.js",
    "words.js",
]

let package = Package(
    name: "timeline-gateway",
    platforms: [.macOS(.v15), .iOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "WidgetModel", targets: ["WidgetModel"]),
        .library(name: "TimelineClient", targets: ["TimelineClient"]),
        .library(name: "TimelineClientHTTP", targets: ["TimelineClientHTTP"]),
        .executable(name: "timeline-gateway" + programSuffix, targets: ["timeline-gateway"]),
        .executable(name: "timelinectl", targets: ["timelinectl"]),
        .executable(name: "widget-examples", targets: ["widget-examples"]),
        .executable(name: "gateway-bench" + programSuffix, targets: ["gateway-bench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C: module maps, and shims for macros and variadics only.
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CPrefetch"),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),

        // Vocabulary and pure core: no product that does I/O may ever be listed here.
        .target(
            name: "WidgetModel",
            dependencies: [.product(name: "Yams", package: "Yams")],
            swiftSettings: settings
        ),
        .target(
            name: "GatewayCore",
            dependencies: [
                "CPrefetch", "WidgetModel",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings + injectedCost
        ),

        // Leaf and adapters: they never import each other.
        .target(
            name: "GatewaySigning",
            dependencies: ["COpenSSL", "WidgetModel"],
            swiftSettings: settings
        ),
        .target(
            name: "OpenMetrics",
            dependencies: [.product(name: "CoreMetrics", package: "swift-metrics")],
            swiftSettings: settings
        ),
        .target(
            name: "OpenTelemetry",
            dependencies: [
                "WidgetModel",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CurlMulti", dependencies: ["CCurl", "COpenSSL"], swiftSettings: settings),
        .target(
            name: "GatewayDelivery",
            dependencies: [
                "CCurl", "CNGHTTP2", "COpenSSL", "CurlMulti", "GatewayCore", "GatewaySigning",
                "WidgetModel",
            ],
            swiftSettings: settings
        ),
        .target(
            name: "GatewayTLS",
            dependencies: [
                "CLinux", "COpenSSL",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "GatewayStorage",
            dependencies: [
                "CLinux", "GatewayCore",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: settings
        ),

        // Composition.
        .target(
            name: "GatewayServer",
            dependencies: [
                "CLinux", "CurlMulti", "GatewayCore", "GatewayDelivery", "GatewaySigning",
                "GatewayStorage", "GatewayTLS", "OpenMetrics", "OpenTelemetry", "WidgetModel",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOExtras", package: "swift-nio-extras"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            resources: dashboard.map { .embedInCode("Dashboard/" + $0) },
            swiftSettings: settings + injectedCost
        ),

        // A push service to try things out against.
        .target(
            name: "APNsSimulator",
            dependencies: [
                "GatewaySigning", "GatewayTLS", "WidgetModel",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),

        // SDK.
        .target(
            name: "TimelineClient",
            dependencies: ["WidgetModel"],
            sources: clientFolders,
            swiftSettings: settings
        ),
        .target(
            name: "TimelineClientHTTP",
            dependencies: [
                "CCurl", "CurlMulti", "GatewaySigning", "TimelineClient", "WidgetModel",
            ],
            swiftSettings: settings
        ),

        // Executables.
        .executableTarget(
            name: "timeline-gateway",
            dependencies: [
                "CurlMulti", "GatewayServer", "GatewaySigning", "WidgetModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "timelinectl",
            dependencies: [
                "APNsSimulator", "CurlMulti", "GatewayServer", "GatewaySigning", "GatewayTLS",
                "TimelineClient", "TimelineClientHTTP", "WidgetModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),

        // What an app team writes, as one program that plays it.
        .executableTarget(
            name: "widget-examples",
            dependencies: [
                "TimelineClient", "TimelineClientHTTP", "WidgetModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),

        // The last file of the tutorial, as its reader has it at the end.
        .executableTarget(
            name: "ferry-tutorial",
            dependencies: ["TimelineClient", "TimelineClientHTTP"],
            path: "Sources/TimelineClient/TimelineClient.docc/Resources/Final",
            swiftSettings: settings
        ),

        // An app and its widget extension as processes of their own, for tests.
        .executableTarget(
            name: "lamp-processes",
            dependencies: ["TimelineClient", "TimelineClientHTTP"],
            swiftSettings: settings
        ),

        .executableTarget(
            name: "gateway-bench",
            dependencies: [
                "APNsSimulator", "CLinux", "COpenSSL", "GatewayCore", "GatewayDelivery",
                "GatewaySigning", "GatewayTLS", "WidgetModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),

        // Faults on real gateways, and the judge of what clients were told.
        .executableTarget(
            name: "gateway-faults",
            dependencies: [
                "GatewaySigning", "GatewayTestSupport", "WidgetModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),

        // Tests.
        .target(
            name: "GatewayTestSupport",
            dependencies: ["CCurl", "WidgetModel"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "WidgetModelTests",
            dependencies: ["GatewayTestSupport", "WidgetModel"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayCoreTests",
            dependencies: ["GatewayCore", "GatewayTestSupport", "WidgetModel"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewaySigningTests",
            dependencies: ["COpenSSL", "GatewaySigning", "WidgetModel"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayTLSTests",
            dependencies: [
                "COpenSSL", "GatewayTLS",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "OpenMetricsTests",
            dependencies: [
                "OpenMetrics", .product(name: "CoreMetrics", package: "swift-metrics"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "OpenTelemetryTests",
            dependencies: [
                "GatewayTestSupport", "OpenTelemetry", "WidgetModel",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayDeliveryTests",
            dependencies: [
                "APNsSimulator", "GatewayCore", "GatewayDelivery", "GatewaySigning",
                "GatewayTestSupport", "GatewayTLS", "WidgetModel",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayStorageTests",
            dependencies: [
                "GatewayCore", "GatewayStorage", "GatewayTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "APNsSimulatorTests",
            dependencies: [
                "APNsSimulator", "GatewaySigning", "GatewayTestSupport", "GatewayTLS",
                "WidgetModel",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TimelineClientTests",
            dependencies: [
                "GatewaySigning", "TimelineClient", "TimelineClientHTTP", "WidgetModel",
                "timelinectl",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "WidgetExamplesTests",
            dependencies: [
                "GatewayTestSupport", "TimelineClient", "TimelineClientHTTP", "WidgetModel",
                "ferry-tutorial", "lamp-processes", "timeline-gateway", "timelinectl",
                "widget-examples",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayServerTests",
            dependencies: [
                "APNsSimulator", "GatewayCore", "GatewayDelivery", "GatewayServer",
                "GatewaySigning", "GatewayStorage", "GatewayTLS", "GatewayTestSupport",
                "OpenMetrics", "OpenTelemetry", "WidgetModel",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ProcessTests",
            dependencies: [
                "APNsSimulator", "GatewaySigning", "GatewayTLS", "GatewayTestSupport",
                "WidgetModel", "timeline-gateway", "timelinectl",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayBenchTests",
            dependencies: ["WidgetModel", "gateway-bench", "timeline-gateway"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayFaultsTests",
            dependencies: ["GatewayTestSupport", "gateway-faults"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "HardeningTests",
            dependencies: [
                "COpenSSL", "GatewaySigning", "GatewayTestSupport", "WidgetModel",
                "timeline-gateway",
            ],
            swiftSettings: settings
        ),
    ]
)
