import NighTestKit
import Testing

@testable import NighCore

@Suite struct ServiceNameTests {
    @Test func `A service has a name that RFC 6335 allows`() {
        for text in ["fourinarow", "a", "x-y-z", "http2", "2048game", "abcdefghijklmno"] {
            #expect(ServiceName(text)?.description == text)
        }
        for text in [
            "", "abcdefghijklmnop", "Fourinarow", "four_in_a_row", "four in", "-four", "four-", "four--row",
            "1234", "2-4", "fünf", "four.row", "four\n", "ｆour",
        ] {
            #expect(ServiceName(text) == nil, "\(text)")
        }
    }
}

@Suite struct DisplayNameTests {
    @Test func `A name is kept as written`() {
        for text in ["Puma", "Ada’s phone", "プーマ", "👩‍👩‍👧‍👦", String(repeating: "x", count: 63)] {
            #expect(DisplayName(exactly: text)?.description == text)
            #expect(DisplayName(fitting: text).description == text)
        }
    }

    @Test func `Invalid names are rejected`() {
        for text in [
            "", String(repeating: "x", count: 64), "a\nb", "\u{7}", "\u{1B}[31mred", "a\u{0}", "\u{9B}31m",
        ] {
            #expect(DisplayName(exactly: text) == nil)
        }
    }

    private static let blank = [
        " ", "   ", "\u{A0}", "\u{2003}\u{200B}", "\u{200E}\u{202E}", "\u{FEFF}", "\u{3164}",
        "\u{115F}\u{1160}", "\u{2800}", "\u{FE0F}", "\u{61C} \u{AD}",
    ]

    @Test(arguments: blank)
    func `A name of white space and invisible characters cannot be chosen, and shows a peer's PeerID`(
        text: String
    ) {
        #expect(DisplayName(exactly: text) == nil)
        #expect(DisplayName(fitting: text).description == "unnamed")
        #expect(DisplayName(exactly: "\(text).")?.description == "\(text).")
        let peer = Identity.ephemeral(seed: 1).peerID
        #expect(DisplayName(text, of: peer)?.description == peer.short)
        #expect(DisplayName(fitting: text, of: peer).description == peer.short)
        #expect(DisplayName("Puma", of: peer)?.description == "Puma")
        #expect(DisplayName("", of: peer) == nil && DisplayName("a\n", of: peer) == nil)
    }

    @Test func `Fitting makes the closest valid name`() {
        #expect(DisplayName(fitting: "").description == "unnamed")
        #expect(DisplayName(fitting: "\u{0}\r\n").description == "unnamed")
        #expect(DisplayName(fitting: "Pu\nma\u{1B}").description == "Puma")
        let long = DisplayName(fitting: String(repeating: "ä", count: 40)).description
        #expect(long == String(repeating: "ä", count: 31), "no half characters")
        let family = String(repeating: "👩‍👩‍👧‍👦", count: 3)
        #expect(DisplayName(fitting: family).description == String(repeating: "👩‍👩‍👧‍👦", count: 2))
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `Every fitted name is valid`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var text = ""
        for _ in 0..<Int.random(in: 0..<100, using: &random) {
            if let scalar = Unicode.Scalar(UInt32.random(in: 0..<0x3000, using: &random)) {
                text.unicodeScalars.append(scalar)
            }
        }
        let name = DisplayName(fitting: text)
        #expect(DisplayName(exactly: name.description) == name)
    }
}

/// Tests that one of two peers with the same name gets a number.
@Suite struct NumberedNameTests {
    @Test(arguments: [
        ("Puma", "Puma", 1), ("Puma #2", "Puma", 2), ("Puma #999999", "Puma", 999_999),
        ("Puma #1000000", "Puma #1000000", 1), ("Puma #0", "Puma #0", 1), ("Puma #02", "Puma #02", 1),
        ("Puma#2", "Puma#2", 1), ("Puma #", "Puma #", 1), ("Puma #2 #3", "Puma #2", 3), (" #2", "", 2),
    ])
    func `Only an appended number is recognized`(_ name: String, _ stem: String, _ number: Int) {
        let numbered = NumberedName(name)
        #expect(numbered.stem == stem && numbered.number == number)
    }

    @Test func `The next number fits into the limit`() {
        for (name, limit, next) in [
            ("Puma", 63, "Puma #2"), ("Puma #9", 63, "Puma #10"), ("Puma", 7, "Puma #2"),
            ("Puma", 6, "Pum #2"),
        ] {
            #expect(NumberedName(name).next(limit: limit) == next)
        }
    }

    /// A program that has found "Puma #2" must not end up with a second "Puma".
    @Test func `A peer with a numbered name uses that name`() throws {
        let network = SimulatedNetwork()
        let puma = network.join("Puma")
        let lynx = network.join("Lynx", role: .server)
        try network.run(for: .seconds(1))
        let driver = puma.session.driver
        driver.advertised(as: DisplayName(fitting: "Puma #2"), by: driver.transports[0])
        puma.invite(lynx)
        try network.run(for: .seconds(1))
        #expect(lynx.peer(puma.id)?.name == "Puma #2")
    }
}

@Suite struct ShellWordTests {
    @Test(arguments: [
        ("Puma", "Puma"), ("tcp://10.0.0.7:4000", "tcp://10.0.0.7:4000"), ("a b", "'a b'"),
        ("Anna's laptop", #"'Anna'\''s laptop'"#), ("$(reboot)", "'$(reboot)'"), ("~", "'~'"),
        ("", "''"), ("K\u{FC}che", "'K\u{FC}che'"), ("a;b", "'a;b'"), ("#1", "'#1'"),
    ])
    func `A suggested word reaches the program as it is, and is quoted only if a shell would change it`(
        _ text: String, _ word: String
    ) {
        #expect(ShellWord.quoted(text) == word)
        #expect(ShellWord.operand(text) == word)
        // An operand that begins with a hyphen is not taken for an option.
        #expect(ShellWord.operand("-x y") == "-- '-x y'")
    }
}

@Suite struct DiscoveryInfoTests {
    @Test func `Pairs are kept`() throws {
        let info = try DiscoveryInfo(["table": "open", "elo": "", "say": "a=b ü"])
        #expect(info["table"] == "open" && info["elo"] == "" && info["say"] == "a=b ü" && info["none"] == nil)
        #expect(info.byteCount == 1 + 10 + 1 + 4 + 1 + 10)
        #expect(try DiscoveryInfo([:]) == .none)
    }

    /// In a DNS text record, the case of keys has no meaning (RFC 6763, section 6.4), so one of two keys that differ in
    /// case only would be lost.
    @Test func `Invalid and reserved keys are refused`() {
        for key in ["", "a=b", "tab\t", "schlüssel", "del\u{7F}"] {
            #expect(refusal([key: "x"])?.cause == .invalid("discovery info key \"\(key)\""))
        }
        for key in ["v", "id", "V", "Id", "ID"] {
            #expect(refusal([key: "x"])?.advice?.contains("are reserved") == true)
        }
        let advice = refusal(["Table": "1", "table": "2"])?.advice
        #expect(advice?.contains("upper and lower case") == true)
    }

    @Test func `A pair has at most 255 bytes, and all have 400`() throws {
        func text(_ count: Int, of character: String = "x") -> String {
            String(repeating: character, count: count)
        }
        #expect(try DiscoveryInfo(["key": text(251)]).byteCount == 256)
        #expect(try DiscoveryInfo([text(200, of: "k"): text(54)]).byteCount == 256)
        for (key, value) in [
            (text(200, of: "k"), text(55)), ("key", text(252)), ("key", text(126, of: "ü")),
        ] {
            let error = refusal([key: value])
            #expect(error?.cause == .limit("discovery info pair", 255))
            #expect(error?.advice?.contains("\"\(key)\"") == true)
        }
        #expect(try DiscoveryInfo(["a": text(197), "b": text(197)]).byteCount == 400)
        #expect(refusal(["a": text(197), "b": text(198)])?.cause == .limit("discovery info", 400))
    }

    private func refusal(_ pairs: [String: String]) -> NighError? {
        let error = #expect(throws: NighError.self) { try DiscoveryInfo(pairs) }
        #expect(error?.stage == .configuring)
        return error
    }
}
