// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Camera",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "Camera", dependencies: [.product(name: "Nigh", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
