// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "PeerPicker",
    dependencies: [.package(name: "NighCompatibility", path: "../../Compatibility")],
    targets: [
        .executableTarget(
            name: "PeerPicker", dependencies: [.product(name: "GameKit", package: "NighCompatibility")])
    ],
    swiftLanguageModes: [.v6]
)
