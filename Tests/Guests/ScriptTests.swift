import ChildPrograms
import Testing

@Suite("The peer in JavaScript") struct ScriptTests {
    @Test("keeps all its promises without a browser, in virtual time")
    func script() throws {
        let node = try Child(
            "/usr/bin/node", ["--test", "\(BuiltPackages.root)/Tests/Guests/Script"], patience: 300)
        let (status, errors) = try node.end()
        let failures = node.lines.filter { $0.contains("not ok") }
        #expect(status == 0, "\(failures) \(errors)")
        let passed = node.lines.compactMap { $0.wholeMatch(of: #/. pass (\d+)/#) }.first.flatMap { Int($0.1) }
        #expect(try #require(passed) > 100)
    }
}
