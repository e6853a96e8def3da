// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Doorkeeper",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "Doorkeeper", dependencies: [.product(name: "Nigh", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
