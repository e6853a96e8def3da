// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "PipeChat",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(
            name: "PipeChat", dependencies: [.product(name: "NighShared", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
