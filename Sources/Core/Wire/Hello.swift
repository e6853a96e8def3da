/// The first frame on a link, both ways: who speaks, for which service, and what the sender can take.
package struct Hello: Equatable {
    /// The versions of the protocol this code speaks.
    static let spokenVersions: ClosedRange<UInt8> = 1...1

    package var versions: ClosedRange<UInt8> = Self.spokenVersions
    /// Optional abilities, a bit each; none is defined in version 1.
    package var abilities: UInt32 = 0
    package var peer: PeerID
    package var incarnation: UInt64
    package var service: ServiceName
    package var name: DisplayName
    /// The longest frame payload the sender takes.
    package var maximumFrame: Int
    /// The longest message the sender takes.
    package var maximumMessage: Int
    /// The dialling side's preface and the accepting side's, as the sender of the hello knows them: prefaces go unprotected,
    /// so that both sides compare what they sent and saw once nobody can change it any more. Nil in plaintext.
    package var prefaces: [UInt8]?

    /// A hello of today's version and abilities, without what security adds.
    package init(
        peer: PeerID, incarnation: UInt64, service: ServiceName, name: DisplayName, maximumFrame: Int,
        maximumMessage: Int
    ) {
        self.peer = peer
        self.incarnation = incarnation
        self.service = service
        self.name = name
        self.maximumFrame = maximumFrame
        self.maximumMessage = maximumMessage
    }

    /// The highest version in both ranges.
    func commonVersion(with offered: ClosedRange<UInt8>) -> UInt8? {
        let highest = min(versions.upperBound, offered.upperBound)
        return highest >= max(versions.lowerBound, offered.lowerBound) ? highest : nil
    }

    var payload: [UInt8] {
        var writer = FieldWriter()
        writer.write(versions.lowerBound)
        writer.write(versions.upperBound)
        writer.write(abilities)
        writer.write(raw: peer.bytes)
        writer.write(incarnation)
        writer.write(UInt32(maximumFrame))
        writer.write(UInt32(maximumMessage))
        writer.write(short: service.description)
        writer.write(short: name.description)
        if let prefaces {
            writer.write(Self.prefacesTag)
            writer.write(UInt16(prefaces.count))
            writer.write(raw: prefaces)
        }
        return writer.bytes
    }

    /// What the field with both prefaces begins with.
    private static let prefacesTag: UInt8 = 0x01
}

extension Hello {
    /// Whoever sends less than this could not receive a control frame.
    static let leastMaximumFrame = 8_192

    /// The versions that a hello offers: how it begins in every version of the protocol, also where the rest cannot be read.
    static func versions(of bytes: UnsafeRawBufferPointer) throws(WireError) -> ClosedRange<UInt8> {
        var reader = FieldReader(bytes)
        return try versions(reading: &reader)
    }

    private static func versions(reading reader: inout FieldReader) throws(WireError) -> ClosedRange<UInt8> {
        let lowest = try reader.number(UInt8.self, "the hello's lowest version")
        let highest = try reader.number(UInt8.self, "the hello's highest version")
        guard lowest >= 1, lowest <= highest else { throw .malformed("the hello's version range is empty") }
        return lowest...highest
    }

    /// Reads a hello. Extension fields behind the known ones (tag, length, bytes) are skipped, unless their tag's highest bit
    /// says that they must be understood.
    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        versions = try Self.versions(reading: &reader)
        abilities = try reader.number(UInt32.self, "the hello's abilities")
        guard let peer = PeerID(bytes: try reader.take(PeerID.byteCount, "the hello's PeerID")) else {
            throw .malformed("the hello's PeerID")
        }
        self.peer = peer
        incarnation = try reader.number(UInt64.self, "the hello's incarnation")
        maximumFrame = Int(clamping: try reader.number(UInt32.self, "the hello's frame limit"))
        guard maximumFrame >= Self.leastMaximumFrame else {
            throw .malformed("the hello's frame limit is too small")
        }
        maximumMessage = Int(clamping: try reader.number(UInt32.self, "the hello's message limit"))
        guard let service = ServiceName(try reader.short("the hello's service")) else {
            throw .malformed("the hello's service name is invalid")
        }
        self.service = service
        guard let name = DisplayName(exactly: try reader.short("the hello's name")) else {
            throw .malformed("the hello's display name is invalid")
        }
        self.name = name
        while reader.remaining > 0 {
            let tag = try reader.number(UInt8.self, "a hello field's tag")
            let content = try reader.take(
                Int(try reader.number(UInt16.self, "a hello field's length")), "a hello field")
            if tag == Self.prefacesTag { prefaces = Array(content) }
            guard tag < 0x80 else { throw .malformed("the hello has an unknown critical field \(tag)") }
        }
    }
}
