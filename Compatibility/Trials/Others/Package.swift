// swift-tools-version: 6.2
import PackageDescription

// Programs by others, which `run` fetches into Fetched/, with shims for what is neither Foundation nor
// MultipeerConnectivity.
let multipeer = Target.Dependency.product(name: "MultipeerConnectivity", package: "NighCompatibility")
let package = Package(
    name: "Others",
    dependencies: [.package(name: "NighCompatibility", path: "../..")],
    targets: [
        .target(name: "UIKit", path: "Shims/UIKit"),
        .target(name: "COs", path: "Shims/COs"),
        .target(name: "os", dependencies: ["COs"], path: "Shims/os"),
        .target(
            name: "CommonCrypto", path: "Shims/CommonCrypto", linkerSettings: [.linkedLibrary("crypto")]),
        .target(
            name: "MultipeerKit", dependencies: [multipeer, "UIKit", "os", "CommonCrypto"],
            path: "Fetched/MultipeerKit/Sources/MultipeerKit"),
        .executableTarget(
            name: "MultipeerKitRunner", dependencies: ["MultipeerKit", multipeer],
            path: "Runners/MultipeerKitRunner"),
        .target(
            name: "MultiPeer", dependencies: [multipeer, "UIKit"], path: "Fetched/MultiPeer/Sources"),
        .executableTarget(
            name: "MultiPeerRunner", dependencies: ["MultiPeer"], path: "Runners/MultiPeerRunner"),
        .target(
            name: "PeerKit", dependencies: [multipeer], path: "Fetched/PeerKit/PeerKit",
            exclude: ["Info.plist"]),
        .executableTarget(
            name: "PeerKitRunner", dependencies: ["PeerKit", multipeer], path: "Runners/PeerKitRunner"),
    ],
    swiftLanguageModes: [.v5]
)
