import Glibc

/// A copy of the sources to test, with all mutants of a run compiled in.
struct MutatedPackage {
    struct Mutant {
        let number: Int
        let site: Site
    }

    private static let folder = ".build/mutants/package"
    private static let log = ".build/mutants/build.log"
    private static let refusedFile = ".build/mutants/refused"

    /// The folders of Core's machines.
    private static let mutated = ["Session", "Lanes", "Link", "Datagrams", "Wire", "Buffers"].map {
        "Sources/Core/\($0)/"
    }
    /// Not mutated, because they only check consistency and decide nothing.
    private static let exempt = ["SessionMachine+Consistency.swift", "Session+Inspection.swift"]
    /// The programs that try a mutant.
    private static let roots = ["soak", "CoreTests"]
    /// The folder with the pages that tests compare with the code.
    private static let pages = "docs/reference"

    private let sources: [String: [UInt8]]
    private let manifest: String
    /// All places, in an order that the seed decides.
    private let sites: [Site]
    /// The keys of the places that the compiler refuses.
    private var refused: Set<String>
    private(set) var mutants: [Mutant] = []

    init(seed: UInt64) throws {
        var sources: [String: [UInt8]] = [:]
        let targets = try PackageTargets(neededBy: Self.roots)
        manifest = try targets.manifest(named: "Mutants")
        for path in targets.folders {
            for file in Folder.files(below: path) {
                sources["\(path)/\(file)"] = try Folder.bytes(of: "\(path)/\(file)")
            }
        }
        for page in Folder.files(below: Self.pages) where page.hasSuffix(".md") && !page.contains("/") {
            sources["\(Self.pages)/\(page)"] = try Folder.bytes(of: "\(Self.pages)/\(page)")
        }
        guard sources["Sources/Core/Session/Machine/SessionMachine.swift"] != nil else {
            throw Folder.Failure(description: "this is not the package's folder")
        }
        self.sources = sources
        let found = sources.keys.sorted().filter(Self.isMutated).flatMap { file in
            SiteFinder.sites(in: sources[file] ?? [], file: file)
        }
        sites = found.map { (rank: $0.rank(seed: seed), site: $0) }.sorted { $0.rank < $1.rank }.map(\.site)
        let known = (try? Folder.text(of: Self.refusedFile)) ?? ""
        refused = Set(known.split(separator: "\u{0}").map(String.init))
    }

    private static func isMutated(_ file: String) -> Bool {
        mutated.contains { file.hasPrefix($0) } && !exempt.contains { file.hasSuffix($0) }
    }

    /// The number of places. The compiler may refuse some of them.
    var siteCount: Int { sites.count }

    /// The keys of all places, to find out whether an entry of `harmless.txt` still has its place.
    var keys: Set<String> { Set(sites.map(\.key)) }

    /// Takes the first `count` places that the compiler has not refused so far.
    private mutating func choose(_ count: Int) {
        mutants = sites.lazy.filter { [refused] in !refused.contains($0.key) }.prefix(count).enumerated().map
        {
            Mutant(number: $0.offset + 1, site: $0.element)
        }
    }

    // MARK: Building

    /// Builds the package with `count` mutants. Drops mutants that the compiler refuses, and takes others instead.
    mutating func build(_ count: Int, tell: (String) -> Void) throws {
        while true {
            choose(count)
            try write()
            tell("building \(mutants.count) mutants of \(sites.count) places")
            let command =
                "swift build --package-path \(Self.folder) -c release --build-tests -Xswiftc -enable-testing "
                + "> \(Self.log) 2>&1"
            if try ShellCommand(command, timeLimit: 7_200).run().end == .exit(0) { return }
            let dropped = try dropRefused()
            guard dropped > 0 else {
                throw Folder.Failure(
                    description: "the package does not build, and no mutant is why; see \(Self.log)")
            }
            tell("the compiler refuses \(dropped)")
        }
    }

    private func write() throws {
        let chosen = Dictionary(grouping: mutants, by: \.site.file)
        for (file, source) in sources {
            let edits = (chosen[file] ?? []).flatMap { $0.site.edits($0.number) }
            try Folder.write(Schema.applying(edits, to: source), to: "\(Self.folder)/\(file)")
        }
        let support = Schema.support(for: mutants.map { ($0.number, $0.site) })
        try Folder.write(Array(support.utf8), to: "\(Self.folder)/\(Self.supportFile)")
        try Folder.write(Array(manifest.utf8), to: "\(Self.folder)/Package.swift")
        let wanted = Set(sources.keys).union([Self.supportFile, "Package.swift"])
        for file in Folder.files(below: Self.folder) where !wanted.contains(file) {
            unlink("\(Self.folder)/\(file)")
        }
    }

    private static let supportFile = "Sources/Core/Mutants.swift"

    /// For each error, drops the mutants on its line, or those nearest to it.
    private mutating func dropRefused() throws -> Int {
        var dropped: Set<String> = []
        for line in try Folder.text(of: Self.log).split(separator: "\n") where line.contains(": error: ") {
            let parts = line.split(separator: ":", maxSplits: 3)
            guard parts.count == 4, let row = Int(parts[1]) else { continue }
            let near = mutants.filter { parts[0].hasSuffix("/\($0.site.file)") }
            let least = near.map { abs($0.site.line - row) }.min()
            for mutant in near where abs(mutant.site.line - row) == least { dropped.insert(mutant.site.key) }
        }
        refused.formUnion(dropped)
        try Folder.write(Array(refused.sorted().joined(separator: "\u{0}").utf8), to: Self.refusedFile)
        return dropped.count
    }

    // MARK: Trying

    private static let built = "\(folder)/.build/release"

    /// The programs that try a mutant, the cheapest first.
    func trials(worlds: Int) -> [Trial] {
        let slow = "`(\(Self.slowTests.joined(separator: "|")))`\\("
        return [
            Trial(
                name: "unit tests", program: "\(Self.built)/MutantsPackageTests.xctest",
                arguments: ["--testing-library", "swift-testing", "--filter", tests, "--skip", slow]),
            Trial(name: "worlds", program: "\(Self.built)/soak", arguments: ["--seeds", "\(worlds)"]),
        ]
    }

    /// These tests take longer than all others together, and the worlds cover what they test.
    private static let slowTests = [
        "Two hundred double invitations end with one link each", "Simultaneous moves end with one link",
    ]

    /// The test suites for what is mutated. The other tests of Core are about other code.
    private var tests: String {
        let suites = sources.filter { file, _ in Self.tested.contains { file.hasPrefix($0) } }.values.flatMap
        { source in
            let words = SwiftLexer.tokens(of: source).filter { $0.kind == .word }.map(\.text)
            return zip(words, words.dropFirst()).filter { $0 == "struct" && $1.hasSuffix("Tests") }.map(\.1)
        }
        return "^CoreTests\\.(\(suites.sorted().joined(separator: "|")))/"
    }

    private static let tested = ["Session", "Lanes", "Link", "Datagrams", "Wire", "Buffers", "Runtime"].map {
        "Tests/Core/\($0)/"
    }
}
