import NighCore
import Terminal
import Testing

struct KeyDecoderTests {
    private static func decoded(_ text: String) -> [Input] { decoded(Array(text.utf8)) }

    private static func decoded(_ bytes: [UInt8]) -> [Input] {
        var decoder = KeyDecoder()
        return decoder.feed(bytes) + decoder.flush()
    }

    private static func mouse(_ action: MouseInput.Action) -> Input {
        .mouse(MouseInput(action, at: CellPosition(column: 9, row: 4)))
    }

    private static let longPaste = String(repeating: "x", count: 100_000)

    private static let inputs: [(String, [Input])] = [
        ("aé日🎉", [.character("a"), .character("é"), .character("日"), .character("🎉")]),
        ("\r\n\t", [.key(.enter), .key(.enter), .key(.tab)]),
        ("\u{7F}\u{8}", [.key(.backspace), .key(.backspace)]),
        ("\u{1}\u{3}\u{1A}", [.control("a"), .control("c"), .control("z")]),
        ("\u{1C}\u{0}", [.control("\\"), .control("@")]),
        // The key Esc, and keys pressed together with Alt.
        ("\u{1B}\u{1B}", [.key(.escape), .key(.escape)]), ("\u{1B}\u{3}", [.key(.escape), .control("c")]),
        ("\u{1B}q\u{1B}]", [.alternate("q"), .alternate("]")]),
        ("\u{1B}[I\u{1B}[O", [.focus(true), .focus(false)]),
        ("\u{1B}[<0;10;5M", [mouse(.press(.left))]), ("\u{1B}[<2;10;5m", [mouse(.release(.right))]),
        ("\u{1B}[<35;10;5M", [mouse(.move(nil))]), ("\u{1B}[<33;10;5M", [mouse(.move(.middle))]),
        ("\u{1B}[<64;10;5M", [mouse(.wheelUp)]), ("\u{1B}[<65;10;5M", [mouse(.wheelDown)]),
        // With Ctrl held down.
        ("\u{1B}[<16;10;5M", [mouse(.press(.left))]),
        // A paste is one event, whatever it contains, and has a maximum length.
        (
            "\u{1B}[200~a\r\u{1B}[A\u{1B}[20\u{1B}[201~b",
            [.paste("a\r\u{1B}[A\u{1B}[20"), .character("b")]
        ),
        (
            "\u{1B}[200~\(longPaste)\u{1B}[201~b",
            [.paste(String(longPaste.prefix(KeyDecoder.longestPaste))), .character("b")]
        ),
    ]

    @Test func `Characters, keys, the mouse, pastes and the focus are decoded`() {
        for (text, inputs) in Self.inputs {
            #expect(Self.decoded(text) == inputs, "\(text.debugDescription)")
        }
    }

    private static let keys: [(String, Input.Key)] = [
        ("[A", .up), ("OB", .down), ("[1;5C", .right), ("OD", .left), ("[H", .home), ("[1~", .home),
        ("[7~", .home), ("[F", .end), ("[4~", .end), ("OF", .end), ("[2~", .insert), ("[3~", .delete),
        ("[3;2~", .delete), ("[5~", .pageUp), ("[6~", .pageDown), ("[Z", .backTab), ("OP", .function(1)),
        ("[[E", .function(5)), ("[15~", .function(5)), ("[17~", .function(6)), ("[24~", .function(12)),
        ("[1;2S", .function(4)), ("OM", .enter),
    ]

    @Test func `Keys are recognised in every encoding that terminals use`() {
        for (sequence, key) in Self.keys {
            #expect(Self.decoded("\u{1B}\(sequence)x") == [.key(key), .character("x")], "\(sequence)")
        }
    }

    @Test func `A single ESC is the key if nothing follows, and otherwise the beginning of a sequence`() {
        var decoder = KeyDecoder()
        #expect(decoder.feed([0x1B]) == [])
        #expect(decoder.isUndecided)
        #expect(decoder.flush() == [.key(.escape)])
        #expect(!decoder.isUndecided)
        #expect(decoder.flush() == [])
        #expect(decoder.feed([0x1B]) == [])
        #expect(decoder.feed(Array("[A".utf8)) == [.key(.up)])
    }

    private static let unknown = [
        "[?1;2c", "[97;5u", "[99~", "[~", "[1 A", "Oz", "[M !!", "[[z", "]11;rgb:0000/0000\u{7}",
        "]0;title\u{1B}\\", "P1$r0m\u{1B}\\", "_G\u{1B}\\", "[\(String(repeating: "1;", count: 5_000))A",
        "[12\u{18}",
        // Reports of the mouse that make no sense.
        "[<0;0;5M", "[<128;1;1M", "[<66;1;1M", "[<0;1M", "[<0;1;1;1M", "[<0;9999999;1M", "[<;;;M",
        "[<-1;-1;-1M", "[<0;1;1A",
    ]

    @Test func `An unknown sequence is skipped completely`() {
        for sequence in Self.unknown.map({ "\u{1B}\($0)" }) + ["\u{9B}"] {
            #expect(Self.decoded(sequence + "x") == [.character("x")], "\(sequence.debugDescription)")
        }
    }

    @Test(arguments: ["[1;", "O", "]0;title", "P", "[["])
    func `Ctrl-C is decoded in the middle of everything but a paste`(_ beginning: String) {
        #expect(Self.decoded("\u{1B}\(beginning)\u{3}x") == [.control("c"), .character("x")])
    }

    @Test func `Bytes that are not UTF-8 become U+FFFD as in Swift's own decoder`() throws {
        let choices: [UInt8] = [
            0x41, 0x80, 0xBF, 0xC1, 0xC3, 0xA9, 0xE0, 0xA0, 0xED, 0x9F, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF,
        ]
        for seed in 0..<300 as Range<UInt64> {
            var chance = SeededGenerator(seed: seed)
            let bytes = (0..<12).compactMap { _ in choices.randomElement(using: &chance) } + [0x2E]
            let wanted = String(decoding: bytes, as: UTF8.self).unicodeScalars.filter {
                !(0x80...0x9F ~= $0.value)
            }
            #expect(Self.decoded(bytes) == wanted.map(Input.character), "seed \(seed)")
        }
    }

    @Test func `Bytes have the same meaning however they are split, and none of them traps`() {
        let pieces = [
            "a", "é日", "🎉", "\u{1B}", "\u{1B}[A", "\u{1B}OP", "\u{1B}[<0;3;4M",
            "\u{1B}[200~pa\u{1B}ste\u{1B}[201~", "\u{1B}]0;x\u{7}", "\u{1B}[[A", "\u{1B}[", "\u{1B}[M",
            "\u{3}", "\r", ";", "[", "~", "\u{1B}[200~", "\u{1B}P",
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
