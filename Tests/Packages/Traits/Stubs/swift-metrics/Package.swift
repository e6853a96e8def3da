// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-metrics",
    products: [.library(name: "CoreMetrics", targets: ["CoreMetrics"])],
    targets: [.target(name: "CoreMetrics")],
    swiftLanguageModes: [.v6]
)
