import Terminal
import Testing

@Suite struct TerminalSizeTests {
    @Test("A screen fits only if neither side is too small")
    func holds() {
        let usual = TerminalSize(columns: 80, rows: 24)
        #expect(usual.holds(usual))
        #expect(!TerminalSize(columns: 79, rows: 50).holds(usual))
        #expect(!TerminalSize(columns: 200, rows: 23).holds(usual))
    }
}
