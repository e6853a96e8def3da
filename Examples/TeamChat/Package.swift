// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "TeamChat",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "TeamChat", dependencies: [.product(name: "Nigh", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
