import Synchronization

/// The packages of this repository that stand apart from it, as strangers' do: built against what Nigh is now.
package enum BuiltPackages {
    /// The repository.
    package static let root = "\(#filePath)".split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }

    /// All are built into one place, so that what they share of Nigh is compiled once.
    private static let scratch = "\(root)/.build/packages"
    /// Where several packages are built in one place, the package manager may take the list of Nigh's files from an earlier
    /// build, and not miss those that have come since. So it makes the list anew.
    package static let listsFilesAnew = "--disable-build-manifest-caching"
    private static let built = Mutex<Set<String>>([])

    /// Builds the package in that folder of the repository, once for all tests; returns where its products lie.
    package static func build(_ folder: String) throws -> String {
        try built.withLock { built in
            guard !built.contains(folder) else { return }
            try build(at: "\(root)/\(folder)")
            built.insert(folder)
        }
        return "\(scratch)/debug"
    }

    /// Runs the tests of the package in that folder of the repository.
    package static func test(_ folder: String) throws {
        try swift(["test", "--disable-xctest"], at: "\(root)/\(folder)")
    }

    private static func build(at path: String) throws { try swift(["build"], at: path) }

    private static func swift(_ command: [String], at path: String) throws {
        // The flags of a stranger, so that what one builds there finds all of it compiled; but no warning is let pass.
        let call = try Child(
            "/usr/bin/env",
            ["swift"] + command + [listsFilesAnew, "--package-path", path, "--scratch-path", scratch],
            patience: 900)
        let (status, errors) = try call.end()
        guard status == 0, !(call.lines + errors).contains(where: { $0.contains(": warning: ") }) else {
            // The end of a long run does not say which of its tests has failed.
            let issues = call.lines.filter { $0.contains(" recorded an issue ") }
            throw Child.Failure(
                description: (issues + (call.lines + errors).suffix(30)).joined(separator: "\n"))
        }
    }

    /// The package in Tests/Packages of that name, with `sources` of the repository besides those of its target of that name; returns where its
    /// products lie. They are copied, for the package manager notices no change behind a link.
    package static func assemble(_ name: String, with sources: [String]) throws -> String {
        try built.withLock { built in
            guard !built.contains(name) else { return }
            let copy = "\(root)/.build/assembled/\(name)"
            let steps = [["mkdir", "-p", copy], ["cp", "-ru", "\(root)/Tests/Packages/\(name)/.", copy]]
            let sources = sources.map { "\(root)/\($0)" }
            for step in steps + [["cp", "-u"] + sources + ["\(copy)/Sources/\(name)/"]] {
                let call = try Child("/usr/bin/env", step)
                let (status, errors) = try call.end()
                guard status == 0 else { throw Child.Failure(description: errors.joined(separator: "\n")) }
            }
            try build(at: copy)
            built.insert(name)
        }
        return "\(scratch)/debug"
    }

    /// A tool of the Swift toolchain, such as its C compiler.
    package static func tool(_ name: String) throws -> String {
        // `swift` may be a link to something else, so the toolchain is asked where it is.
        let target = try Child("/usr/bin/env", ["swiftc", "-print-target-info"])
        let line = try target.line(with: "runtimeResourcePath")
        _ = try target.end()
        let path = line.split(separator: "\"").last.map(String.init) ?? ""
        return path.replacing("/lib/swift", with: "/bin/") + name
    }
}
