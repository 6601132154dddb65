// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "ferry",
    platforms: [.macOS(.v15)],
    dependencies: [.package(path: "../timeline-gateway", traits: [])],
    targets: [
        .executableTarget(
            name: "ferry",
            dependencies: [
                .product(name: "TimelineRuntime", package: "timeline-gateway")
            ])
    ]
)
