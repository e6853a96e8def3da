import Foundation

/// Targets of this package: those that some of them need, and the manifest of a package that has only these.
struct PackageTargets {
    struct Target: Decodable {
        let name: String
        let type: String
        let path: String?
        let exclude: [String]
        let dependencies: [Dependency]

        /// A target of this package by its name, or a product of another one, which has no name here.
        struct Dependency: Decodable {
            let name: String?

            private enum Kind: CodingKey { case byName }

            init(from decoder: any Decoder) throws {
                let kinds = try decoder.container(keyedBy: Kind.self)
                var parts = kinds.contains(.byName) ? try kinds.nestedUnkeyedContainer(forKey: .byName) : nil
                name = try parts?.decode(String.self)
            }
        }

        var needed: [String] { dependencies.compactMap(\.name) }
    }

    private struct Description: Decodable {
        let targets: [Target]
    }

    private static let descriptionFile = ".build/mutants/package.json"

    /// The targets that are needed, each one behind those it needs.
    private(set) var targets: [Target] = []

    /// The targets that `roots` need, of the package in this folder.
    init(neededBy roots: [String]) throws {
        try Folder.write([], to: Self.descriptionFile)
        let command = "swift package dump-package > \(Self.descriptionFile)"
        guard try ShellCommand(command, timeLimit: 600).run().end == .exit(0) else {
            throw Folder.Failure(description: "the package in this folder cannot be described")
        }
        let description = Data(try Folder.bytes(of: Self.descriptionFile))
        try self.init(neededBy: roots, of: description)
    }

    /// The targets that `roots` need, of a package that `swift package dump-package` has described.
    init(neededBy roots: [String], of description: Data) throws {
        let all = try JSONDecoder().decode(Description.self, from: description).targets
        try roots.forEach { try add($0, of: all) }
    }

    private mutating func add(_ name: String, of all: [Target]) throws {
        if targets.contains(where: { $0.name == name }) { return }
        guard let target = all.first(where: { $0.name == name }), target.path != nil else {
            throw Folder.Failure(description: "the package has no target \(name) with a path")
        }
        try target.needed.forEach { try add($0, of: all) }
        targets.append(target)
    }

    /// The folders of the targets.
    var folders: [String] { targets.compactMap(\.path) }

    /// The manifest of a package `name` that has these targets.
    func manifest(named name: String) throws -> String {
        let entries = try targets.map { target in
            guard let kind = Self.kinds[target.type] else {
                throw Folder.Failure(description: "\(target.name) is a target of the kind \(target.type)")
            }
            var entry = "        .\(kind)(name: \"\(target.name)\""
            if !target.needed.isEmpty { entry += ", dependencies: \(target.needed)" }
            entry += ", path: \"\(target.path ?? "")\""
            if !target.exclude.isEmpty { entry += ", exclude: \(target.exclude)" }
            return entry + "),\n"
        }
        return """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
                name: "\(name)",
                targets: [
            \(entries.joined())    ],
                swiftLanguageModes: [.v6]
            )

            """
    }

    private static let kinds = [
        "regular": "target", "executable": "executableTarget", "test": "testTarget",
        "system": "systemLibrary",
    ]
}
