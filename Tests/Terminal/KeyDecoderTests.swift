import NighCore
import Terminal
import Testing

@Suite struct KeyDecoderTests {
    private func decoded(_ text: String) -> [Input] { decoded(Array(text.utf8)) }

    private func decoded(_ bytes: [UInt8]) -> [Input] {
        var decoder = KeyDecoder()
        return decoder.feed(bytes) + decoder.flush()
    }

    @Test("Typed characters are decoded as they are")
    func text() {
        #expect(decoded("aé日🎉") == [.character("a"), .character("é"), .character("日"), .character("🎉")])
        #expect(
            decoded("\r\n\t\u{7F}\u{8}") == [
                .key(.enter), .key(.enter), .key(.tab), .key(.backspace), .key(.backspace),
            ])
        #expect(
            decoded("\u{1}\u{3}\u{1A}\u{1C}\u{0}") == [
                .control("a"), .control("c"), .control("z"), .control("\\"), .control("@"),
            ])
    }

    @Test("Bytes that are not UTF-8 become U+FFFD as in Swift's own decoder")
    func invalid() {
        for seed in 0..<300 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            let choices: [UInt8] = [
                0x41, 0x80, 0xBF, 0xC1, 0xC3, 0xA9, 0xE0, 0xA0, 0xED, 0x9F, 0xF0, 0x90, 0xF4, 0x8F, 0xF5,
                0xFF,
            ]
            let bytes = (0..<12).map { _ in choices.randomElement(using: &chance) ?? 0 } + [0x2E]
            let wanted = String(decoding: bytes, as: UTF8.self).unicodeScalars.filter {
                !(0x80...0x9F ~= $0.value)
            }
            #expect(decoded(bytes) == wanted.map(Input.character), "seed \(seed)")
        }
    }

    @Test(
        "Keys are recognised in every encoding that terminals use",
        arguments: [
            ("[A", .up), ("OB", .down), ("[1;5C", .right), ("OD", .left), ("[H", .home), ("[1~", .home),
            ("[7~", .home),
            ("[F", .end), ("[4~", .end), ("OF", .end), ("[2~", .insert), ("[3~", .delete), ("[3;2~", .delete),
            ("[5~", .pageUp), ("[6~", .pageDown), ("[Z", .backTab), ("OP", .function(1)),
            ("[[E", .function(5)),
            ("[15~", .function(5)), ("[17~", .function(6)), ("[24~", .function(12)), ("[1;2S", .function(4)),
            ("OM", .enter),
        ] as [(String, Input.Key)])
    func keys(sequence: String, key: Input.Key) {
        #expect(decoded("\u{1B}\(sequence)x") == [.key(key), .character("x")])
    }

    @Test("A single ESC is the key if nothing follows, and otherwise the beginning of a sequence")
    func escape() {
        var decoder = KeyDecoder()
        #expect(decoder.feed([0x1B]) == [])
        #expect(decoder.isUndecided)
        #expect(decoder.flush() == [.key(.escape)])
        #expect(!decoder.isUndecided)
        #expect(decoder.flush() == [])
        #expect(decoder.feed([0x1B]) == [])
        #expect(decoder.feed(Array("[A".utf8)) == [.key(.up)])
        #expect(decoded("\u{1B}\u{1B}") == [.key(.escape), .key(.escape)])
        #expect(decoded("\u{1B}q\u{1B}]") == [.alternate("q"), .alternate("]")])
        #expect(decoded("\u{1B}\u{3}") == [.key(.escape), .control("c")])
    }

    @Test("The mouse is decoded with its cell")
    func mouse() {
        func mouse(_ report: String) -> [Input] { decoded("\u{1B}[<\(report)") }
        let cell = CellPosition(column: 9, row: 4)
        #expect(mouse("0;10;5M") == [.mouse(MouseInput(.press(.left), at: cell))])
        #expect(mouse("2;10;5m") == [.mouse(MouseInput(.release(.right), at: cell))])
        #expect(mouse("16;10;5M") == [.mouse(MouseInput(.press(.left), at: cell))], "with Ctrl held down")
        #expect(mouse("35;10;5M") == [.mouse(MouseInput(.move(nil), at: cell))])
        #expect(mouse("33;10;5M") == [.mouse(MouseInput(.move(.middle), at: cell))])
        #expect(mouse("64;10;5M65;10;5M").first == .mouse(MouseInput(.wheelUp, at: cell)))
        #expect(mouse("65;10;5M") == [.mouse(MouseInput(.wheelDown, at: cell))])
        for nonsense in [
            "0;0;5M", "128;1;1M", "66;1;1M", "0;1M", "0;1;1;1M", "0;9999999;1M", ";;;M", "-1;-1;-1M",
            "0;1;1A",
        ] {
            #expect(mouse("\(nonsense)x") == [.character("x")], "\(nonsense)")
        }
    }

    @Test("A paste is one event, whatever it contains, and has a maximum length")
    func paste() {
        #expect(
            decoded("\u{1B}[200~a\r\u{1B}[A\u{1B}[20\u{1B}[201~b") == [
                .paste("a\r\u{1B}[A\u{1B}[20"), .character("b"),
            ])
        let long = String(repeating: "x", count: 100_000)
        #expect(
            decoded("\u{1B}[200~\(long)\u{1B}[201~b") == [
                .paste(String(long.prefix(KeyDecoder.longestPaste))), .character("b"),
            ])
    }

    @Test("A terminal that gains or loses the focus is decoded")
    func focus() { #expect(decoded("\u{1B}[I\u{1B}[O") == [.focus(true), .focus(false)]) }

    @Test(
        "An unknown sequence is skipped completely",
        arguments: [
            "\u{1B}[?1;2c", "\u{1B}[97;5u", "\u{1B}[99~", "\u{1B}[~", "\u{1B}[1 A", "\u{1B}Oz", "\u{1B}[M !!",
            "\u{1B}[[z",
            "\u{1B}]11;rgb:0000/0000\u{7}", "\u{1B}]0;title\u{1B}\\", "\u{1B}P1$r0m\u{1B}\\",
            "\u{1B}_G\u{1B}\\",
            "\u{1B}[\(String(repeating: "1;", count: 5_000))A", "\u{1B}[12\u{18}", "\u{9B}",
        ])
    func unknown(sequence: String) { #expect(decoded(sequence + "x") == [.character("x")]) }

    @Test("Ctrl-C is decoded in the middle of everything but a paste")
    func interruption() {
        for beginning in ["\u{1B}[1;", "\u{1B}O", "\u{1B}]0;title", "\u{1B}P", "\u{1B}[["] {
            #expect(decoded(beginning + "\u{3}x") == [.control("c"), .character("x")], "\(beginning)")
        }
    }

    @Test("Bytes have the same meaning however they are split, and none of them traps")
    func splitting() {
        let pieces = [
            "a", "é日", "🎉", "\u{1B}", "\u{1B}[A", "\u{1B}OP", "\u{1B}[<0;3;4M",
            "\u{1B}[200~pa\u{1B}ste\u{1B}[201~",
            "\u{1B}]0;x\u{7}", "\u{1B}[[A", "\u{1B}[", "\u{1B}[M", "\u{3}", "\r", ";", "[", "~",
            "\u{1B}[200~", "\u{1B}P",
        ].map { Array($0.utf8) }
        for seed in 0..<300 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            var bytes: [UInt8] = []
            for _ in 0..<20 {
                if chance.oneIn(3) {
                    bytes += (0..<Int.random(in: 1...4, using: &chance)).map { _ in
                        .random(in: 0...255, using: &chance)
                    }
                } else {
                    bytes += pieces.randomElement(using: &chance) ?? []
                }
            }
            var (whole, parts) = (KeyDecoder(), KeyDecoder())
            let wanted = whole.feed(bytes)
            var found: [Input] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...min(rest.count, 7), using: &chance)
                found += parts.feed(rest.prefix(count))
                rest = rest.dropFirst(count)
            }
            #expect(found == wanted, "seed \(seed)")
            let last = whole.flush()
            #expect(parts.flush() == last, "seed \(seed)")
        }
    }
}
