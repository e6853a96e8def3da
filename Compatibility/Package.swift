// swift-tools-version: 6.2
import PackageDescription

// What connects Nigh with Foundation. It is a package of its own, because Foundation consists of 54 MB of libraries. A
// program that does not need it should not load them. For the same reason nobody gets modules with names of Apple's
// without asking for them.

// The modules with Apple's names are in Swift 5 mode, where what Swift 6 mode refuses about data races is a warning. Of
// a class of a module in Swift 6 mode that is not Sendable, the compiler also warns programs that have `@preconcurrency
// import` to be spared that. Apple's own frameworks spare them.
let modeOfApples: [SwiftSetting] = [.swiftLanguageMode(.v5), .enableUpcomingFeature("StrictConcurrency")]

let package = Package(
    name: "NighCompatibility",
    products: [
        .library(name: "GameKit", targets: ["GameKit"]),
        .library(name: "MultipeerConnectivity", targets: ["MultipeerConnectivity"]),
        .library(name: "NighFoundation", targets: ["NighFoundation"]),
    ],
    dependencies: [.package(name: "Nigh", path: "..")],
    targets: [
        // What the other modules have in common.
        .target(name: "NighCompatibility", dependencies: [.product(name: "NighShared", package: "Nigh")]),
        .target(
            name: "GameKit",
            dependencies: ["NighCompatibility", .product(name: "NighShared", package: "Nigh")],
            swiftSettings: modeOfApples
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
            swiftSettings: modeOfApples),
        .testTarget(
            name: "MultipeerConnectivityTests", dependencies: ["MultipeerConnectivity"],
            path: "Tests/MultipeerConnectivity"),
    ],
    swiftLanguageModes: [.v6]
)
