// swift-tools-version: 6.2
import PackageDescription

// Modules that connect Nigh with Foundation. They are a package of their own, because Foundation consists of 54 MB of
// libraries. A program that does not need it should not load them. For the same reason nobody gets modules with names
// of Apple's without asking for them.

// The modules with Apple's names are in Swift 5 mode, where a data race that Swift 6 mode refuses is a warning. If a
// module in Swift 6 mode has a class that is not Sendable, the compiler warns even programs with `@preconcurrency
// import`. With Apple's own frameworks it does not.
let appleSettings: [SwiftSetting] = [.swiftLanguageMode(.v5), .enableUpcomingFeature("StrictConcurrency")]

let package = Package(
    name: "NighCompatibility",
    products: [
        .library(name: "GameKit", targets: ["GameKit"]),
        .library(name: "MultipeerConnectivity", targets: ["MultipeerConnectivity"]),
        .library(name: "NighFoundation", targets: ["NighFoundation"]),
    ],
    dependencies: [.package(name: "Nigh", path: "..")],
    targets: [
        // Code that the other modules share.
        .target(name: "NighCompatibility", dependencies: [.product(name: "NighShared", package: "Nigh")]),
        .target(
            name: "GameKit",
            dependencies: ["NighCompatibility", .product(name: "NighShared", package: "Nigh")],
            swiftSettings: appleSettings
        ),
        .testTarget(name: "GameKitTests", dependencies: ["GameKit"], path: "Tests/GameKit"),
        .target(
            name: "NighFoundation",
            dependencies: ["NighCompatibility", .product(name: "NighShared", package: "Nigh")]),
        .testTarget(
            name: "NighFoundationTests", dependencies: ["NighFoundation"], path: "Tests/NighFoundation"),
        // Only the names of the submodules, which Swift has none of.
        .target(name: "CMultipeerConnectivity"),
        .target(
            name: "MultipeerConnectivity",
            dependencies: [
                "CMultipeerConnectivity", "NighCompatibility", .product(name: "NighShared", package: "Nigh"),
            ],
            swiftSettings: appleSettings),
        .testTarget(
            name: "MultipeerConnectivityTests", dependencies: ["MultipeerConnectivity"],
            path: "Tests/MultipeerConnectivity"),
    ],
    swiftLanguageModes: [.v6]
)
