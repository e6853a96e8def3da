import NighTestKit
import Testing

@testable import NighCore

@Suite struct ServiceNameTests {
    @Test(arguments: ["fourinarow", "a", "x-y-z", "http2", "2048game", "abcdefghijklmno"])
    func namesAllowedByRFC6335AreAccepted(text: String) {
        #expect(ServiceName(text)?.description == text)
    }

    @Test(arguments: [
        "", "abcdefghijklmnop", "Fourinarow", "four_in_a_row", "four in", "-four", "four-", "four--row",
        "1234", "2-4",
        "fünf", "four.row", "four\n", "ｆour",
    ])
    func namesForbiddenByRFC6335AreRejected(text: String) {
        #expect(ServiceName(text) == nil)
    }
}

@Suite struct DisplayNameTests {
    @Test func aNameIsKeptAsWritten() {
        for text in ["Puma", "Ada’s phone", "プーマ", "👩‍👩‍👧‍👦", String(repeating: "x", count: 63)] {
            #expect(DisplayName(exactly: text)?.description == text)
            #expect(DisplayName(fitting: text).description == text)
        }
    }

    @Test func invalidNamesAreRejected() {
        for text in [
            "", String(repeating: "x", count: 64), "a\nb", "\u{7}", "\u{1B}[31mred", "a\u{0}", "\u{9B}31m",
        ] {
            #expect(DisplayName(exactly: text) == nil)
        }
    }

    private static let blank = [
        " ", "   ", "\u{A0}", "\u{2003}\u{200B}", "\u{200E}\u{202E}", "\u{FEFF}", "\u{3164}",
        "\u{115F}\u{1160}",
        "\u{2800}", "\u{FE0F}", "\u{61C} \u{AD}",
    ]

    @Test("A name of white space and invisible characters cannot be chosen", arguments: blank)
    func blankNamesAreRejected(text: String) {
        #expect(DisplayName(exactly: text) == nil)
        #expect(DisplayName(fitting: text).description == "unnamed")
        #expect(DisplayName(exactly: "\(text).")?.description == "\(text).")
    }

    @Test("A peer with a blank name is shown by its short PeerID", arguments: blank)
    func blankNamesOfPeers(text: String) {
        let peer = Identity.ephemeral(seed: 1).peerID
        #expect(DisplayName(text, of: peer)?.description == peer.short)
        #expect(DisplayName(fitting: text, of: peer).description == peer.short)
        #expect(DisplayName("Puma", of: peer)?.description == "Puma")
        #expect(DisplayName("", of: peer) == nil && DisplayName("a\n", of: peer) == nil)
    }

    @Test func fittingMakesTheClosestValidName() {
        #expect(DisplayName(fitting: "").description == "unnamed")
        #expect(DisplayName(fitting: "\u{0}\r\n").description == "unnamed")
        #expect(DisplayName(fitting: "Pu\nma\u{1B}").description == "Puma")
        let long = DisplayName(fitting: String(repeating: "ä", count: 40)).description
        #expect(long == String(repeating: "ä", count: 31), "no half characters")
        let family = String(repeating: "👩‍👩‍👧‍👦", count: 3)
        #expect(DisplayName(fitting: family).description == String(repeating: "👩‍👩‍👧‍👦", count: 2))
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func everyFittedNameIsValid(seed: UInt64) {
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

@Suite struct DiscoveryInfoTests {
    @Test func pairsAreKept() throws {
        let info = try DiscoveryInfo(["table": "open", "elo": "", "say": "a=b ü"])
        #expect(info["table"] == "open" && info["elo"] == "" && info["say"] == "a=b ü" && info["none"] == nil)
        #expect(info.byteCount == 1 + 10 + 1 + 4 + 1 + 10)
        #expect(try DiscoveryInfo([:]) == .none)
    }

    @Test(arguments: ["", "a=b", "tab\t", "schlüssel", "del\u{7F}"])
    func invalidKeysAreRefused(key: String) {
        let error = refusal([key: "x"])
        #expect(error?.cause == .invalid("discovery info key \"\(key)\""))
        #expect(error?.advice?.contains("printable ASCII") == true)
    }

    @Test(arguments: ["v", "id", "V", "Id", "ID"])
    func reservedKeysAreRefused(key: String) {
        #expect(refusal([key: "x"])?.advice == "'v' and 'id' are reserved; choose another key")
    }

    /// In a DNS text record, the case of keys has no meaning (RFC 6763, section 6.4), so one of the two would be lost.
    @Test func keysThatDifferInCaseOnlyAreRefused() {
        let error = refusal(["Table": "1", "table": "2"])
        #expect(error?.advice?.contains("upper and lower case") == true)
    }

    @Test func aPairHasAtMost255Bytes() throws {
        let info = try DiscoveryInfo(["key": String(repeating: "x", count: 251)])
        #expect(info.byteCount == 256)
        let key = String(repeating: "k", count: 200)
        #expect(try DiscoveryInfo([key: String(repeating: "x", count: 54)])[key]?.count == 54)
        let longer = refusal([key: String(repeating: "x", count: 55)])
        #expect(longer?.cause == .limit("discovery info pair", 255))
        let error = refusal(["key": String(repeating: "x", count: 252)])
        #expect(error?.cause == .limit("discovery info pair", 255))
        #expect(error?.advice?.contains("\"key\"") == true)
        #expect(
            refusal(["key": String(repeating: "ü", count: 126)])?.cause == .limit("discovery info pair", 255))
    }

    @Test func allPairsTogetherHaveAtMost400Bytes() throws {
        let most = ["a": String(repeating: "x", count: 197), "b": String(repeating: "x", count: 197)]
        #expect(try DiscoveryInfo(most).byteCount == 400)
        let more = most.merging(["b": String(repeating: "x", count: 198)]) { $1 }
        #expect(refusal(more)?.cause == .limit("discovery info", 400))
    }

    private func refusal(_ pairs: [String: String]) -> NighError? {
        let error = #expect(throws: NighError.self) { try DiscoveryInfo(pairs) }
        #expect(error?.stage == .configuring)
        return error
    }
}
