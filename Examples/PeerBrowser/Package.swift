// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "PeerBrowser",
    dependencies: [.package(name: "NighCompatibility", path: "../../Compatibility")],
    targets: [
        .executableTarget(
            name: "PeerBrowser",
            dependencies: [.product(name: "MultipeerConnectivity", package: "NighCompatibility")])
    ],
    swiftLanguageModes: [.v5]
)
