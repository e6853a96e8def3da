import Arguments
import Nigh
import ProgramLife
import Testing

@testable import greet

@Suite struct OptionsTests {
    private func read(_ arguments: [String]) throws -> Options {
        guard case .action(let options) = try Options.program.parse(arguments) else {
            throw Misuse("it is a text")
        }
        return options
    }

    @Test func theTableContradictsItselfNowhere() { #expect(Options.program.problems == []) }

    @Test(arguments: [["--help"], ["-h"], ["help"], ["--name", "Puma", "--help"]])
    func helpTellsAllOptionsAndFits(_ arguments: [String]) throws {
        guard case .text(let help) = try Options.program.parse(arguments) else {
            Issue.record("it is no text")
            return
        }
        #expect(help.hasPrefix("usage: greet [--name NAME]"))
        for words in [
            "--transport LIST", "--service NAME", "--identity FILE|ephemeral", "(default ephemeral)",
            "--connect ADDRESS",
        ] {
            #expect(help.contains(words))
        }
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test func withoutArgumentsTwoMeetOverTCP() throws {
        let options = try read([])
        #expect(!options.stays)
        #expect(options.service == "greet")
        #expect(try options.makeTransports().map(\.scheme) == ["tcp"])
    }

    @Test func everyOptionIsUnderstood() throws {
        let options = try read([
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
        #expect(try read(arguments).stays)
    }

    @Test func anEphemeralIdentityIsNoFile() throws {
        let options = try read(["--identity", "ephemeral"])
        #expect(options.identity == nil)
        #expect(!options.stays)
    }

    @Test(arguments: [
        (["--nme", "Puma"], "there is no option --nme: did you mean --name? (see greet --help)"),
        (["Puma"], "\"Puma\" is too much: greet takes no operands"),
        (["--name"], "--name needs a value"),
        (["--name="], "--name needs a value"),
        (["--name", "--service", "x"], "--name needs a value before --service"),
        (["--name", "Puma", "--name", "Lynx"], "--name is given twice"),
        (["--name", "a\u{7}b"], "--name: a name has 1 to 63 bytes"),
        (["--service", "No Such"], "--service: a service is 1 to 15 of a-z"),
        (["--connect", "192.168.1.7"], "--connect: an address is written as in tcp://"),
    ])
    func whatCannotBeIsToldInASentence(_ arguments: [String], _ words: String) {
        let misuse = #expect(throws: Misuse.self) { try read(arguments) }
        #expect(misuse?.description.hasPrefix(words) == true)
    }

    @Test(arguments: [
        (["--transport", "pigeon"], "there is no transport \"pigeon\""),
        (["--transport", "tcp:pork=1"], "invalid option \"pork\""),
        (["--transport", "memory", "--name", "Puma"], "memory reaches nobody outside this program"),
        (["--transport", "memory", "--connect", "tcp://host:1"], "needs the transport tcp, not memory"),
    ])
    func transportsThatCannotServeAreToldInASentence(_ arguments: [String], _ words: String) throws {
        let options = try read(arguments)
        let misuse = #expect(throws: Misuse.self) { try options.makeTransports() }
        #expect(misuse?.description.contains(words) == true)
    }

    @Test func whatStrangersSayDoesNotReachTheTerminalAsItIs() {
        #expect(LineOutput.harmless("a\u{1B}[2Jb\nc\u{202E}d") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect(LineOutput.harmless("Grüße, 猫 👋") == "Grüße, 猫 👋")
    }
}
