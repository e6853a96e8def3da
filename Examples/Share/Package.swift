// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Share",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "Share", dependencies: [.product(name: "Nigh", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
