// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Nigh",
    products: [
        .library(name: "Nigh", targets: ["Nigh"]),
        .library(name: "NighCore", targets: ["NighCore"]),
        .library(name: "NighTestKit", targets: ["NighTestKit"]),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", path: "Sources/Transports/COpenSSL"),
        .target(name: "NighCore", dependencies: ["COpenSSL"], path: "Sources/Core"),
        .target(name: "NighMemory", dependencies: ["NighCore"], path: "Sources/Transports/Memory"),
        .target(name: "Nigh", dependencies: ["NighCore", "NighMemory"], path: "Sources/Nigh"),
        .target(name: "NighTestKit", dependencies: ["NighCore", "NighMemory"], path: "Sources/TestKit"),
        .executableTarget(name: "greet", dependencies: ["Nigh"], path: "Sources/Tools/greet"),
        .executableTarget(name: "soak", dependencies: ["NighTestKit"], path: "Sources/Tools/soak"),
        .testTarget(
            name: "CoreTests", dependencies: ["NighCore", "NighMemory", "NighTestKit"], path: "Tests/Core"),
        .testTarget(
            name: "MemoryTests", dependencies: ["NighCore", "NighMemory", "NighTestKit"], path: "Tests/Memory"
        ),
        .testTarget(
            name: "TestKitTests", dependencies: ["NighCore", "NighMemory", "NighTestKit"],
            path: "Tests/TestKit"),
    ],
    swiftLanguageModes: [.v6]
)
