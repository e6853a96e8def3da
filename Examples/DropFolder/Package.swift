// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "DropFolder",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        // The shared library, so that it can load transports from plugins.
        .executableTarget(name: "DropFolder", dependencies: [.product(name: "NighShared", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
