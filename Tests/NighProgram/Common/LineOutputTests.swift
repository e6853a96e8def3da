import ChildPrograms
import ProgramSupport
import Testing

/// Tests the lines that a program writes.
@Suite(.callsPrograms) struct LineOutputTests {
    @Test("A stranger's text cannot control the terminal; text in any script stays unchanged")
    func sanitized() {
        #expect(LineOutput.sanitized("a\u{1B}[2Jb\nc\u{202E}d") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect(LineOutput.sanitized("Grüße, 猫 👋") == "Grüße, 猫 👋")
    }

    @Test("A command that would continue ends cleanly when nobody reads its output")
    func readerHasGone() throws {
        let (host, user) = (try HostInTests(), NighUser())
        host.child.stopListening()
        // Makes the host write something.
        let guest = try user.start("ping", host.address, "-t", HostInTests.transport)
        let end = try NighCall(finishing: host.child)
        #expect(end.status == 0 && end.errors.isEmpty, "\(end)")
        withExtendedLifetime(guest) {}
    }
}
