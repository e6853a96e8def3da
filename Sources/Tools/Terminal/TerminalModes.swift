/// The sequences that are sent to a terminal when it is taken over and when it is given back.
struct TerminalModes {
    let mouse: Bool

    /// Switches to another screen, without line wrapping and without a cursor until a canvas has one. Pastes are
    /// marked, and the focus and the mouse are reported.
    var taking: String {
        "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l\u{1B}[?2004h\u{1B}[?1004h"
            + (mouse ? "\u{1B}[?1000h\u{1B}[?1002h\u{1B}[?1003h\u{1B}[?1006h" : "")
    }

    /// Undoes `taking`, and ends a painting in progress and the style. Its first bytes break off half a sequence before
    /// it.
    var giving: String {
        "\u{1B}[?2026l\u{1B}[m" + (mouse ? "\u{1B}[?1006l\u{1B}[?1003l\u{1B}[?1002l\u{1B}[?1000l" : "")
            + "\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"
    }
}
