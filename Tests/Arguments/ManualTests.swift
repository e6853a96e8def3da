import Testing

@testable import Arguments

@Suite("The manual page")
struct ManualTests {
    /// The page as a terminal shows it. Expects that the formatter reports no warning.
    static func formatted(_ manual: String) throws -> String {
        let lines = try ShellScript(manual).lines(of: "groff -man -ww -Tutf8 -P-c -P-b -P-o -P-u SCRIPT")
        #expect(!lines.contains { $0.contains("warning") || $0.contains("error") }, "\(lines)")
        return lines.joined(separator: "\n")
    }

    @Test func `It shows everything that is not hidden`() throws {
        let text = try Self.formatted(Sample.program.manual(section: 6, date: "2026-02-28"))
        for words in [
            "TRY-IT(6)", "try-it - Shows what a table can say", "try-it send [--name NAME]",
            "--limit NUMBER FILE... PLACE", "--[no-]animation", "says more: [all] of it, that's it",
            "as it stands", "try-it scan --name 'The Puma' 4", "EXIT STATUS",
            "for how long (10ms to 1min; default 5s)", "try-it 0.1", "2026-02-28",
        ] {
            #expect(text.contains(words), "\(words): \(text)")
        }
        #expect(!text.contains("secret") && !text.contains("nobody knows"))
    }

    @Test func `No word is mistaken for a command of the formatter`() throws {
        let program = Program(
            Command(
                "odd", ".so /etc/passwd", text: "'tis \\fB \\n[.g] ~ ^ ` \"quoted\" Grüße\n\n  .nf\n  \\",
                Option(flag: "a-b", ".TH x")
            ) { $0 })
        let text = try Self.formatted(program.manual(date: "2026-02-28"))
        for words in [
            ".so /etc/passwd.", "'tis \\fB \\n[.g] ~ ^ ` \"quoted\" Grüße", "  .nf", "  \\", ".TH x",
        ] {
            #expect(text.contains(words), "\(words): \(text)")
        }
    }
}

@Suite("The reference as Markdown")
struct MarkdownTests {
    @Test
    func `It has a heading for each command, every option and operand of it, and nothing that is hidden`() {
        let text = Sample.program.markdown
        for command in Sample.program.outline.visible {
            #expect(text.contains("\n# \(command.title)\n") || text.hasPrefix("# \(command.title)\n"))
            for option in command.visibleOptions {
                #expect(text.contains("`\(Synopsis.long(option).replacing("|", with: "\\|"))`"))
            }
            for operand in command.operands { #expect(text.contains("`\(operand.name)`")) }
        }
        #expect(!text.contains("secret") && !text.contains("nobody knows"))
    }

    @Test func `Words that Markdown would interpret are escaped, outside of code`() {
        let program = Program(
            Command(
                "odd", "Takes <b> and *stars*", text: "Run `a|b *c*` or [x](y).",
                Option(flag: "a-b", "one | two")
            ) { $0 })
        let text = program.markdown
        #expect(text.contains("Takes \\<b\\> and \\*stars\\*."))
        #expect(text.contains("Run `a|b *c*` or \\[x\\](y)."))
        #expect(text.contains("| `--a-b` | one \\| two |"))
    }
}
