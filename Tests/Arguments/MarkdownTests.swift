import Testing

@testable import Arguments

@Suite("The reference as Markdown")
struct MarkdownTests {
    @Test("It has a heading for each command, every option and operand of it, and nothing that is hidden")
    func complete() {
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

    @Test("Words that Markdown would interpret are escaped, outside of code")
    func escaped() {
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
