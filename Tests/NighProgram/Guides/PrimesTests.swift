import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/Primes, questions.
@Suite("The counter of primes", .callsPrograms) struct PrimesTests {
    @Test("answers another process, and refuses what is too much")
    func answers() throws {
        let program = try BuiltPackages.build("Examples/Primes") + "/Primes"
        let users = (0..<3).map { _ in TemporaryFolder() }
        func start(_ user: TemporaryFolder, _ words: String...) throws -> Child {
            try Child(
                "/usr/bin/stdbuf", ["-oL", program] + words + ["tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path], reads: true)
        }
        let server = try start(users[0], "serve", "0")
        for (user, end, line) in [
            (users[1], "100000", "9592 primes below 100000, says serve"),
            (users[2], "10000001", "ask for 10000000 at most"),
        ] {
            let client = try start(user, "ask", end)
            try client.line(with: line)
            #expect(try client.end().status == 0)
            try server.line(with: "ask asks for the primes below \(end)")
        }
        server.send(SIGINT)
        #expect(try server.end().status == 0)
    }
}
