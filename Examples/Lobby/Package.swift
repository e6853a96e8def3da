// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Lobby",
    dependencies: [.package(name: "NighCompatibility", path: "../../Compatibility")],
    targets: [
        .executableTarget(
            name: "Lobby", dependencies: [.product(name: "GameKit", package: "NighCompatibility")])
    ],
    swiftLanguageModes: [.v6]
)
