// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "PeerManager",
    dependencies: [.package(name: "NighCompatibility", path: "../../Compatibility")],
    targets: [
        .executableTarget(
            name: "PeerManager",
            dependencies: [.product(name: "MultipeerConnectivity", package: "NighCompatibility")])
    ],
    swiftLanguageModes: [.v5]
)
