// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Whiteboard",
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .target(name: "Whiteboard", dependencies: [.product(name: "Nigh", package: "Nigh")]),
        .executableTarget(
            name: "Sketch", dependencies: ["Whiteboard", .product(name: "Nigh", package: "Nigh")]),
        .testTarget(
            name: "WhiteboardTests",
            dependencies: [
                "Sketch", "Whiteboard", .product(name: "Nigh", package: "Nigh"),
                .product(name: "NighTestKit", package: "Nigh"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
