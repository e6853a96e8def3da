// swift-tools-version: 6.2
import PackageDescription

// The programs that `make bench` and `make bench-slow-reader` measure as Nigh. They use only what any program gets, so
// they are a package of their own, and `swift build` of Nigh does not build them. The driver of `make bench` and the
// crowd share libraries with Nigh's own programs, and are in its package, as is the program for a trial of the lab.

let package = Package(
    name: "NighBenchmarks",
    dependencies: [.package(name: "Nigh", path: "..")],
    targets: [
        .target(name: "CBenchmark", path: "Support"),
        .executableTarget(
            name: "bench-session",
            dependencies: [
                "CBenchmark", .product(name: "Nigh", package: "Nigh"),
                .product(name: "NighActors", package: "Nigh"), .product(name: "NighLoop", package: "Nigh"),
            ],
            path: "Session"),
        .executableTarget(
            name: "bench-slow-reader", dependencies: [.product(name: "Nigh", package: "Nigh")],
            path: "SlowReader/Nigh"),
    ],
    swiftLanguageModes: [.v6]
)
