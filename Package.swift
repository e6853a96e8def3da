// swift-tools-version: 6.2
import Glibc
import PackageDescription

/// Makes a program of this package, which has Nigh built into it, lend it to plugins: it exports what plugins may use,
/// and stands for the library that plugins are linked to, by that library's name. Only lld gives a program such a name.
let presentsNigh: [LinkerSetting] = [
    .unsafeFlags([
        "-use-ld=lld", "-Xlinker", "-soname=libNighShared.so",
        "-Xlinker", "--dynamic-list=\(Context.packageDirectory)/Sources/Tools/plugin-symbols.list",
    ])
]

let package = Package(
    name: "Nigh",
    products: [
        // For programs. With what Nigh exports, or a target that uses it would not be built anew when one of those
        // changes.
        .library(
            name: "Nigh",
            targets: [
                "Nigh", "NighBluetooth", "NighCalls", "NighChannels", "NighCore", "NighFiles", "NighGroups",
                "NighIntroductions", "NighLoop", "NighMemory", "NighNATS", "NighPlugins", "NighRelays",
                "NighSerial", "NighSystem", "NighTCP", "NighUV", "NighWeb",
            ]),
        // Distributed actors, for programs.
        .library(name: "NighActors", targets: ["NighActors"]),
        // The low tier alone: without Foundation, which `Nigh` needs for its messages.
        .library(
            name: "NighLoop",
            targets: [
                "NighBluetooth", "NighCore", "NighLoop", "NighMemory", "NighNATS", "NighPlugins",
                "NighRecord", "NighSerial", "NighSystem", "NighTCP", "NighUV", "NighWeb",
            ]),
        // For a transport that is compiled into its program.
        .library(name: "NighTransport", targets: ["NighCore", "NighPlugins", "NighTransport", "NighUV"]),
        .library(name: "NighTestKit", targets: ["NighTestKit"]),
        // All of it as one shared library: for programs that load plugins, for plugins, and for the tests of both,
        // since host and plugin must share one copy. Programs that link it, and `presentsNigh` below, are what a plugin
        // finds it in.
        .library(
            name: "NighShared", type: .dynamic,
            targets: [
                "Nigh", "NighActors", "NighBluetooth", "NighCalls", "NighChannels", "NighCore", "NighFiles",
                "NighGroups", "NighIntroductions", "NighLoop", "NighMemory", "NighNATS", "NighPlugins",
                "NighRecord", "NighRelays", "NighSerial", "NighSystem", "NighTCP", "NighTestKit",
                "NighTransport",
                "NighUV", "NighWeb",
            ]),
    ],
    // Off by default. Without them none of the packages below is fetched, and nothing is resolved.
    traits: [
        .trait(name: "LoggingSupport", description: "settings.log(to:) writes to a Logger of swift-log"),
        .trait(
            name: "MetricsSupport",
            description: "session.reportMetrics() passes on all counts to the backend of swift-metrics"),
        .trait(
            name: "ServiceLifecycleSupport",
            description: "SessionService is a session as a Service of swift-service-lifecycle"),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", path: "Sources/Transports/COpenSSL"),
        .target(name: "NighCore", dependencies: ["COpenSSL"], path: "Sources/Core"),
        .target(name: "NighSystem", dependencies: ["NighCore"], path: "Sources/System"),
        .target(name: "NighRecord", dependencies: ["NighCore", "NighSystem"], path: "Sources/Record"),
        .systemLibrary(name: "CMalloc", path: "Sources/Files/CMalloc"),
        .target(
            name: "NighFiles", dependencies: ["CMalloc", "NighCore", "NighSystem"], path: "Sources/Files",
            exclude: ["CMalloc"]),
        .target(name: "NighCalls", dependencies: ["NighCore"], path: "Sources/Calls"),
        .target(name: "NighChannels", dependencies: ["NighCore"], path: "Sources/Channels"),
        .target(name: "NighCodes", dependencies: ["COpenSSL", "NighCore"], path: "Sources/Codes"),
        .target(name: "NighGroups", dependencies: ["NighCore"], path: "Sources/Groups"),
        .target(name: "NighRelays", dependencies: ["NighCore"], path: "Sources/Relays"),
        .target(
            name: "NighIntroductions", dependencies: ["NighCore", "NighRelays"],
            path: "Sources/Introductions"),
        .target(
            name: "NighMemory", dependencies: ["NighCore", "NighSystem"], path: "Sources/Transports/Memory"),
        .systemLibrary(name: "CUV", path: "Sources/Transports/CUV"),
        .target(
            name: "NighUV", dependencies: ["CUV", "NighCore", "NighSystem"], path: "Sources/Transports/UV"),
        .target(
            name: "NighForwarding", dependencies: ["CUV", "NighCore", "NighUV"], path: "Sources/Forwarding"),
        .target(
            name: "NighTCP", dependencies: ["CUV", "NighCore", "NighMDNS", "NighSystem", "NighUV"],
            path: "Sources/Transports/TCP"),
        .target(
            name: "NighSerial", dependencies: ["NighCore", "NighUV"], path: "Sources/Transports/Serial"),
        .systemLibrary(name: "CBluetooth", path: "Sources/Transports/CBluetooth"),
        .systemLibrary(name: "CSystemBus", path: "Sources/Transports/CSystemBus"),
        .target(
            name: "NighBluetooth",
            dependencies: ["CBluetooth", "COpenSSL", "CSystemBus", "NighCore", "NighUV"],
            path: "Sources/Transports/Bluetooth"),
        .target(
            name: "NighLoop",
            dependencies: [
                "NighBluetooth", "NighCore", "NighMemory", "NighNATS", "NighPlugins", "NighSerial",
                "NighSystem", "NighTCP", "NighUV", "NighWeb",
            ],
            path: "Sources/LowTier"),
        .target(
            name: "Nigh",
            dependencies: [
                "NighCalls", "NighChannels", "NighCore", "NighFiles", "NighGroups", "NighIntroductions",
                "NighLoop", "NighRelays", "NighSystem", "NighWeb",
                .product(
                    name: "Logging", package: "swift-log", condition: .when(traits: ["LoggingSupport"])),
                .product(
                    name: "CoreMetrics", package: "swift-metrics",
                    condition: .when(traits: ["MetricsSupport"])),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycleSupport"])),
            ],
            path: "Sources/Nigh"),
        .target(
            name: "NighActors", dependencies: ["Nigh", "NighCalls", "NighCore"], path: "Sources/Actors"),
        .target(
            name: "NighTransport", dependencies: ["NighCore", "NighPlugins", "NighUV"],
            path: "Sources/TransportKit"),
        .target(name: "CNighPlugin", path: "Sources/Plugins/Entry"),
        .target(
            name: "NighPlugins", dependencies: ["CNighPlugin", "NighCore", "NighSystem"],
            path: "Sources/Plugins",
            exclude: ["Entry"]),
        .target(name: "CAvahi", path: "Sources/Transports/CAvahi"),
        .target(
            name: "NighMDNS", dependencies: ["CAvahi", "NighCore", "NighSystem", "NighUV"],
            path: "Sources/Transports/MDNS"),
        .target(
            name: "CWeb", path: "Sources/Transports/CWeb", linkerSettings: [.linkedLibrary("z")]),
        .target(
            name: "NighWeb",
            dependencies: ["COpenSSL", "CUV", "CWeb", "NighCore", "NighMDNS", "NighTCP", "NighUV"],
            path: "Sources/Transports/Web", exclude: ["Script"]),
        .target(name: "NighBroker", dependencies: ["NighCore"], path: "Sources/Transports/Broker"),
        .target(name: "CNATS", path: "Sources/Transports/CNATS"),
        .target(
            name: "NighNATS", dependencies: ["CNATS", "COpenSSL", "NighBroker", "NighCore", "NighSystem"],
            path: "Sources/Transports/NATS"),
        .target(
            name: "NighTestKit",
            dependencies: ["COpenSSL", "NighCore", "NighFiles", "NighMemory", "NighSystem"],
            path: "Sources/TestKit"),
        .target(
            name: "Worlds",
            dependencies: [
                "NighCalls", "NighChannels", "NighCore", "NighFiles", "NighGroups", "NighIntroductions",
                "NighMemory", "NighRelays", "NighTestKit",
            ],
            path: "Tests/Worlds"),
        .target(
            name: "FourInARow", dependencies: ["NighCore"], path: "Sources/FourInARow", packageAccess: false),
        .target(name: "Arguments", path: "Sources/Tools/Arguments"),
        .target(
            name: "SessionArguments",
            dependencies: ["Arguments", "NighCore", "NighLoop", "NighMemory", "NighPlugins", "NighRecord"],
            path: "Sources/Tools/SessionArguments"),
        .target(
            name: "ProgramSupport", dependencies: ["Arguments", "NighCore", "NighSystem"],
            path: "Sources/Tools/ProgramSupport"),
        .target(name: "Measuring", path: "Sources/Tools/Measuring"),
        .systemLibrary(name: "CQRCode", path: "Sources/Tools/CQRCode"),
        .target(name: "CPages", path: "Sources/Tools/Pages", exclude: ["site"]),
        .target(
            name: "Guests",
            dependencies: ["CPages", "CQRCode", "NighCore", "NighLoop", "NighSystem", "NighWeb"],
            path: "Sources/Tools/Guests"),
        .executableTarget(
            name: "fourinarow",
            dependencies: [
                "Arguments", "FourInARow", "Guests", "NighCore", "NighLoop", "NighMemory", "NighPlugins",
                "NighRecord", "NighSystem", "NighWeb",
                "ProgramSupport",
                "SessionArguments",
                "Terminal",
            ],
            path: "Sources/Tools/fourinarow", packageAccess: false, linkerSettings: presentsNigh),
        .target(name: "CTerminal", path: "Sources/Tools/CTerminal"),
        .target(
            name: "Terminal", dependencies: ["CTerminal", "NighCore", "NighSystem"],
            path: "Sources/Tools/Terminal"),
        .target(name: "JSONText", path: "Sources/Tools/JSONText"),
        .executableTarget(
            name: "nigh",
            dependencies: [
                "Arguments", "Guests", "JSONText", "Measuring", "NighCalls", "NighCodes", "NighCore",
                "NighFiles", "NighForwarding",
                "NighGroups", "NighIntroductions", "NighLoop", "NighMemory", "NighPlugins", "NighRecord",
                "NighRelays", "NighSystem", "NighTCP", "NighTestKit", "NighWeb",
                "ProgramSupport", "SessionArguments", "Terminal",
            ],
            path: "Sources/Tools/nigh", linkerSettings: presentsNigh),
        .target(name: "CAllocationCounter", path: "Sources/Tools/CAllocationCounter"),
        .executableTarget(
            name: "nigh-bench",
            dependencies: [
                "Arguments", "CAllocationCounter", "Measuring", "Nigh", "NighActors", "NighCore",
                "NighMemory",
                "NighSystem", "NighTCP", "NighTestKit", "NighUV", "ProgramSupport",
            ],
            path: "Sources/Tools/nigh-bench"),
        .target(name: "CBenchmark", path: "Benchmarks/Support"),
        .executableTarget(
            name: "bench-crowd",
            dependencies: ["Arguments", "CBenchmark", "Measuring", "NighLoop", "ProgramSupport"],
            path: "Benchmarks/Crowd", packageAccess: false),
        .executableTarget(
            name: "bench-positions", dependencies: ["Nigh", "NighLoop"], path: "Benchmarks/Positions",
            packageAccess: false),
        .executableTarget(
            name: "bench", dependencies: ["Arguments", "CBenchmark", "Measuring", "ProgramSupport"],
            path: "Benchmarks/Driver"),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "FourInARow", "Nigh", "NighActors", "NighBluetooth", "NighCalls", "NighChannels",
                "NighCodes", "NighCore", "NighFiles", "NighForwarding", "NighGroups", "NighIntroductions",
                "NighMDNS", "NighMemory", "NighRecord", "NighSerial", "NighSystem", "NighTCP", "NighTestKit",
                "NighWeb",
            ],
            path: "Sources/Tools/FuzzTargets"),
        .executableTarget(name: "fuzz", dependencies: ["FuzzTargets"], path: "Sources/Tools/fuzz"),
        .systemLibrary(name: "CHeap", path: "Tests/CHeap"),
        .executableTarget(
            name: "lab",
            dependencies: [
                "CBluetooth", "CHeap", "NighBluetooth", "NighCore", "NighIntroductions", "NighLoop",
                "NighTestKit", "NighUV", "ProgramSupport",
            ],
            path: "Tests/Lab/Program"),
        .executableTarget(
            name: "fourinarow-solver",
            dependencies: ["Arguments", "FourInARow", "Measuring", "NighCore", "ProgramSupport"],
            path: "Sources/Tools/fourinarow-solver"),
        .executableTarget(
            name: "soak",
            dependencies: [
                "Measuring", "NighCore", "NighMDNS", "NighTCP", "NighTestKit", "ProgramSupport", "Worlds",
            ],
            path: "Sources/Tools/soak"),
        .testTarget(
            name: "CoreTests",
            dependencies: [
                "COpenSSL", "NighCalls", "NighChannels", "NighCore", "NighFiles", "NighForwarding",
                "NighGroups", "NighIntroductions", "NighMemory", "NighRelays", "NighSystem", "NighTestKit",
                "Worlds",
            ],
            path: "Tests/Core"),
        .testTarget(
            name: "SystemTests", dependencies: ["NighCore", "NighMemory", "NighSystem", "NighTestKit"],
            path: "Tests/System"),
        .testTarget(
            name: "BrokerTests", dependencies: ["NighBroker", "NighCore", "NighTestKit"], path: "Tests/Broker"
        ),
        .testTarget(
            name: "SerialTests",
            dependencies: ["ChildPrograms", "NighCore", "NighLoop", "NighSerial", "NighTestKit", "NighUV"],
            path: "Tests/Serial"),
        .testTarget(
            name: "BluetoothTests",
            dependencies: ["CSystemBus", "NighBluetooth", "NighCore", "NighLoop", "NighTestKit", "NighUV"],
            path: "Tests/Bluetooth"),
        .testTarget(
            name: "RecordTests",
            dependencies: ["NighCore", "NighMemory", "NighRecord", "NighSystem", "NighTestKit"],
            path: "Tests/Record"),
        .testTarget(
            name: "FilesTests",
            dependencies: ["NighCore", "NighFiles", "NighMemory", "NighSystem", "NighTestKit"],
            path: "Tests/Files"),
        .testTarget(
            name: "CallsTests", dependencies: ["NighCalls", "NighCore", "NighMemory", "NighTestKit"],
            path: "Tests/Calls"),
        .testTarget(
            name: "CodesTests", dependencies: ["NighCodes", "NighCore", "NighTestKit"], path: "Tests/Codes"),
        .testTarget(
            name: "ActorsTests",
            dependencies: ["Nigh", "NighActors", "NighCalls", "NighCore", "NighTestKit"],
            path: "Tests/Actors"),
        .testTarget(
            name: "ChannelsTests", dependencies: ["NighChannels", "NighCore", "NighMemory", "NighTestKit"],
            path: "Tests/Channels"),
        .testTarget(
            name: "GroupsTests", dependencies: ["NighCore", "NighGroups", "NighMemory", "NighTestKit"],
            path: "Tests/Groups"),
        .testTarget(
            name: "IntroductionsTests",
            dependencies: ["NighCore", "NighIntroductions", "NighMemory", "NighRelays", "NighTestKit"],
            path: "Tests/Introductions"),
        .testTarget(
            name: "ForwardingTests",
            dependencies: ["NighCore", "NighForwarding", "NighMemory", "NighTestKit", "NighUV"],
            path: "Tests/Forwarding"),
        .testTarget(
            name: "RelaysTests", dependencies: ["NighCore", "NighMemory", "NighRelays", "NighTestKit"],
            path: "Tests/Relays"),
        .testTarget(
            name: "ArgumentsTests", dependencies: ["Arguments", "ChildPrograms", "NighCore", "NighTestKit"],
            path: "Tests/Arguments", exclude: ["Snapshots", "notations.txt", "usage-errors.txt"]),
        .testTarget(
            name: "MeasuringTests", dependencies: ["Arguments", "Measuring", "bench"], path: "Tests/Measuring"
        ),
        .testTarget(
            name: "FourInARowTests",
            dependencies: [
                "Arguments", "FourInARow", "NighCore", "NighMemory", "NighTestKit", "fourinarow-solver",
            ],
            path: "Tests/FourInARow"),
        .target(
            name: "ChildPrograms", dependencies: ["NighCore", "NighTestKit"], path: "Tests/ChildPrograms"),
        .target(
            name: "Browsers", dependencies: ["ChildPrograms"], path: "Tests/Browsers", exclude: ["driver"]),
        .testTarget(
            name: "GuestsTests",
            dependencies: [
                "Browsers", "ChildPrograms", "Nigh", "NighCore", "NighMemory", "NighTestKit", "fourinarow",
                "nigh",
            ],
            path: "Tests/Guests", exclude: ["Foreign", "Page", "Script"]),
        .testTarget(
            name: "FourInARowProgramTests",
            dependencies: [
                "ChildPrograms", "FourInARow", "Guests", "NighCore", "NighLoop", "NighMemory", "NighRecord",
                "NighTestKit", "ProgramSupport", "Terminal", "fourinarow",
            ],
            path: "Tests/FourInARowProgram", exclude: ["Snapshots"]),
        .executableTarget(
            name: "TerminalCrasher", dependencies: ["NighCore", "Terminal"], path: "Tests/TerminalCrasher"),
        .testTarget(
            name: "TerminalTests",
            dependencies: ["ChildPrograms", "NighCore", "Terminal", "TerminalCrasher"],
            path: "Tests/Terminal"),
        .testTarget(
            name: "APITests", dependencies: ["ChildPrograms", "NighTestKit"], path: "Tests/API",
            exclude: ["Snapshots"]),
        .testTarget(
            name: "FuzzTests", dependencies: ["FuzzTargets"], path: "Tests/Fuzz", exclude: ["Corpus"]),
        .testTarget(
            name: "NighProgramTests",
            dependencies: [
                "Arguments", "ChildPrograms", "JSONText", "Nigh", "NighActors", "NighCalls", "NighCore",
                "NighFiles", "NighIntroductions", "NighLoop", "NighMemory", "NighRecord", "NighSystem",
                "NighTestKit",
                "ProgramSupport", "SessionArguments", "Terminal", "nigh",
            ],
            path: "Tests/NighProgram",
            exclude: [
                "Common/check-json", "Help/Snapshots", "Trace/Snapshots", "Site/look.html",
                "Site/search.html", "Site/searches.js",
                "Upgrade/0.2.0",
            ]),
        .testTarget(
            name: "LabTests", dependencies: ["ChildPrograms", "NighTestKit", "fourinarow", "lab", "nigh"],
            path: "Tests/Lab/Scenarios"),
        .testTarget(
            name: "NighTests", dependencies: ["Nigh", "NighCore", "NighLoop", "NighTestKit"],
            path: "Tests/Nigh"),
        .testTarget(
            name: "MemoryTests", dependencies: ["NighCore", "NighMemory", "NighTestKit"], path: "Tests/Memory"
        ),
        .testTarget(
            name: "LoopTests",
            dependencies: ["NighCore", "NighMemory", "NighSystem", "NighTestKit", "NighUV"],
            path: "Tests/Loops"),
        .testTarget(
            name: "TCPTests",
            dependencies: [
                "CHeap", "COpenSSL", "NighCore", "NighMDNS", "NighMemory", "NighSystem", "NighTCP",
                "NighTestKit", "NighUV",
            ],
            path: "Tests/TCP"),
        .testTarget(
            name: "MDNSTests", dependencies: ["CAvahi", "NighCore", "NighMDNS", "NighTestKit", "NighUV"],
            path: "Tests/MDNS"),
        .target(
            name: "NATSServers", dependencies: ["ChildPrograms", "NighTestKit"], path: "Tests/NATSServers",
            exclude: ["current"]),
        .testTarget(
            name: "NATSTests",
            dependencies: [
                "CNATS", "NATSServers", "NighBroker", "NighCore", "NighMemory", "NighNATS", "NighSystem",
                "NighTestKit",
                "NighUV",
            ],
            path: "Tests/NATS"),
        .testTarget(
            name: "WebTests",
            dependencies: [
                "COpenSSL", "NighCore", "NighMemory", "NighTCP", "NighTestKit", "NighUV", "NighWeb",
            ],
            path: "Tests/Web"),
        .testTarget(
            name: "TestKitTests",
            dependencies: [
                "NighCalls", "NighChannels", "NighCore", "NighLoop", "NighMemory", "NighTestKit", "Worlds",
            ],
            path: "Tests/TestKit"),
    ],
    swiftLanguageModes: [.v6]
)

// The Debian package libnigh-dev has this manifest, too, and of the sources only those of the libraries.
if access("\(Context.packageDirectory)/Tests", F_OK) != 0 {
    package.targets.removeAll { access("\(Context.packageDirectory)/\($0.path ?? "")", F_OK) != 0 }
}
