import NighCore
import Testing

@testable import Terminal

@Suite struct PainterTests {
    private static let colourful = TerminalTraits(colours: .twoHundredFiftySix, isUnicode: true)

    @Test(arguments: [(2, 1), (1, 1), (2, 2)])
    func `After each painting the terminal shows exactly the canvas`(emojiColumns: Int, flagColumns: Int) {
        for seed in 0..<120 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            var size = RandomCanvas.size(&chance)
            var terminal = TinyTerminal(size)
            (terminal.emojiColumns, terminal.flagColumns) = (emojiColumns, flagColumns)
            var painter = Painter(Self.colourful, isSynchronized: chance.oneIn(2))
            var canvas = Canvas(size)
            terminal.scribble()
            for step in 0..<8 {
                if chance.oneIn(6) {
                    if chance.oneIn(2) {
                        size = RandomCanvas.size(&chance)
                        canvas = Canvas(size)
                        terminal = TinyTerminal(size)
                        (terminal.emojiColumns, terminal.flagColumns) = (emojiColumns, flagColumns)
                    }
                    terminal.scribble()
                    painter.forget()
                }
                RandomCanvas.draw(on: &canvas, &chance)
                terminal.take(painter.paint(canvas))
                let difference = Difference.first(between: terminal, and: canvas)
                #expect(difference == nil, "seed \(seed), step \(step)")
                #expect(terminal.complaints == [], "seed \(seed), step \(step)")
                #expect(painter.paint(canvas) == [], "seed \(seed), step \(step)")
            }
        }
    }

    @Test func `Unchanged cells are not sent`() {
        var painter = Painter(Self.colourful, isSynchronized: false)
        var canvas = Canvas(TerminalSize(columns: 80, rows: 24))
        _ = painter.paint(canvas)
        canvas.write("Your turn", at: CellPosition(column: 10, row: 4))
        #expect(painter.said(canvas) == "␛[5;11HYour turn")
        canvas.write("M", at: CellPosition(column: 10, row: 4))
        #expect(painter.said(canvas) == "␛[9DM")
        canvas.write("h", at: CellPosition(column: 13, row: 4))
        #expect(painter.said(canvas) == "ouh", "a short way is written once more")
        canvas.fill(canvas.area)
        #expect(painter.said(canvas) == "␛[4D␛[K")
        canvas.write("x", at: CellPosition(column: 0, row: 5), Style(.red, .bold))
        canvas.write("y", at: CellPosition(column: 1, row: 5), Style(.red))
        #expect(painter.said(canvas) == "\r\n␛[1;31mx␛[22my")
        canvas.write("z", at: CellPosition(column: 2, row: 5))
        #expect(painter.said(canvas) == "␛[mz")
        canvas.write("to move", at: CellPosition(column: 0, row: 6), .bold)
        #expect(painter.said(canvas) == "\r\n␛[1mto move", "spaces look the same in bold")
    }

    @Test func `The cursor is hidden while cells change, and then shown where the canvas has it`() {
        var painter = Painter(Self.colourful, isSynchronized: true)
        var canvas = Canvas(TerminalSize(columns: 20, rows: 2))
        _ = painter.paint(canvas)
        canvas.cursor = CellPosition(column: 3, row: 1)
        #expect(painter.said(canvas) == "␛[?2026h␛[2;4H␛[?25h␛[?2026l")
        canvas.write("a", at: CellPosition(column: 3, row: 1))
        canvas.cursor = CellPosition(column: 4, row: 1)
        #expect(painter.said(canvas) == "␛[?2026h␛[?25la␛[?25h␛[?2026l")
        canvas.cursor = CellPosition(column: 40, row: 1)
        #expect(painter.said(canvas) == "␛[?2026h␛[?25l␛[?2026l", "a cursor outside is none")
    }

    @Test func `A terminal gets only the colours that it supports, or none if the user wants none`() {
        var canvas = Canvas(TerminalSize(columns: 1, rows: 1))
        let style = Style(.mixed(red: 5, green: 0, blue: 0), on: .brightBlue, .bold)
        canvas.write("x", at: CellPosition(column: 0, row: 0), style)
        func said(_ depth: ColourDepth) -> String {
            var painter = Painter(TerminalTraits(colours: depth, isUnicode: true), isSynchronized: false)
            _ = painter.paint(Canvas(canvas.size))
            return painter.said(canvas)
        }
        #expect(said(.twoHundredFiftySix) == "␛[H␛[1;38;5;196;104mx")
        #expect(said(.sixteen) == "␛[H␛[1;91;104mx")
        #expect(said(.none) == "␛[H␛[1mx")
    }

    @Test func `A terminal without Unicode gets ASCII in the same places`() {
        var canvas = Canvas(TerminalSize(columns: 9, rows: 3))
        canvas.box(canvas.area, .round)
        canvas.write("●日é…", at: CellPosition(column: 1, row: 1))
        var painter = Painter(TerminalTraits(colours: .none, isUnicode: false), isSynchronized: false)
        #expect(painter.said(canvas) == "␛[?25l␛[m␛[2J␛[H+-------+␛[2H|o???.  |␛[3H+-------+")
    }
}

extension Painter {
    /// Returns the painted bytes in a readable form.
    fileprivate mutating func said(_ canvas: Canvas) -> String {
        String(String(decoding: paint(canvas), as: UTF8.self).map { $0 == "\u{1B}" ? "␛" : $0 })
    }
}
