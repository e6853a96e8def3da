import NighCore
import Testing

@Suite struct ShellWordTests {
    @Test(
        "A suggested word reaches the program as it is, and is quoted only if a shell would change it",
        arguments: [
            ("Puma", "Puma"), ("tcp://10.0.0.7:4000", "tcp://10.0.0.7:4000"),
            ("Anna's laptop", #"'Anna'\''s laptop'"#),
            ("a b", "'a b'"), ("$(reboot)", "'$(reboot)'"), ("~", "'~'"), ("", "''"),
            ("K\u{FC}che", "'K\u{FC}che'"),
            ("a;b", "'a;b'"), ("#1", "'#1'"),
        ])
    func quoted(_ text: String, _ word: String) {
        #expect(ShellWord.quoted(text) == word)
        #expect(ShellWord.operand(text) == word)
    }

    @Test("A suggested operand that begins with a hyphen is not taken for an option")
    func hyphen() { #expect(ShellWord.operand("-x y") == "-- '-x y'") }
}
