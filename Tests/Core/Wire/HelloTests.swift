import Testing

@testable import NighCore

@Suite struct PrefaceTests {
    private func read(_ bytes: [UInt8]) throws(WireError) -> Preface {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in try Preface(reading: raw) }
    }

    @Test func roundTrip() throws {
        for security: Preface.Security in [.plaintext, .tls13, [.plaintext, .tls13], []] {
            let bytes = Preface(security: security).bytes
            #expect(bytes.count == Preface.byteCount)
            #expect(Array(bytes.prefix(4)) == Array("NIGH".utf8))
            #expect(try read(bytes).security == security)
        }
    }

    @Test func undefinedBitsAreIgnored() throws {
        let preface = try read(Array("NIGH".utf8) + [1, 0b1111_0001, 0xFF, 0xFF])
        #expect(preface.security.contains(.plaintext))
        #expect(preface.security.strongestCommon(with: .plaintext) == .plaintext)
    }

    @Test func foreignPrefacesAreRefused() {
        #expect(throws: WireError.malformed("the other side does not speak Nigh")) {
            try read(Array("GET / HT".utf8))
        }
        #expect(throws: WireError.malformed("unknown preface layout 2")) {
            try read(Array("NIGH".utf8) + [2, 1, 0, 0])
        }
        for count in [0, 1, 7, 9] {
            #expect(throws: WireError.self) { try read([UInt8](repeating: 78, count: count)) }
        }
    }

    @Test func theStrongestCommonSecurityIsChosen() {
        let both: Preface.Security = [.plaintext, .tls13]
        #expect(both.strongestCommon(with: both) == .tls13)
        #expect(both.strongestCommon(with: .plaintext) == .plaintext)
        #expect(both.strongestCommon(with: .tls13) == .tls13)
        #expect(Preface.Security.tls13.strongestCommon(with: .plaintext) == nil)
        #expect(both.strongestCommon(with: []) == nil)
        #expect(
            Preface.Security(rawValue: 0x80).strongestCommon(with: Preface.Security(rawValue: 0x80)) == nil)
    }
}

@Suite struct HelloTests {
    private func read(_ bytes: [UInt8]) throws(WireError) -> Hello {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in try Hello(reading: raw) }
    }

    /// The offset of the first field behind those of fixed size.
    private static let serviceOffset = 2 + 4 + PeerID.byteCount + 8 + 4 + 4

    @Test func roundTrip() throws {
        let hello = Frames.hello(
            seed: 9, incarnation: .max, service: "four-in-a-row", name: "Püma 🐾", versions: 1...255,
            maximumFrame: Int(UInt32.max), maximumMessage: 0)
        #expect(try read(hello.payload) == hello)
    }

    @Test("The bits for streams and for files are those that the page of the protocol names")
    func streams() throws {
        for acceptsFiles in [false, true] {
            var hello = Frames.hello()
            hello.streams = StreamTerms(streams: 258, window: 70_000, for: acceptsFiles ? [.files] : [])
            #expect(hello.abilities == (acceptsFiles ? 0b11 : 0b01))
            #expect(try read(hello.payload) == hello)
            #expect(try read(hello.payload).streams?.accept(.files) == acceptsFiles)
            hello.streams = nil
            #expect(hello == Frames.hello())
        }
    }

    @Test("A hello that accepts files and has no streams accepts nothing")
    func filesWithoutStreams() throws {
        var hello = Frames.hello()
        hello.abilities = 0b10
        #expect(try read(hello.payload).streams == nil)
        hello.abilities = 0b11
        #expect(throws: WireError.malformed("the hello has streams without their field")) {
            try read(hello.payload)
        }
    }

    @Test func everyTruncationIsRefused() {
        let payload = Frames.hello().payload
        for count in 0..<payload.count {
            #expect(throws: WireError.self, "\(count) bytes") { try read(Array(payload.prefix(count))) }
        }
    }

    @Test func extensionFieldsAreSkippedUnlessTheyAreCritical() throws {
        let hello = Frames.hello()
        let optional: [UInt8] = [0x02, 0, 3, 9, 9, 9, 0x7F, 0, 0]
        #expect(try read(hello.payload + optional) == hello)
        #expect(throws: WireError.malformed("the hello has an unknown critical field 128")) {
            try read(hello.payload + [0x80, 0, 1, 5])
        }
        for count in 1..<6 {
            #expect(throws: WireError.self) { try read(hello.payload + optional.prefix(count)) }
        }
    }

    @Test("Of two fields with one tag each must keep to its rule, and the last one counts")
    func fieldsTwice() throws {
        var hello = Frames.hello()
        hello.streams = StreamTerms(streams: 1, window: 70_000)
        hello.prefaces = Array(0..<16)
        let last: [UInt8] = [0x02, 0, 6, 0, 9, 0, 0, 0, 7, 0x01, 0, 2, 3, 4]
        let twice = try read(hello.payload + last)
        #expect(twice.streams == StreamTerms(streams: 9, window: 7))
        #expect(twice.prefaces == [3, 4])
        let broken: [UInt8] = [0x02, 0, 6, 0, 0, 0, 0, 0, 7]
        #expect(throws: WireError.malformed("the hello has streams without room")) {
            try read(hello.payload + broken + last)
        }
    }

    @Test(arguments: ["", "-a", "a--b", "UPPER", "sixteen-letters-", "123", "a b", "a\u{0}"])
    func invalidServicesAreRefused(_ service: String) {
        let valid = Frames.hello()
        let head = Array(valid.payload.prefix(Self.serviceOffset))
        let text = [UInt8(service.utf8.count)] + Array(service.utf8)
        #expect(throws: WireError.malformed("the hello's service name is invalid")) {
            try read(head + text + [1, 65])
        }
    }

    @Test(arguments: ["", "a\u{1B}[2J", "line\nbreak", "\u{7F}", "\u{85}", String(repeating: "x", count: 64)])
    func invalidNamesAreRefused(_ name: String) {
        let valid = Frames.hello(service: "test")
        let head = Array(valid.payload.prefix(Self.serviceOffset)) + [4] + Array("test".utf8)
        #expect(throws: WireError.malformed("the hello's display name is invalid")) {
            try read(head + [UInt8(name.utf8.count)] + Array(name.utf8))
        }
    }

    @Test("The blank name of an earlier version is read as the peer's short PeerID")
    func blankName() throws {
        let valid = Frames.hello(service: "test")
        let head = Array(valid.payload.prefix(Self.serviceOffset)) + [4] + Array("test".utf8)
        #expect(try read(head + [2, 0x20, 0x20]).name.description == valid.peer.short)
    }

    @Test func impossibleNumbersAreRefused() {
        var payload = Frames.hello().payload
        payload[0] = 2
        #expect(throws: WireError.malformed("the hello's version range is empty")) { try read(payload) }
        payload[0] = 0
        #expect(throws: WireError.malformed("the hello's version range is empty")) { try read(payload) }
        let small = Frames.hello(maximumFrame: 8_191).payload
        #expect(throws: WireError.malformed("the hello's frame limit is too small")) { try read(small) }
    }

    @Test func theHighestCommonVersionIsSpoken() {
        func common(_ left: ClosedRange<UInt8>, _ right: ClosedRange<UInt8>) -> UInt8? {
            Frames.hello(versions: left).commonVersion(with: right)
        }
        #expect(common(1...1, 1...1) == 1)
        #expect(common(1...1, 1...2) == 1)
        #expect(common(1...3, 2...9) == 3)
        #expect(common(1...1, 2...2) == nil)
        #expect(common(4...255, 1...3) == nil)
    }
}
