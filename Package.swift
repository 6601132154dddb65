// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

/// The products of other packages that targets name among their dependencies, by package.
let products = [
    "GRDB.swift": ["GRDB", "GRDBSQLite"],
    "swift-argument-parser": ["ArgumentParser"],
    "swift-collections": ["DequeModule", "HeapModule"],
    "swift-distributed-tracing": ["Tracing"],
    "swift-log": ["Logging"],
    "swift-metrics": ["CoreMetrics"],
    "swift-nio": ["NIOCore", "NIOEmbedded", "NIOHTTP1", "NIOPosix"],
    "swift-nio-extras": ["NIOHTTPTypesHTTP1", "NIOHTTPTypesHTTP2"],
    "swift-nio-http2": ["NIOHPACK", "NIOHTTP2"],
    "swift-service-lifecycle": ["ServiceLifecycle", "UnixSignals"],
    "Yams": ["Yams"],
]

/// The targets in Swift 5 mode: samples of articles that are written for it.
let swift5 = ["ArticleSamples"]

/// The settings of every target: a warning is an error.
let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    // A release of a dependency that deprecates something breaks no build.
    .treatWarning("DeprecatedDeclaration", as: .warning),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// What is part of the program: the OpenAPI document and the files of the dashboard.
let embedded =
    ["HTTP/API/openapi.yaml"]
    + [
        "index.html", "app.css", "icon.svg", "actions.js", "app.js", "changes.js", "chart.js",
        "clients.js", "deliveries.js", "dom.js", "gateway.js", "kinds.js", "overview.js",
        "system.js", "words.js",
    ].map { "Admin/Dashboard/" + $0 }

let package = Package(
    name: "timeline-gateway",
    platforms: [.macOS(.v15), .iOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "TimelineGatewayClient", targets: ["TimelineGatewayClient"]),
        .library(name: "WidgetViews", targets: ["WidgetViews"]),
        .library(name: "TimelineRuntime", targets: ["TimelineRuntime"]),
        .executable(name: "timeline-gateway", targets: ["timeline-gateway"]),
        .executable(name: "timelinectl", targets: ["timelinectl"]),
        .executable(name: "widget-examples", targets: ["widget-examples"]),
        .executable(name: "gateway-bench", targets: ["gateway-bench"]),
    ],
    traits: [
        .trait(
            name: "Server",
            description: "The gateway and its tools. Without it no other package is resolved."),
        .default(enabledTraits: ["Server"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C: module maps, and shims for macros, variadics and what the core needs.
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CPrefetch"),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),

        // Vocabulary and pure core: no product that does I/O may ever be listed here.
        .target(name: "WidgetModel"),
        // Catalogs: the entities, intents and widgets of an app, in YAML or JSON.
        .target(name: "CatalogModel", dependencies: ["WidgetModel", "Yams"]),
        // The JSON documents that the gateway answers and timelinectl reads.
        .target(name: "GatewayDocuments", dependencies: ["WidgetModel"]),
        // What is decided, of streams and of pushes.
        .target(
            name: "GatewayCore",
            dependencies: [
                "CatalogModel", "CPrefetch", "WidgetModel", "DequeModule", "HeapModule",
            ]),

        // Leaf and adapters: they never import each other.
        .target(name: "GatewaySigning", dependencies: ["COpenSSL", "WidgetModel"]),
        .target(
            name: "GatewayTelemetry",
            dependencies: ["WidgetModel", "CoreMetrics", "DequeModule", "Logging", "Tracing"]),
        .target(name: "CurlMulti", dependencies: ["CCurl", "COpenSSL"]),
        .target(
            name: "GatewayDelivery",
            dependencies: [
                "CCurl", "CNGHTTP2", "COpenSSL", "CurlMulti", "GatewayCore", "GatewaySigning",
                "WidgetModel",
            ]),
        .target(name: "GatewayTLS", dependencies: ["CLinux", "COpenSSL", "NIOCore", "NIOPosix"]),
        .target(
            name: "GatewayStorage",
            dependencies: ["CLinux", "GatewayCore", "GRDB", "GRDBSQLite"]),

        // Settings and their reading, the rows of the store, the data directory, backup, doctor:
        // timelinectl has them too, so nothing of a running gateway may be listed here.
        .target(
            name: "GatewayOperations",
            dependencies: [
                "CatalogModel", "CLinux", "CurlMulti", "GatewayCore", "GatewayDocuments",
                "GatewaySigning", "GatewayStorage", "GatewayTelemetry", "GatewayTLS",
                "WidgetModel", "Logging", "NIOCore",
            ]),

        // The log, the registrations, the event loops, pushes, explanations.
        .target(
            name: "GatewayEngine",
            dependencies: [
                "CatalogModel", "CLinux", "CurlMulti", "GatewayCore", "GatewayDelivery",
                "GatewayDocuments", "GatewayOperations", "GatewaySigning", "GatewayStorage",
                "GatewayTelemetry", "GatewayTLS", "WidgetModel", "CoreMetrics", "DequeModule",
                "HeapModule", "Logging", "NIOCore", "NIOPosix", "ServiceLifecycle", "Tracing",
            ]),
        // Several gateways as one: a leader that writes, and replicas of its store.
        .target(
            name: "GatewayCluster",
            dependencies: [
                "CLinux", "COpenSSL", "CPostgres", "GatewayOperations", "GatewayStorage",
                "WidgetModel", "Logging",
            ],
            resources: [.embedInCode("Rows/schema.sql")]),
        // One gateway, from the configuration to the ports: composition, requests and routes with
        // their contract, the admin port.
        .target(
            name: "GatewayServer",
            dependencies: [
                "CatalogModel", "CurlMulti", "GatewayCluster", "GatewayCore", "GatewayDelivery",
                "GatewayDocuments", "GatewayEngine", "GatewayOperations", "GatewaySigning",
                "GatewayStorage", "GatewayTelemetry", "GatewayTLS", "WidgetModel", "CoreMetrics",
                "Logging", "NIOCore", "NIOHTTP1", "NIOHTTP2", "NIOHTTPTypesHTTP1",
                "NIOHTTPTypesHTTP2", "NIOPosix", "ServiceLifecycle", "Tracing", "UnixSignals",
            ],
            resources: embedded.map { .embedInCode($0) }),

        // A push service to try things out against.
        .target(
            name: "APNsSimulator",
            dependencies: [
                "GatewaySigning", "GatewayTLS", "WidgetModel", "NIOCore", "NIOHPACK", "NIOHTTP2",
                "NIOPosix",
            ]),

        // SDK: what an app and its widget extension link; the mirror of SwiftUI and App Intents;
        // what keeps timelines where no system does.
        .target(name: "TimelineGatewayClient", dependencies: ["WidgetModel"]),
        .target(name: "WidgetViews", dependencies: ["WidgetModel"]),
        .target(
            name: "TimelineRuntime",
            dependencies: [
                "CurlMulti", "GatewaySigning", "PreviewMacro", "TimelineGatewayClient",
                "WidgetModel", "WidgetViews",
            ]),
        // Expands `#Preview`.
        .macro(name: "PreviewMacro"),

        // Executables.
        .executableTarget(
            name: "timeline-gateway",
            dependencies: [
                "CLinux", "CurlMulti", "GatewayCluster", "GatewayEngine", "GatewayOperations",
                "GatewayServer", "GatewaySigning", "WidgetModel", "ArgumentParser", "Logging",
            ]),
        .executableTarget(
            name: "timelinectl",
            dependencies: [
                "APNsSimulator", "CatalogModel", "CurlMulti", "GatewayCluster",
                "GatewayDocuments", "GatewayOperations", "GatewaySigning", "GatewayTelemetry",
                "GatewayTLS", "TimelineRuntime", "WidgetModel", "WidgetViews", "ArgumentParser",
                "NIOCore", "NIOHTTP1", "NIOPosix",
            ]),

        // What an app team writes, as one program that plays it.
        .executableTarget(
            name: "widget-examples",
            dependencies: [
                "TimelineRuntime", "WidgetModel", "ArgumentParser",
            ]),

        // The last file of the tutorial, as its reader has it at the end.
        .executableTarget(
            name: "ferry-tutorial",
            dependencies: ["TimelineRuntime"],
            path: "Sources/TimelineRuntime/TimelineRuntime.docc/Resources/Final"),

        // An app and its widget extension as processes of their own, for tests.
        .executableTarget(
            name: "lamp-processes",
            dependencies: ["TimelineRuntime"]),

        .executableTarget(
            name: "gateway-bench",
            dependencies: [
                "APNsSimulator", "CatalogModel", "CLinux", "COpenSSL", "ClusterTestSupport",
                "CurlMulti", "GatewayCore", "GatewayDelivery", "GatewaySigning",
                "GatewayTelemetry", "GatewayTLS", "GatewayTestSupport", "WidgetModel",
                "ArgumentParser",
            ]),

        // Faults on real gateways, and the judge of what clients were told.
        .executableTarget(
            name: "gateway-faults",
            dependencies: [
                "APNsSimulator", "ClusterTestSupport", "GatewayCluster", "GatewaySigning",
                "GatewayTestSupport", "WidgetModel", "ArgumentParser",
            ]),

        // Tests.
        .target(
            name: "GatewayTestSupport",
            dependencies: [
                "APNsSimulator", "CatalogModel", "COpenSSL",
                "CurlMulti", "GatewayCore", "GatewaySigning", "GatewayTLS", "WidgetModel",
            ]),
        .target(
            name: "ClusterTestSupport",
            dependencies: [
                "APNsSimulator", "GatewayCluster", "GatewaySigning", "GatewayTestSupport",
                "GatewayTLS", "WidgetModel",
            ]),
        // The core and its vocabulary: no process, task or clock.
        .testTarget(
            name: "CoreTests",
            dependencies: ["CatalogModel", "GatewayCore", "GatewayTestSupport", "WidgetModel"]),
        // Signatures, TLS, deliveries, the store, telemetry, and the stand-in for APNs.
        .testTarget(
            name: "AdapterTests",
            dependencies: [
                "APNsSimulator", "CLinux", "COpenSSL", "CurlMulti", "GatewayCore",
                "GatewayDelivery", "GatewaySigning", "GatewayStorage", "GatewayTelemetry",
                "GatewayTestSupport", "GatewayTLS", "WidgetModel", "CoreMetrics", "GRDB",
                "Logging", "NIOCore", "NIOPosix", "Tracing",
            ]),
        // Engine, server and operations, built by hand.
        .testTarget(
            name: "EngineTests",
            dependencies: [
                "APNsSimulator", "CatalogModel", "CurlMulti", "GatewayCore", "GatewayDelivery",
                "GatewayDocuments", "GatewayEngine", "GatewayOperations", "GatewayServer",
                "GatewaySigning", "GatewayStorage", "GatewayTelemetry", "GatewayTestSupport",
                "GatewayTLS", "WidgetModel", "CoreMetrics", "Logging", "NIOCore", "NIOEmbedded",
                "NIOHTTP1", "NIOHTTP2", "NIOPosix", "Tracing",
            ]),
        // Several gateways and a database.
        .testTarget(
            name: "ClusterTests",
            dependencies: [
                "APNsSimulator", "ClusterTestSupport", "GatewayCluster", "GatewayOperations",
                "GatewayStorage", "GatewayTestSupport", "WidgetModel", "timeline-gateway",
                "timelinectl", "GRDB", "Logging",
            ]),
        // The SDK, and in `Examples` programs that use it.
        .testTarget(
            name: "ClientTests",
            dependencies: [
                "CatalogModel", "GatewaySigning", "GatewayTelemetry", "GatewayTestSupport",
                "TimelineGatewayClient", "TimelineRuntime", "WidgetModel", "WidgetViews",
                "ferry-tutorial", "lamp-processes", "timeline-gateway", "timelinectl",
                "widget-examples", "ArgumentParser", "NIOCore", "NIOHTTP1",
            ]),
        // Whole gateways: what operators do, and in `Hardening` what attackers do.
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "APNsSimulator", "CatalogModel", "COpenSSL", "GatewayDelivery", "GatewayEngine",
                "GatewayOperations", "GatewayServer", "GatewaySigning", "GatewayStorage",
                "GatewayTestSupport", "GatewayTLS", "WidgetModel", "timeline-gateway",
                "timelinectl", "GRDB",
            ],
            exclude: ["Process/apns_double.py"]),
        // The articles' samples as they are printed: some are entry points of programs, which a
        // test is not.
        .testTarget(
            name: "ArticleSamples",
            dependencies: ["TimelineRuntime", "WidgetViews"],
            swiftSettings: [
                .unsafeFlags([
                    "-Xfrontend", "-entry-point-function-name",
                    "-Xfrontend", "article_samples_main",
                ])
            ]),
    ]
)

// The tests of what measures and of what breaks gateways: `Deploy/test --all` asks for them.
if Context.environment["TIMELINE_TEST_ALL"] != nil {
    package.targets.append(
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "CatalogModel", "GatewayTelemetry", "GatewayTestSupport", "WidgetModel",
                "gateway-bench", "gateway-faults", "timeline-gateway", "timelinectl",
            ]))
}

for target in package.targets {
    target.dependencies = target.dependencies.map { dependency in
        guard case .byNameItem(let name, _) = dependency,
            let package = products.first(where: { $0.value.contains(name) })?.key
        else { return dependency }
        return .product(name: name, package: package, condition: .when(traits: ["Server"]))
    }
    if target.type != .system {
        let mode = SwiftSetting.swiftLanguageMode(swift5.contains(target.name) ? .v5 : .v6)
        target.swiftSettings = [mode] + settings + (target.swiftSettings ?? [])
    }
}
