import ChildPrograms
import Testing

/// `Child` reads both outputs of a program. Otherwise a test of a program that writes much would wait forever.
@Suite("A program that a test has started") struct ChildTests {
    /// Writes more than a socket holds when nobody reads it.
    private let script = "seq 100000 >&2; echo done; exit 3"

    @Test("may write much to its standard error before anything to its standard output")
    func saysMuchToItsErrors() throws {
        let child = try Child("/bin/sh", ["-c", script], patience: 20)
        #expect(try child.line(with: "done") == "done")
        let (status, errors) = try child.end()
        #expect(status == 3)
        #expect(errors.count == 100_000)
    }

    @Test("may write much to its standard output before it ends")
    func saysMuchToItsOutput() throws {
        let child = try Child("/bin/sh", ["-c", "(\(script)) 3>&1 1>&2 2>&3"], patience: 20)
        let (status, errors) = try child.end()
        #expect(status == 3)
        #expect(child.lines.count == 100_000)
        #expect(errors == ["done"])
    }
}
