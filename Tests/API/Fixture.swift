import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// A folder that stands for the repository, which a test fills for the programs in `.ci`.
struct RepositoryFolder {
    private let folder = TemporaryFolder()
    var path: String { folder.path }

    func write(_ text: String, to path: String) throws {
        let file = URL(filePath: "\(folder.path)/\(path)")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
    }

    func read(_ path: String) throws -> String {
        try String(contentsOfFile: "\(folder.path)/\(path)", encoding: .utf8)
    }

    /// Runs a program of `.ci`.
    static func run(_ program: String, _ arguments: [String]) throws -> (
        status: Int32, lines: [String], errors: [String]
    ) {
        let child = try Child("\(BuiltPackages.root)/.ci/\(program)", arguments)
        let (status, errors) = try child.end()
        return (status, child.lines, errors)
    }
}

/// A small Swift module that a test writes and compiles, and the output of `.ci/api` for it.
struct Fixture {
    /// The module's files before any change, each with its content.
    static let files = [
        "Figures.swift": """
        /// A carrier.
        public protocol Wire {
            func open()
            func close()
        }

        public struct Point: Sendable {
            public var x: Int
            private var weight: Int32
            private var colour: Int32
            let depth: Depth

            public init(x: Int) {
                self.x = x
                weight = 1
                colour = 2
                depth = Depth()
            }

            public func length() -> Int { x * Int(weight) }

            @inlinable public func twice() -> Int {
                // Why twice.
                x * 2
            }
        }

        struct Depth {
            var metres: Int32 = 0
            var steps: UInt32 = 0
        }

        public enum Figure {
            case circle
            case square(Point)
        }

        public func join(_ left: Int, by right: Int = 3) throws(Failure) {}
        """,
        "Nodes.swift": """
        public struct Failure: Error {}

        open class Node {
            public init() {}
            private func first() {}
            func second() {}
            private final func aside() {}
        }

        public final class Leaf<Content: Hashable> {
            private let content: Content
            private lazy var count = 0
            public init(_ content: Content) { self.content = content }
            public func grow() async {}
        }
        """,
    ]

    let folder = RepositoryFolder()

    /// Compiles the module again, from these files only.
    func compile(_ files: [String: String]) throws {
        try? FileManager.default.removeItem(atPath: "\(folder.path)/Sources")
        for (name, text) in files { try folder.write(text, to: "Sources/\(name)") }
        try folder.write("", to: "built/Modules/none")
        try Child.run(
            "/usr/bin/env",
            [
                "swiftc", "-wmo", "-emit-module", "-parse-as-library", "-swift-version", "6", "-module-name",
                "Figures", "-emit-module-path", "\(folder.path)/built/Modules/Figures.swiftmodule",
            ] + files.keys.sorted().map { "\(folder.path)/Sources/\($0)" })
    }

    /// Runs `.ci/api` on the module.
    func api(_ command: String) throws -> (status: Int32, lines: [String], errors: [String]) {
        try RepositoryFolder.run(
            "api", [command, "--root", folder.path, "--built", "\(folder.path)/built/Modules", "Figures"])
    }

    /// The dump of the module that these files form.
    static func dump(_ files: [String: String]) throws -> [String] {
        let fixture = Fixture()
        try fixture.compile(files)
        let (status, lines, errors) = try fixture.api("print")
        try #require(status == 0 && !lines.isEmpty, "\(errors)")
        return lines
    }

    /// The dump of the unchanged module.
    static let original = Result { try dump(files) }

    /// The module's files with `new` in place of `old`.
    static func files(with new: String, for old: String) throws -> [String: String] {
        let changed = files.mapValues { $0.replacing(old, with: new) }
        try #require(changed != files, "\(old)")
        return changed
    }
}
