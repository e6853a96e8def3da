import Glibc
import Testing

@testable import NighCore

@Suite struct OpenSSLLifetimeTests {
    @Test func sessionsCanUseTheirKeysWhileTheProgramExits() async {
        await #expect(processExitsWith: .success) {
            // Called after everything that libcrypto registers from here on, as the last of what `exit` does.
            atexit {
                let identity = Identity.ephemeral()
                let hash = [UInt8]("text".utf8).withUnsafeBytes { SHA256.hash($0) }
                let works = (try? TLSContext(identity)) != nil && hash.count == SHA256.byteCount
                _exit(works ? EXIT_SUCCESS : EXIT_FAILURE)
            }
            _ = Identity.ephemeral()
            exit(EXIT_SUCCESS)
        }
    }
}
