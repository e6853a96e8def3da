// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "DropFolder",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "DropFolder", dependencies: [.product(name: "NighShared", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
