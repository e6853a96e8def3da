import NighCore
import Testing

@testable import Terminal

@Suite struct CellTextTests {
    @Test(arguments: [
        ("a", 1), ("é", 1), ("e\u{301}", 1), ("日", 2), ("ｗ", 2), ("한", 2),
        ("\u{1112}\u{1161}\u{11AB}", 2),
        ("●", 1), ("─", 1), ("🎉", 2), ("🇩🇪", 2), ("नमस्ते", 4), ("กำ", 2), ("", 0), ("ffi", 3), ("⌚", 2),
        ("☃", 1),
    ])
    func `Characters have the width on which terminals agree`(text: String, columns: Int) {
        #expect(CellText(text).columns == columns, "\(text)")
    }

    @Test func `Characters that could control the terminal or reverse the text are replaced`() {
        #expect(CellText("\u{1B}[31mred\u{7F}\u{9B}2J").string == "\u{FFFD}[31mred\u{FFFD}\u{FFFD}2J")
        #expect(
            CellText("a\u{202E}b\u{2066}c\u{200F}d\u{2028}").string == "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}")
        #expect(CellText("a\tb\r\nc\u{A0}d\u{85}").string == "a b c d\u{FFFD}")
        #expect(CellText("\u{301}\u{200D}\u{3164}\u{FEFF}\u{AD}").string.allSatisfy { $0 == "\u{FFFD}" })
    }

    @Test
    func `A character whose width differs between terminals is reduced to the part on which they agree`() {
        #expect(CellText("👩‍👩‍👧").string == "👩")
        #expect(CellText("👍🏽").string == "👍")
        #expect(CellText("❤️").string == "❤")
        #expect(CellText("z\u{300}\u{301}\u{302}\u{303}\u{304}").string == "z\u{300}\u{301}\u{302}")
    }

    @Test func `Every scalar becomes a harmless character of one or two cells`() {
        for value in 0...0x10_FFFF as ClosedRange<UInt32> {
            // Of planes without characters, only a sample is tried.
            guard let scalar = Unicode.Scalar(value), value < 0x3_2000 || value % 997 == 0 || value > 0xE_0000
            else {
                continue
            }
            guard value < 0xE_1000 || value % 997 == 0 else { continue }
            let piece = CellText.piece(Character(scalar))
            let shown = piece.character.unicodeScalars
            let isHarmless = shown.allSatisfy {
                $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) && $0.properties.generalCategory != .format
            }
            if !isHarmless || !(1...2 ~= piece.columns) { Issue.record("\(value) becomes \(piece)") }
        }
    }

    @Test func `Text that does not fit ends with an ellipsis, without half a character`() {
        #expect(CellText("four").fitting(4).string == "four")
        #expect(CellText("fours").fitting(4).string == "fou…")
        #expect(CellText("日本語").fitting(4).string == "日…")
        #expect(CellText("日本語").fitting(0).string == "")
    }

    @Test func `Lines break at spaces, and inside words only if necessary`() {
        func lines(_ text: String, _ columns: Int) -> [String] {
            CellText(text).lines(of: columns).map(\.string)
        }
        #expect(lines("the quick brown fox", 9) == ["the quick", "brown fox"])
        #expect(lines("the quick brown fox", 10) == ["the quick", "brown fox"])
        #expect(lines("incomprehensible", 6) == ["incomp", "rehens", "ible"])
        #expect(lines("日本語", 5) == ["日本", "語"])
        #expect(lines("", 5) == [""])
        for seed in 0..<200 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            let letters = (0..<30).map { _ in "ab 日🎉".randomElement(using: &chance) ?? " " }
            let columns = Int.random(in: -1...12, using: &chance)
            let lines = CellText(String(letters)).lines(of: columns)
            #expect(lines.allSatisfy { $0.columns <= max(columns, 2) }, "seed \(seed)")
            #expect(
                Array(lines.joined()).filter { $0 != " " } == letters.filter { $0 != " " }, "seed \(seed)")
        }
    }
}

extension [CellText] {
    fileprivate func joined() -> String { map(\.string).joined() }
}
