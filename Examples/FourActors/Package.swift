// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "FourActors",
    products: [.executable(name: "FourActors", targets: ["FourActorsProgram"])],
    dependencies: [.package(name: "Nigh", path: "../..")],
    targets: [
        .target(
            name: "FourActors",
            dependencies: [
                .product(name: "Nigh", package: "Nigh"), .product(name: "NighActors", package: "Nigh"),
            ]),
        .executableTarget(name: "FourActorsProgram", dependencies: ["FourActors"]),
        .testTarget(
            name: "FourActorsTests",
            dependencies: [
                "FourActors", "FourActorsProgram", .product(name: "NighTestKit", package: "Nigh"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
