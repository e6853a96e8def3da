// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "HostAndJoin",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "HostAndJoin", dependencies: [.product(name: "Nigh", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
