import Testing

@testable import Arguments

@Suite("The manual page")
struct ManualTests {
    private func formatted(_ manual: String) throws -> [String] {
        let page = try Script(manual)
        return try Script.lines(of: "groff -man -ww -Tutf8 -P-c -P-b -P-o -P-u \(page.path)")
    }

    @Test("The formatter reports no warning, and shows everything that is not hidden")
    func format() throws {
        let lines = try formatted(Sample.program.manual(section: 6, date: "2026-02-28"))
        #expect(!lines.contains { $0.contains("warning") || $0.contains("error") }, "\(lines)")
        for words in [
            "TRY-IT(6)", "try-it - Shows what a table can say", "try-it send [--name NAME]",
            "--limit NUMBER FILE... PLACE",
            "--[no-]animation", "says more: [all] of it, that's it", "as it stands",
            "try-it scan --name 'The Puma' 4",
            "EXIT STATUS", "for how long (10ms to 1min; default 5s)", "try-it 0.1", "2026-02-28",
        ] {
            #expect(lines.contains { $0.contains(words) }, "\(words): \(lines)")
        }
        #expect(!lines.contains { $0.contains("secret") || $0.contains("nobody knows") })
    }

    @Test("No word is mistaken for a command of the formatter")
    func hostileWords() throws {
        let program = Program(
            Command(
                "odd", ".so /etc/passwd", text: "'tis \\fB \\n[.g] ~ ^ ` \"quoted\" Grüße\n\n  .nf\n  \\",
                Option(flag: "a-b", ".TH x")
            ) { $0 })
        let lines = try formatted(program.manual(date: "2026-02-28"))
        #expect(!lines.contains { $0.contains("warning") || $0.contains("error") }, "\(lines)")
        for words in [
            ".so /etc/passwd.", "'tis \\fB \\n[.g] ~ ^ ` \"quoted\" Grüße", "  .nf", "  \\", ".TH x",
        ] {
            #expect(lines.contains { $0.contains(words) }, "\(words): \(lines)")
        }
    }
}
