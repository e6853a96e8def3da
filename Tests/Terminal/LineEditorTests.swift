import NighCore
import Terminal
import Testing

@Suite struct LineEditorTests {
    private func typed(_ inputs: [Input], into editor: inout LineEditor) {
        for input in inputs {
            let isTaken = editor.handle(input)
            #expect(isTaken, "\(input)")
        }
    }

    /// The visible part of the line, and the column of the cursor.
    private func seen(_ editor: LineEditor, _ columns: Int) -> (String, Int?) {
        var canvas = Canvas(TerminalSize(columns: columns + 2, rows: 1))
        canvas.write(String(repeating: ".", count: columns + 2), at: CellPosition(column: 0, row: 0))
        editor.draw(into: &canvas, at: CellPosition(column: 1, row: 0), columns: columns)
        return (canvas.text, canvas.cursor?.column)
    }

    @Test func `Typing, moving and deleting work as in other editors`() {
        var editor = LineEditor(limit: 100)
        typed([.character("a"), .character("c"), .key(.left), .character("b")], into: &editor)
        #expect(editor.text == "abc")
        typed(
            [.key(.home), .key(.delete), .key(.left), .key(.end), .key(.backspace), .key(.right)],
            into: &editor)
        #expect(editor.text == "b")
        typed([.paste(" two three"), .control("w")], into: &editor)
        #expect(editor.text == "b two ")
        typed([.key(.left), .key(.left), .control("k")], into: &editor)
        #expect(editor.text == "b tw")
        typed([.key(.left), .control("u")], into: &editor)
        #expect(editor.take() == "w")
        #expect(editor.isEmpty)
        for input in [.key(.enter), .key(.up), .focus(true)] as [Input] {
            let isTaken = editor.handle(input)
            #expect(!isTaken, "\(input)")
        }
    }

    @Test func `A character is deleted whole, with its accents`() {
        var editor = LineEditor("a", limit: 100)
        typed([.character("e"), .character("\u{301}"), .paste("👩‍👩‍👧")], into: &editor)
        #expect(editor.text == "ae\u{301}👩‍👩‍👧")
        typed([.key(.backspace)], into: &editor)
        #expect(editor.text == "ae\u{301}")
        typed([.key(.backspace)], into: &editor)
        #expect(editor.text == "a")
    }

    @Test func `Harmful characters are dropped, and line ends become spaces`() {
        var editor = LineEditor("x\u{1B}[31m\u{202E}", limit: 100)
        typed([.paste("a\r\nb\u{9B}"), .character("\u{2066}")], into: &editor)
        #expect(editor.text == "x[31ma b")
    }

    @Test func `The text never exceeds its limit in bytes`() {
        var editor = LineEditor("日本語", limit: 7)
        #expect(editor.text == "日本")
        typed(
            [.character("é"), .character("a"), .character("b"), .key(.home), .character("c"), .paste("d")],
            into: &editor)
        #expect(editor.text == "日本a")
    }

    @Test func `The part with the cursor is visible, and half a wide character is a space`() {
        var editor = LineEditor("four in a row", limit: 100)
        #expect(seen(editor, 20) == (".four in a row       .", 14))
        #expect(seen(editor, 13) == (".n a row      .", 8))
        #expect(seen(editor, 6) == (". row  .", 5))
        typed([.key(.home)], into: &editor)
        #expect(seen(editor, 6) == (".four i.", 1))
        #expect(seen(editor, 1) == (".f.", 1))
        #expect(seen(LineEditor("日本語", limit: 100), 4) == (".語  .", 3))
    }

    @Test func `The cursor is always visible, whatever is typed`() {
        for seed in 0..<200 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            let columns = Int.random(in: 1...9, using: &chance)
            var editor = LineEditor(limit: 60)
            let inputs: [Input] = [
                .character("a"), .character("日"), .character("🎉"), .paste("one two"), .key(.left),
                .key(.left),
                .key(.home), .key(.backspace), .key(.delete),
            ]
            for _ in 0..<30 {
                typed([inputs.randomElement(using: &chance) ?? .key(.left)], into: &editor)
                let (text, cursor) = seen(editor, columns)
                #expect(1...columns ~= cursor ?? 0, "seed \(seed)")
                #expect(text.first == "." && text.last == ".", "seed \(seed)")
                #expect(editor.text.utf8.count <= 60, "seed \(seed)")
            }
        }
    }
}
