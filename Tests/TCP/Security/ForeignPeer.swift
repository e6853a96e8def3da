import Glibc
import NighCore
import NighTestKit

@testable import NighTCP

/// `openssl` as a client of another make, behind a relay that sends the preface for it.
struct ForeignClient {
    struct Missing: Error {}

    /// Its output, with the session's bytes first if there were any.
    let output: [UInt8]

    var text: String { String(decoding: output, as: UTF8.self) }

    /// Runs `openssl s_client` with these arguments against `port`, until `isEnough` returns true for its output or it
    /// ends.
    init(
        port: UInt16, _ arguments: String, quiet: Bool = true,
        until isEnough: ([UInt8]) -> Bool = { _ in false }
    ) throws {
        let relay = try Relay(to: port) { PrefaceTeller() }
        defer { relay.end() }
        let command =
            "exec openssl s_client -connect 127.0.0.1:\(relay.port) \(quiet ? "-quiet 2>&1" : "2>&1") \(arguments) "
            + "</dev/null"
        guard let stream = popen(command, "re") else { throw Missing() }
        var output: [UInt8] = []
        while !isEnough(output) {
            let byte = fgetc(stream)
            guard byte != EOF else { break }
            output.append(UInt8(truncatingIfNeeded: byte))
        }
        relay.cut()
        while fgetc(stream) != EOF {}
        pclose(stream)
        self.output = output
    }

    /// Calls `body` with the arguments for a file with `credentials`. The file is deleted when `body` returns.
    static func with<Result>(
        _ credentials: RawPeer.Credentials?, _ body: (String) throws -> Result
    ) throws -> Result {
        guard let credentials else { return try body("") }
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.file("credentials.pem", credentials.pem)
        return try body("-cert \(path) -key \(path)")
    }
}
