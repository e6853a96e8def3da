import Testing

@testable import NighCore

@Suite struct PrefaceTests {
    private func read(_ bytes: [UInt8]) throws(WireError) -> Preface {
        try Frames.reading(bytes, Preface.init(reading:))
    }

    @Test func `A preface is read as it was written, and bits without a meaning are ignored`() throws {
        for security: Preface.Security in [.plaintext, .tls13, [.plaintext, .tls13], []] {
            let bytes = Preface(security: security).bytes
            #expect(bytes.count == Preface.byteCount && bytes.starts(with: "NIGH".utf8))
            #expect(try read(bytes).security == security)
        }
        let preface = try read(Array("NIGH".utf8) + [1, 0b1111_0001, 0xFF, 0xFF])
        #expect(preface.security.contains(.plaintext))
        #expect(preface.security.strongestCommon(with: .plaintext) == .plaintext)
    }

    @Test func `Foreign prefaces are refused`() {
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

    @Test func `The strongest common security is chosen`() {
        let both: Preface.Security = [.plaintext, .tls13]
        #expect(both.strongestCommon(with: both) == .tls13)
        #expect(both.strongestCommon(with: .plaintext) == .plaintext)
        #expect(both.strongestCommon(with: .tls13) == .tls13)
        #expect(Preface.Security.tls13.strongestCommon(with: .plaintext) == nil)
        #expect(both.strongestCommon(with: []) == nil)
        let unknown = Preface.Security(rawValue: 0x80)
        #expect(unknown.strongestCommon(with: unknown) == nil)
    }
}

@Suite struct HelloTests {
    private func read(_ bytes: [UInt8]) throws(WireError) -> Hello {
        try Frames.reading(bytes, Hello.init(reading:))
    }

    /// The payload of a hello with these texts in place of its service and its name.
    private func payload(service: String = "test", name: String) -> [UInt8] {
        let fixed = 2 + 4 + PeerID.byteCount + 8 + 4 + 4
        return [service, name].reduce(Array(Frames.hello().payload.prefix(fixed))) {
            $0 + [UInt8($1.utf8.count)] + Array($1.utf8)
        }
    }

    @Test func `A hello is read as it was written, and not if it is cut short`() throws {
        let hello = Frames.hello(
            seed: 9, incarnation: .max, service: "four-in-a-row", name: "Püma 🐾", versions: 1...255,
            maximumFrame: Int(UInt32.max), maximumMessage: 0)
        #expect(try read(hello.payload) == hello)
        for count in 0..<hello.payload.count {
            #expect(throws: WireError.self) { try read(Array(hello.payload.prefix(count))) }
        }
    }

    @Test func `The bits for streams and for files are those that the page of the protocol names`() throws {
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

    @Test func `A hello that accepts files and has no streams accepts nothing`() throws {
        var hello = Frames.hello()
        hello.abilities = 0b10
        #expect(try read(hello.payload).streams == nil)
        hello.abilities = 0b11
        #expect(throws: WireError.malformed("the hello has streams without their field")) {
            try read(hello.payload)
        }
    }

    @Test func `Extension fields are skipped unless they are critical`() throws {
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

    @Test func `Of two fields with one tag each must keep to its rule, and the last one counts`() throws {
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

    @Test func `A hello with an invalid service or name, or with impossible numbers, is refused`() {
        for service in ["", "-a", "a--b", "UPPER", "sixteen-letters-", "123", "a b", "a\u{0}"] {
            #expect(throws: WireError.malformed("the hello's service name is invalid")) {
                try read(payload(service: service, name: "A"))
            }
        }
        for name in ["", "a\u{1B}[2J", "a\nb", "\u{7F}", "\u{85}", String(repeating: "x", count: 64)] {
            #expect(throws: WireError.malformed("the hello's display name is invalid")) {
                try read(payload(name: name))
            }
        }
        for lowest in [0, 2] as [UInt8] {
            var bytes = Frames.hello().payload
            bytes[0] = lowest
            #expect(throws: WireError.malformed("the hello's version range is empty")) { try read(bytes) }
        }
        #expect(throws: WireError.malformed("the hello's frame limit is too small")) {
            try read(Frames.hello(maximumFrame: 8_191).payload)
        }
    }

    @Test func `The blank name of an earlier version is read as the peer's short PeerID`() throws {
        #expect(try read(payload(name: "  ")).name.description == Frames.hello().peer.short)
    }

    @Test(
        arguments: [
            (1...1, 1...1, 1), (1...1, 1...2, 1), (1...3, 2...9, 3), (1...1, 2...2, nil),
            (4...255, 1...3, nil),
        ] as [(ClosedRange<UInt8>, ClosedRange<UInt8>, UInt8?)])
    func `The highest common version is spoken`(
        _ left: ClosedRange<UInt8>, _ right: ClosedRange<UInt8>, _ common: UInt8?
    ) {
        #expect(Frames.hello(versions: left).commonVersion(with: right) == common)
    }
}
