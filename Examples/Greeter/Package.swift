// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Greeter",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .executableTarget(name: "Greeter", dependencies: [.product(name: "NighActors", package: "Nigh")])
    ],
    swiftLanguageModes: [.v6]
)
