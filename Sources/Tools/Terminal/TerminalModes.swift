/// What a terminal is told when it is taken over and when it is given back.
struct TerminalModes {
    let mouse: Bool

    /// A screen of its own, no line wrapped, no cursor until a canvas has one, pastes marked, focus and mouse reported.
    var taking: String {
        "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l\u{1B}[?2004h\u{1B}[?1004h"
            + (mouse ? "\u{1B}[?1000h\u{1B}[?1002h\u{1B}[?1003h\u{1B}[?1006h" : "")
    }

    /// The same undone; no painting in progress, no style. It begins so that half a sequence before it is broken off.
    var giving: String {
        "\u{1B}[?2026l\u{1B}[m" + (mouse ? "\u{1B}[?1006l\u{1B}[?1003l\u{1B}[?1002l\u{1B}[?1000l" : "")
            + "\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"
    }
}
