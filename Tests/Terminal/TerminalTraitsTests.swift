import Terminal
import Testing

@Suite struct TerminalTraitsTests {
    @Test(
        arguments: [
            (["TERM": "xterm"], .sixteen), (["TERM": "xterm-256color"], .twoHundredFiftySix),
            (["TERM": "linux"], .sixteen),
            (["TERM": "screen", "COLORTERM": "truecolor"], .twoHundredFiftySix), (["TERM": "vt100"], .none),
            (["TERM": "xterm-256color", "NO_COLOR": "1"], .none),
            (["TERM": "xterm", "NO_COLOR": ""], .sixteen),
            (["TERM": "xterm-kitty"], .twoHundredFiftySix),
            (["TERM": "dumb", "COLORTERM": "truecolor"], .none), ([:], .none),
        ] as [([String: String], ColourDepth)])
    func `Colours follow the kind of terminal, and a user who wants none gets none`(
        environment: [String: String], depth: ColourDepth
    ) {
        #expect(TerminalTraits(environment: environment).colours == depth, "\(environment)")
    }

    @Test(
        arguments: [
            (["LANG": "de_DE.UTF-8"], true), (["LANG": "C.utf8"], true), (["LANG": "C"], false), ([:], false),
            (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false),
            (["LC_ALL": "", "LC_CTYPE": "en_GB.UTF-8", "LANG": "C"], true),
        ] as [([String: String], Bool)])
    func `Unicode follows the first locale variable that is set`(
        environment: [String: String], isUnicode: Bool
    ) {
        #expect(TerminalTraits(environment: environment).isUnicode == isUnicode, "\(environment)")
    }

    @Test func `A terminal without a kind counts as dumb`() {
        #expect(TerminalTraits(environment: [:]).isDumb)
        #expect(TerminalTraits(environment: ["TERM": "dumb"]).isDumb)
        #expect(!TerminalTraits(environment: ["TERM": "linux"]).isDumb)
    }
}
