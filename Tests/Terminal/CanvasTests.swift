import Terminal
import Testing

@Suite struct CanvasTests {
    private func canvas(_ columns: Int, _ rows: Int) -> Canvas {
        Canvas(TerminalSize(columns: columns, rows: rows))
    }

    @Test func `Text is cut at the borders, and at the given width`() {
        var canvas = canvas(8, 3)
        #expect(canvas.write("abcdef", at: CellPosition(column: 5, row: 0)) == 6)
        canvas.write("abcdef", at: CellPosition(column: -3, row: 1))
        #expect(canvas.write("abcdef", at: CellPosition(column: 2, row: 2), columns: 4) == 4)
        canvas.write("nowhere", at: CellPosition(column: 0, row: 3))
        canvas.write("nowhere", at: CellPosition(column: 0, row: -1))
        #expect(canvas.text == "     abc\ndef\n  abcd")
    }

    @Test func `A wide character takes two cells, and half of one is a space`() {
        var canvas = canvas(6, 5)
        #expect(canvas.write("日本x", at: CellPosition(column: 0, row: 0)) == 5)
        canvas.write("日本", at: CellPosition(column: -1, row: 1))
        canvas.write("日本", at: CellPosition(column: 3, row: 2))
        #expect(canvas.write("日本", at: CellPosition(column: 0, row: 3), columns: 3) == 3)
        canvas.write("日本", at: CellPosition(column: 0, row: 4))
        canvas.write("-", at: CellPosition(column: 1, row: 4))
        canvas.write("|", at: CellPosition(column: 2, row: 4))
        #expect(canvas.text == "日本x\n 本\n   日\n日\n -|")
    }

    @Test func `Boxes and lines are drawn completely, and end at the border`() {
        var canvas = canvas(7, 4)
        canvas.box(CellArea(column: 0, row: 0, columns: 4, rows: 3))
        canvas.box(CellArea(column: 5, row: 2, columns: 4, rows: 4), .double)
        canvas.box(CellArea(column: 0, row: 3, columns: 1, rows: 1))
        canvas.line(from: CellPosition(column: 4, row: 0), columns: 9, .heavy)
        #expect(canvas.text == "┌──┐━━━\n│  │\n└──┘ ╔═\n     ║")
    }

    @Test func `A canvas drawn onto another covers only the area below it`() {
        var (below, above) = (canvas(5, 2), canvas(3, 2))
        below.fill(below.area, with: ".")
        above.write("日a", at: CellPosition(column: 0, row: 0))
        below.place(above, at: CellPosition(column: 3, row: 1))
        #expect(below.text == ".....\n...日")
    }

    @Test func `An area knows which cells are inside it and inside its border`() {
        let area = CellArea(column: 2, row: 1, columns: 3, rows: 2)
        #expect(area.contains(CellPosition(column: 4, row: 2)))
        #expect(!area.contains(CellPosition(column: 5, row: 2)))
        #expect(!area.contains(CellPosition(column: 4, row: 3)))
        #expect(area.inside == CellArea(column: 3, row: 2, columns: 1, rows: 0))
        #expect(area.inside.rows.isEmpty)
    }

    @Test func `A terminal holds a size only if neither side is too small`() {
        let usual = TerminalSize(columns: 80, rows: 24)
        #expect(usual.holds(usual))
        #expect(!TerminalSize(columns: 79, rows: 50).holds(usual))
        #expect(!TerminalSize(columns: 200, rows: 23).holds(usual))
    }

    @Test func `Drawing with impossible sizes has no effect`() {
        var canvas = canvas(-1, 3)
        canvas.write("x", at: CellPosition(column: 0, row: 0))
        canvas.fill(CellArea(column: 0, row: 0, columns: -4, rows: -4), with: "x")
        canvas.box(CellArea(column: -2, row: -2, columns: 40, rows: 40))
        #expect(canvas.text == "\n\n")
    }
}
