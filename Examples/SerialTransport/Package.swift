// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "SerialTransport",
    products: [.library(name: "SerialTransport", type: .dynamic, targets: ["SerialTransport"])],
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .target(name: "SerialTransport", dependencies: [.product(name: "NighShared", package: "Nigh")]),
        .testTarget(
            name: "SerialTransportTests",
            dependencies: ["SerialTransport", .product(name: "NighShared", package: "Nigh")]),
    ],
    swiftLanguageModes: [.v6]
)
