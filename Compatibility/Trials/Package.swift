// swift-tools-version: 6.2
import PackageDescription

// Trials of MultipeerConnectivity and GameKit by hand, which print figures: `swift run -c release Trials`.
let package = Package(
    name: "Trials",
    dependencies: [
        .package(name: "NighCompatibility", path: ".."), .package(name: "Nigh", path: "../.."),
    ],
    targets: [
        .executableTarget(
            name: "Trials",
            dependencies: [
                .product(name: "GameKit", package: "NighCompatibility"),
                .product(name: "MultipeerConnectivity", package: "NighCompatibility"),
                .product(name: "NighShared", package: "Nigh"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
