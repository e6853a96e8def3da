import Foundation
import Testing

@testable import mutants

/// Tests the rest of the program, as far as that needs no build.
struct ProgramTests {
    @Test func `Its command line is checked`() throws {
        let options = try Options([
            "--seed", "7", "--count", "20", "--only", "3", "--only", "9", "--worlds", "30",
        ])
        #expect(options.seed == 7 && options.count == 20 && options.only == [3, 9] && options.worlds == 30)
        #expect(try Options(["--help"]).wantsHelp)
        for wrong in [
            ["--count", "0"], ["--count", "5", "--only", "6"], ["--least", "101"], ["--moon"], ["--seed"],
        ] {
            #expect(throws: Options.Unusable.self, "\(wrong)") { try Options(wrong[...]) }
        }
    }

    @Test func `A reason belongs to its site`() throws {
        let site = try #require(SiteFinder.sites(in: Array("let  a = b < c".utf8), file: "A.swift").first)
        let harmless = try Harmless(
            "# A heading.\n\nA.swift\nlet a = b < c\n`<` becomes `<=`\nThey are never\nequal.\n")
        #expect(harmless.reason(for: site) == "They are never equal.")
        #expect(throws: Folder.Failure.self) { try Harmless("A.swift\nlet a = b < c\n`<` becomes `<=`\n") }
    }

    /// The number is SplitMix64's. Another one would make every seed a different run.
    @Test func `A seed always gives a site the same rank`() throws {
        let site = try #require(SiteFinder.sites(in: Array("let a = b < c".utf8), file: "A.swift").first)
        #expect(site.rank(seed: 1) == 0x1A4C_821A_B319_2F2C)
    }

    @Test func `The score ignores harmless mutants`() {
        #expect(Mutating.Score(caught: 179, survived: 20, harmless: 30).percent == 89)
        #expect(Mutating.Score(caught: 180, survived: 20, harmless: 30).percent == 90)
    }

    /// A program that succeeds, and some that fail.
    @Test(arguments: [
        ("exit 0", nil), ("echo '✘ Test a() recorded an issue'; sleep 60", "✘ Test a() recorded an issue"),
        ("echo 'seed 3: order: gone'; exit 1", "seed 3: order: gone"),
        ("kill -ABRT $$", "it crashes"), ("kill -SEGV $$", "it crashes"),
        ("kill -KILL $$", "it goes round for ever"),
        ("test $NIGH_MUTANT = 5", nil), ("test $NIGH_MUTANT = 6", "status 1"),
    ])
    func `A trial ends at the first failure`(_ command: String, _ words: String?) throws {
        let trial = Trial(name: "trial", program: "/bin/sh", arguments: ["-c", command])
        #expect(try trial.run(mutant: 5) == words.map { .caught($0) } ?? .passed)
    }

    @Test(arguments: [
        ("exec sleep 60", "it never ends"), ("while :; do :; done", "it goes round for ever"),
        ("exec dd if=/dev/null bs=1G count=1", "status 1"), ("exec dd if=/dev/null bs=1M count=1", nil),
    ])
    func `A program that hangs, loops or takes too much memory is caught`(
        _ command: String, _ words: String?
    ) throws {
        var trial = Trial(name: "trial", program: "/bin/sh", arguments: ["-c", command])
        trial.limits.processorTime = 2
        trial.limits.time = command.contains("sleep") ? 1 : 60
        trial.limits.memory = 64 << 10
        #expect(try trial.run(mutant: 5) == words.map { .caught($0) } ?? .passed)
    }

    @Test func `The package of the mutants has the targets that its programs need, and no others`() throws {
        let description = """
            {"targets": [
              {"name": "Other", "type": "regular", "path": "O", "exclude": [], "dependencies": [
               {"product": ["Far", "far", null, {"traits": ["Away"]}]}]},
              {"name": "soak", "type": "executable", "path": "S", "exclude": [],
               "dependencies": [{"byName": ["Core", null]}, {"byName": ["CLib", null]}]},
              {"name": "Core", "type": "regular", "path": "C", "exclude": ["CLib"],
               "dependencies": [{"byName": ["CLib", null]}]},
              {"name": "CLib", "type": "system", "path": "C/CLib", "exclude": [], "dependencies": []}
            ]}
            """
        let needed = try PackageTargets(neededBy: ["soak"], of: Data(description.utf8))
        #expect(needed.folders == ["C/CLib", "C", "S"])
        let manifest = try needed.manifest(named: "Mutants")
        #expect(
            manifest.contains(
                """
                        .systemLibrary(name: "CLib", path: "C/CLib"),
                        .target(name: "Core", dependencies: ["CLib"], path: "C", exclude: ["CLib"]),
                        .executableTarget(name: "soak", dependencies: ["Core", "CLib"], path: "S"),
                """))
        #expect(throws: Folder.Failure.self) {
            try PackageTargets(neededBy: ["moon"], of: Data(description.utf8))
        }
    }
}
