// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "UnixTransport",
    products: [.library(name: "UnixTransport", type: .dynamic, targets: ["UnixTransport"])],
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .target(name: "UnixTransport", dependencies: [.product(name: "NighShared", package: "Nigh")]),
        .testTarget(
            name: "UnixTransportTests",
            dependencies: ["UnixTransport", .product(name: "NighShared", package: "Nigh")]),
    ],
    swiftLanguageModes: [.v6]
)
