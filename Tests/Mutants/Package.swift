// swift-tools-version: 6.2
import PackageDescription

// A package of its own, because it only changes Nigh's sources and uses nothing of them.
let package = Package(
    name: "NighMutants",
    targets: [
        .executableTarget(name: "mutants", path: "Program"),
        .testTarget(name: "MutantsTests", dependencies: ["mutants"], path: "Rewriting"),
    ],
    swiftLanguageModes: [.v6]
)
