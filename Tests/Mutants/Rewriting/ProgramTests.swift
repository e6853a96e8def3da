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

    @Test func `The score ignores harmless mutants`() {
        #expect(Mutating.Score(caught: 179, survived: 20, harmless: 30).percent == 89)
        #expect(Mutating.Score(caught: 180, survived: 20, harmless: 30).percent == 90)
    }

    /// A program that succeeds, and some that fail.
    @Test(arguments: [
        ("exit 0", nil), ("echo '✘ Test a() recorded an issue'; sleep 60", "✘ Test a() recorded an issue"),
        ("echo 'seed 3: order: gone'; exit 1", "seed 3: order: gone"),
        ("kill -ABRT $$", "it crashes"), ("kill -KILL $$", "it goes round for ever"),
        ("test $NIGH_MUTANT = 5", nil), ("test $NIGH_MUTANT = 6", "status 1"),
    ])
    func `A trial ends at the first failure`(_ command: String, _ words: String?) throws {
        let trial = Trial(name: "trial", program: "/bin/sh", arguments: ["-c", command], usual: 1)
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
