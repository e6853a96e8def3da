import NighCore
import Testing

@testable import Arguments

@Suite("Any command line")
struct PropertyTests {
    private static let pieces: [String] =
        Sample.program.outline.all.flatMap { command in
            [command.name] + command.options.flatMap(ShellText.spellings)
        } + [
            "", "-", "--", "---", "=", "--=", "-=", "--name=", "-n=", "-qv", "-qn", "x", "5", "-5", "5s",
            "64KiB", "help", "tcp",
            "99999999999999999999", "\u{0}", "é", "e\u{301}", "👨‍👩‍👧", "\u{301}", "'", "$(false)", "a b", "\n",
            "a@b",
        ]

    @Test(arguments: 0..<20 as Range<UInt64>) func `It is accepted or refused with one line, and never traps`(
        _ seed: UInt64
    ) {
        var dice = SeededGenerator(seed: seed)
        for _ in 0..<150 {
            let arguments = (0..<Int.random(in: 0...7, using: &dice)).map { _ in
                var word = Self.pieces.randomElement(using: &dice) ?? ""
                if Int.random(in: 0..<4, using: &dice) == 0 {
                    word += Self.pieces.randomElement(using: &dice) ?? ""
                }
                return word
            }
            do throws(UsageError) {
                _ = try Sample.program.parse(arguments, width: Int.random(in: -10...120, using: &dice))
            } catch {
                #expect(!error.description.contains("\n"), "\(arguments): \(error)")
                #expect(error.description.hasSuffix("--help)"), "\(arguments): \(error)")
            }
        }
    }

    /// Valid values for the options and operands of the sample, by their placeholders in the help.
    private static let values = [
        "NAME": "x", "TEXT": "x", "tcp|bluetooth|memory": "memory", "DURATION": "200ms", "ADDRESS": "a@b",
        "NUMBER": "7",
        "RATE": "9kbit/s", "SIZE": "1M", "COUNT": "4", "FILE": "x", "PLACE": "x", "SHELL": "fish",
        "PEER": "x",
    ]

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `Arguments that the usage line shows are accepted in any order`(_ seed: UInt64) throws {
        var dice = SeededGenerator(seed: seed)
        for command in Sample.program.outline.all where command.isComplete {
            let path = Array(command.path.dropFirst())
            let help = try Sample.program.help(for: path, width: 10_000)
            let usage = try #require(help.split(separator: "\n").first).dropFirst(
                "usage: \(command.title)".count)
            var parts: [[String]] = []
            for shown in usage.split(separator: " ") {
                let word = String(shown.filter { !["[", ".", "]"].contains($0) })
                if word.hasPrefix("--") {
                    parts.append([
                        word == "--no-animation" ? ["--animation", word].randomElement(using: &dice)! : word
                    ])
                } else {
                    let value = try #require(Self.values[word], "\(command.title) \(word)")
                    if let last = parts.last, last.count == 1, last[0].hasPrefix("--"),
                        help.contains("\(last[0]) \(word)")
                    {
                        parts[parts.count - 1].append(value)
                    } else {
                        parts.append([value])
                    }
                }
            }
            // The command rejects both together.
            if Bool.random(using: &dice) {
                parts.removeAll { $0 == ["--quiet"] }
            } else {
                parts.removeAll { $0 == ["--verbose"] }
            }
            guard case .action = try Sample.program.parse(path + parts.shuffled(using: &dice).joined()) else {
                Issue.record("\(parts) is no action")
                continue
            }
        }
    }
}
