// swift-tools-version: 6.2
import PackageDescription

// A program that uses Nigh with all of its traits. `TraitsTests` puts the imitations in Stubs where the addresses of
// the three packages lead, so that everything else is as in a program with the real ones.
let package = Package(
    name: "Traits",
    dependencies: [
        .package(
            name: "Nigh", path: "../../..",
            traits: ["LoggingSupport", "MetricsSupport", "ServiceLifecycleSupport"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .executableTarget(
            name: "Traits",
            dependencies: [
                .product(name: "Nigh", package: "Nigh"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
