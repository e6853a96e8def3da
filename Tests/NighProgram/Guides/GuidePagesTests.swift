import ChildPrograms
import Foundation
import Testing

@Suite("The pages in docs/guides", .callsPrograms) struct GuidePagesTests {
    /// The package in which all their examples are compiled, with nothing but `import Nigh`.
    private static let folder = ".build/assembled/Guides"

    private static let manifest = """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "Guides",
            dependencies: [.package(name: "Nigh", path: "../../..")],
            targets: [.target(name: "Guides", dependencies: [.product(name: "NighShared", package: "Nigh")])],
            swiftLanguageModes: [.v6]
        )

        """

    @Test("show examples that all compile")
    func compile() throws {
        let sources = "\(BuiltPackages.root)/\(Self.folder)/Sources/Guides"
        try FileManager.default.createDirectory(atPath: sources, withIntermediateDirectories: true)
        try Self.manifest.write(
            toFile: "\(BuiltPackages.root)/\(Self.folder)/Package.swift", atomically: true, encoding: .utf8)
        let guides = "\(BuiltPackages.root)/docs/guides"
        var text = "import Nigh\n"
        var count = 0
        let pages = try FileManager.default.contentsOfDirectory(atPath: guides).filter { $0.hasSuffix(".md") }
        for page in pages.sorted() {
            let content = try String(contentsOfFile: "\(guides)/\(page)", encoding: .utf8)
            for fence in content.matches(of: #/(?m)^```swift\nimport Nigh\n\n((?s).*?)^```$/#) {
                count += 1
                // Each in a type of its own, since several have functions of one name.
                text += "\n// \(page)\nenum Example\(count) {\n\(fence.1)}\n"
            }
        }
        #expect(count >= 12)
        try text.write(toFile: "\(sources)/Guides.swift", atomically: true, encoding: .utf8)
        _ = try BuiltPackages.build(Self.folder)
    }
}
