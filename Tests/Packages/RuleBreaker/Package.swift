// swift-tools-version: 6.2
import PackageDescription

// A plugin that breaks one rule of the transport contract, and one that contains its own copy of Nigh. The first has
// more sources, which `BuiltPackages.assemble` puts there: the example's transport, and the `RuleBreaker` of CoreTests.
let package = Package(
    name: "RuleBreaker",
    products: [
        .library(name: "RuleBreaker", type: .dynamic, targets: ["RuleBreaker"]),
        .library(name: "OwnNigh", type: .dynamic, targets: ["OwnNigh"]),
    ],
    dependencies: [.package(name: "Nigh", path: "../../..")],
    targets: [
        .target(
            name: "RuleBreaker", dependencies: [.product(name: "NighShared", package: "Nigh")]),
        .target(name: "OwnNigh", dependencies: [.product(name: "NighLoop", package: "Nigh")]),
        .executableTarget(name: "KeepsNigh", dependencies: [.product(name: "NighLoop", package: "Nigh")]),
    ],
    swiftLanguageModes: [.v6]
)
