import Nigh
import Testing

@testable import greet

@Suite struct OptionsTests {
    @Test func withoutArgumentsTwoMeetOverTCP() throws {
        let options = try Options([])
        #expect(!options.stays)
        #expect(options.service == "greet")
        #expect(try options.makeTransports().map(\.scheme) == ["tcp"])
    }

    @Test func everyOptionIsUnderstood() throws {
        let options = try Options([
            "--name", "Puma", "--service=chat", "--transport", "tcp:port=4000,mdns=off,memory", "--identity",
            "/somewhere/key.pem", "--connect", "tcp://[fe80::1%eth0]:4000", "--connect=tcp://host:1",
        ])
        #expect(options.name?.description == "Puma")
        #expect(options.service == "chat")
        #expect(options.identity == IdentityFile(path: "/somewhere/key.pem"))
        #expect(
            options.addresses.map(\.description) == ["tcp://[fe80::1%eth0]:4000", "tcp://host:1"])
        #expect(try options.makeTransports().map(\.scheme) == ["tcp", "memory"])
        #expect(options.stays)
    }

    @Test(arguments: [["--name", "x"], ["--connect", "tcp://host:1"], ["--identity", "key.pem"]])
    func whatIsAboutOneOfSeveralStays(_ arguments: [String]) throws {
        #expect(try Options(arguments).stays)
    }

    @Test func anEphemeralIdentityIsNoFile() throws {
        let options = try Options(["--identity", "ephemeral"])
        #expect(options.identity == nil)
        #expect(!options.stays)
    }

    @Test(arguments: [
        (["--nme", "Puma"], "unknown argument \"--nme\""),
        (["Puma"], "unknown argument \"Puma\""),
        (["--name"], "--name needs a value"),
        (["--name="], "--name needs a value"),
        (["--name", "a\u{7}b"], "a name has 1 to 63 bytes"),
        (["--service", "No Such"], "a service is 1 to 15 of a-z"),
        (["--connect", "192.168.1.7"], "an address is written as in tcp://"),
    ])
    func whatCannotBeIsToldInASentence(_ arguments: [String], _ words: String) {
        let misuse = #expect(throws: Options.Misuse.self) { try Options(arguments) }
        #expect(misuse?.words.hasPrefix(words) == true)
    }

    @Test(arguments: [
        (["--transport", "pigeon"], "there is no transport \"pigeon\""),
        (["--transport", "tcp:pork=1"], "invalid option \"pork\""),
        (["--transport", "memory", "--name", "Puma"], "memory reaches nobody outside this program"),
        (["--transport", "memory", "--connect", "tcp://host:1"], "needs the transport tcp, not memory"),
    ])
    func transportsThatCannotServeAreToldInASentence(_ arguments: [String], _ words: String) throws {
        let options = try Options(arguments)
        let misuse = #expect(throws: Options.Misuse.self) { try options.makeTransports() }
        #expect(misuse?.words.contains(words) == true)
    }

    @Test func whatStrangersSayDoesNotReachTheTerminalAsItIs() {
        #expect(Output.harmless("a\u{1B}[2Jb\nc\u{202E}d") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect(Output.harmless("Grüße, 猫 👋") == "Grüße, 猫 👋")
    }
}
