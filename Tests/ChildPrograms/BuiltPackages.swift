import Synchronization

/// Builds the packages in this repository that stand apart from it, as a user's package does, against the current Nigh.
package enum BuiltPackages {
    /// The path of the repository.
    package static let root = "\(#filePath)".split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }

    /// The folder in which this repository is built, with the same flags, so that Nigh itself is not compiled again.
    private static let scratch = "\(root)/.build"
    /// A shell script that calls `swift` with its arguments, to build a package there. One such call waits for the
    /// other. `swift test` holds the package manager's own lock while the tests run, so that one is ignored.
    ///
    /// The package manager keeps a list of what it builds, from which files, with which flags. It would take the list
    /// of one package for that of the next one, or for this repository's. So each package has its own made, and leaves
    /// none, however the build ends. The flags of this repository's are kept in another file, for they must be the
    /// same: with other ones all would be compiled again, and once more for the next test.
    package static let script = """
        list="\(scratch)/debug.yaml"
        flags="\(scratch)/packages.flags"
        mkdir -p "\(scratch)"
        exec 9>"\(scratch)/packages.lock"
        flock 9
        trap 'rm -f "$list"' EXIT
        trap exit HUP INT TERM
        if [ -e "$list" ]; then
            if grep -q -e -warnings-as-errors "$list"; then echo -Xswiftc -warnings-as-errors; fi >"$flags"
        fi
        swift "$@" --disable-build-manifest-caching --ignore-lock --scratch-path "\(scratch)" \
            ${BUILD_SYSTEM:+--build-system "$BUILD_SYSTEM"} $(cat "$flags" 2>/dev/null)
        """
    /// The folder with what is built there.
    private static let products = Mutex<String?>(nil)
    private static let built = Mutex<Set<String>>([])
    /// Held by the thread that builds.
    private static let building = Mutex<Void>(())

    /// Calls `build`, once for all tests. A test whose package is there does not wait until that of another one is.
    private static func once(_ name: String, _ build: () throws -> Void) throws {
        let isBuilt = { built.withLock { $0.contains(name) } }
        guard !isBuilt() else { return }
        try building.withLock { _ in
            guard !isBuilt() else { return }
            try build()
            _ = built.withLock { $0.insert(name) }
        }
    }

    /// Builds the package in `folder` of the repository, once for all tests; returns the folder with its products.
    package static func build(_ folder: String) throws -> String {
        try once(folder) { try swift(at: "\(root)/\(folder)") }
        return try builtProducts()
    }

    /// Builds the tests of the package `name` in `folder` of the repository, once; returns the path of the program that
    /// runs them.
    package static func buildTests(of name: String, in folder: String) throws -> String {
        try once("tests of \(name)") { try swift(at: "\(root)/\(folder)", "--build-tests") }
        return try builtProducts() + "/\(name)PackageTests.xctest"
    }

    /// Runs the tests of the package `name` in `folder` of the repository: all of them, or those that match the filter.
    /// They compete with other programs for the processors, so only a few run at once.
    package static func test(
        _ name: String, in folder: String, filter: String? = nil, environment: [String: String] = [:]
    ) throws {
        // Not by `swift test`, which would let nobody else build until the last of them has ended.
        let program = try buildTests(of: name, in: folder)
        var environment = environment
        environment["SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH"] = "4"
        try Child.run(
            program, ["--testing-library", "swift-testing"] + (filter.map { ["--filter", $0] } ?? []),
            environment: environment, patience: 900)
    }

    private static func builtProducts() throws -> String {
        try products.withLock { known in
            if let known { return known }
            let lines = try Child.run("\(root)/.ci/built", ["debug"])
            guard let path = lines.last else { throw Child.Failure(description: "no built products") }
            known = path
            return path
        }
    }

    private static func swift(at path: String, _ options: String...) throws {
        try Child.run(
            "/bin/sh", ["-c", script, "swift", "build", "--package-path", path] + options, patience: 900)
    }

    /// Builds a copy of the package `name` in Tests/Packages, with `sources` of the repository added to its target
    /// `name`; returns the folder with its products. The sources are copied, because the package manager notices no
    /// change behind a link.
    package static func assemble(_ name: String, with sources: [String]) throws -> String {
        try once(name) {
            let copy = "\(root)/.build/assembled/\(name)"
            try Child.run("/bin/mkdir", ["-p", copy])
            try Child.run("/bin/cp", ["-ru", "\(root)/Tests/Packages/\(name)/.", copy])
            try Child.run(
                "/bin/cp", ["-u"] + sources.map { "\(root)/\($0)" } + ["\(copy)/Sources/\(name)/"])
            try swift(at: copy)
        }
        return try builtProducts()
    }

    /// Returns the path of a tool of the Swift toolchain, such as its C compiler.
    package static func tool(_ name: String) throws -> String {
        // `swift` may be a link to something else, so this asks the toolchain for its location.
        let target = try Child.run("/usr/bin/env", ["swiftc", "-print-target-info"])
        let line = target.first { $0.contains("runtimeResourcePath") } ?? ""
        let path = line.split(separator: "\"").last ?? ""
        return path.replacing("/lib/swift", with: "/bin/") + name
    }
}
