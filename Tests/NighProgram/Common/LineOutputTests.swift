import ChildPrograms
import ProgramLife
import Testing

/// Tests the lines that a program writes.
@Suite(.callsPrograms) struct LineOutputTests {
    @Test("What strangers say does not steer the terminal; what they write in any script stays as it is")
    func harmless() {
        #expect(LineOutput.harmless("a\u{1B}[2Jb\nc\u{202E}d") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect(LineOutput.harmless("Grüße, 猫 👋") == "Grüße, 猫 👋")
    }

    @Test("A command that would go on ends in good order when nobody reads what it says")
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
