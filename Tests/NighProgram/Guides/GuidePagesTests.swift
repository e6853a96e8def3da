import ChildPrograms
import Foundation
import Testing

@Suite("The pages in docs/guides", .callsPrograms) struct GuidePagesTests {
    /// The package in which all their examples are compiled, those that begin with the same import in a target of their
    /// own.
    private static let folder = ".build/assembled/Guides"
    /// What examples import, with the products that have it, and the fewest examples of each.
    private static let modules = [
        (name: "Nigh", product: "NighShared", package: "Nigh", least: 12),
        (name: "GameKit", product: "GameKit", package: compatibility, least: 3),
        (name: "MultipeerConnectivity", product: "MultipeerConnectivity", package: compatibility, least: 1),
    ]
    private static let compatibility = "NighCompatibility"

    private static let manifest = """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "Guides",
            dependencies: [
                .package(name: "Nigh", path: "../../.."),
                .package(name: "\(compatibility)", path: "../../../Compatibility"),
            ],
            targets: [
                \(modules.map {
                    """
                    .target(
                        name: "Guides\($0.name)",
                        dependencies: [.product(name: "\($0.product)", package: "\($0.package)")])
                    """
                }.joined(separator: ",\n"))
            ],
            swiftLanguageModes: [.v6]
        )

        """

    @Test("show examples that all compile")
    func compile() throws {
        let folder = "\(BuiltPackages.root)/\(Self.folder)"
        let guides = "\(BuiltPackages.root)/docs/guides"
        let pages = try FileManager.default.contentsOfDirectory(atPath: guides).filter { $0.hasSuffix(".md") }
        for module in Self.modules {
            let begin = try Regex(
                "(?m)^```swift\nimport \(module.name)\n\n((?s).*?)^```$", as: (Substring, Substring).self)
            var text = "import \(module.name)\n"
            var count = 0
            for page in pages.sorted() {
                let content = try String(contentsOfFile: "\(guides)/\(page)", encoding: .utf8)
                for fence in content.matches(of: begin) {
                    count += 1
                    // Each in a type of its own, since several have functions of one name.
                    text += "\n// \(page)\nenum Example\(count) {\n\(fence.1)}\n"
                }
            }
            #expect(count >= module.least)
            let sources = "\(folder)/Sources/Guides\(module.name)"
            try FileManager.default.createDirectory(atPath: sources, withIntermediateDirectories: true)
            try text.write(toFile: "\(sources)/Guides.swift", atomically: true, encoding: .utf8)
        }
        try Self.manifest.write(toFile: "\(folder)/Package.swift", atomically: true, encoding: .utf8)
        _ = try BuiltPackages.build(Self.folder)
    }
}
