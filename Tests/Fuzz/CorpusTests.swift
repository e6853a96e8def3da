import FoundationEssentials
import FuzzTargets
import Testing

/// The inputs in Tests/Fuzz/Corpus, with which the fuzzer begins: those that reach the most code, and those that broke
/// a promise once.
@Suite struct CorpusTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

    @Test(arguments: FuzzTarget.allCases)
    func `No input that was ever of use breaks a promise`(target: FuzzTarget) throws {
        let folder = Self.corpus.appending(path: target.rawValue)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.count > 1)
        for name in names {
            #expect(throws: Never.self, "\(target.rawValue)/\(name)") {
                try target.run(Array(Data(contentsOf: folder.appending(path: name))))
            }
        }
    }
}
