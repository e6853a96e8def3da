/// The first frame in each direction of a link. It names the sender and its service, and states its limits.
package struct Hello: Equatable {
    /// The protocol versions that this code speaks.
    static let spokenVersions: ClosedRange<UInt8> = 1...1

    package var versions: ClosedRange<UInt8> = Self.spokenVersions
    /// Optional abilities, one per bit; see `Ability`.
    package var abilities: UInt32 = 0
    package var peer: PeerID
    package var incarnation: UInt64
    package var service: ServiceName
    package var name: DisplayName
    /// The longest frame payload that the sender accepts.
    package var maximumFrame: Int
    /// The longest message that the sender accepts.
    package var maximumMessage: Int
    /// The number of streams that the sender accepts, and their windows; nil if it has no streams.
    package var streams: StreamTerms? {
        didSet {
            abilities &= ~(Ability.streams | Ability.purposes)
            if let streams { abilities |= Ability.streams | streams.abilities }
        }
    }
    /// Both prefaces as the sender of the hello sent and received them, the dialling side's first. Nil in plaintext.
    ///
    /// Prefaces are not protected. So both sides compare them here, where nobody can change anything any more.
    package var prefaces: [UInt8]?
    /// The statement of the identity that the sender acts for. Nil if its own key is that identity, and in plaintext.
    package var delegation: Delegation?

    /// Creates a hello of the current version and abilities, without the prefaces.
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

    /// Returns the highest version in both ranges, or nil if there is none.
    func commonVersion(with offered: ClosedRange<UInt8>) -> UInt8? {
        let highest = min(versions.upperBound, offered.upperBound)
        return highest >= max(versions.lowerBound, offered.lowerBound) ? highest : nil
    }

    /// The hello for guests: without datagrams, delegation, and streams that reach beyond this session's program.
    var forGuests: Hello {
        var hello = self
        hello.hasDatagrams = false
        hello.delegation = nil
        hello.acceptsDelegations = false
        hello.streams = streams?.forGuests
        return hello
    }

    /// Whether the sender takes messages of kinds. A bit of `abilities` says so.
    package var acceptsKinds: Bool {
        get { abilities & Ability.kinds != 0 }
        set { abilities = newValue ? abilities | Ability.kinds : abilities & ~Ability.kinds }
    }

    /// Whether the sender may offer to receive datagrams. A bit of `abilities` says so.
    package var hasDatagrams: Bool {
        get { abilities & Ability.datagrams != 0 }
        set { abilities = newValue ? abilities | Ability.datagrams : abilities & ~Ability.datagrams }
    }

    /// Whether the sender understands delegations, so that pairing with it is a pairing of identities. A bit of
    /// `abilities` says so.
    package var acceptsDelegations: Bool {
        get { abilities & Ability.delegations != 0 }
        set { abilities = newValue ? abilities | Ability.delegations : abilities & ~Ability.delegations }
    }

    /// The tag of the field with both prefaces.
    private static let prefacesTag: UInt8 = 0x01
    /// The tag of the field with the terms for streams.
    private static let streamsTag: UInt8 = 0x02
    /// The tag of the field with the delegation.
    private static let delegationTag: UInt8 = 0x03

    /// The bits of `abilities`.
    enum Ability {
        /// Streams: the frames `stream-data` and `stream-control`, and the count at the end of standings. They are used
        /// only if both sides have them.
        static let streams: UInt32 = 1 << 0
        /// The sender accepts streams for files. Without `streams` it means nothing.
        static let files: UInt32 = 1 << 1
        /// The sender takes messages of kinds: frames of type `kindMessage`, and kinds at the end of `begin`.
        static let kinds: UInt32 = 1 << 2
        /// A datagram path: the frame `datagrams`. It is used only if both sides have it.
        static let datagrams: UInt32 = 1 << 3
        /// The sender accepts streams for relays: as the end of a pipe that a common peer carries, or as that peer.
        /// Without `streams` it means nothing.
        static let relays: UInt32 = 1 << 4
        /// The sender understands the field with the delegation.
        static let delegations: UInt32 = 1 << 5
        /// The sender accepts streams for channels. Without `streams` it means nothing.
        static let channels: UInt32 = 1 << 6
        /// The sender accepts streams for calls. Without `streams` it means nothing.
        static let calls: UInt32 = 1 << 7
        /// The sender accepts streams of channels. Without `streams` it means nothing.
        static let channelStreams: UInt32 = 1 << 8
        /// The sender accepts streams for actors. Without `streams` it means nothing.
        static let actors: UInt32 = 1 << 9
        /// The sender accepts streams for forwarded connections. Without `streams` it means nothing.
        static let forwarding: UInt32 = 1 << 10
        /// The sender accepts streams for compared files. Without `streams` it means nothing.
        static let comparedFiles: UInt32 = 1 << 11

        /// The bits of all purposes of streams.
        static let purposes = StreamPurpose.allCases.reduce(0) { $0 | $1.ability }
    }
}

extension Hello: FramePayload {
    package var payloadLength: Int {
        let texts =
            PayloadWriter.length(ofShort: service.description)
            + PayloadWriter.length(ofShort: name.description)
        let fields =
            (streams == nil ? 0 : Self.fieldHeaderLength + StreamTerms.byteCount)
            + (prefaces.map { Self.fieldHeaderLength + $0.count } ?? 0)
            + (delegation == nil ? 0 : Self.fieldHeaderLength + Delegation.byteCount)
        return 2 + 4 + PeerID.byteCount + 8 + 4 + 4 + texts + fields
    }

    /// The length of a field's tag and length.
    private static let fieldHeaderLength = 3

    package func write(to writer: inout PayloadWriter) {
        writer.write(versions.lowerBound)
        writer.write(versions.upperBound)
        writer.write(abilities)
        peer.withBytes { writer.write(raw: $0) }
        writer.write(incarnation)
        writer.write(UInt32(maximumFrame))
        writer.write(UInt32(maximumMessage))
        writer.write(short: service.description)
        writer.write(short: name.description)
        if let streams {
            writer.write(Self.streamsTag)
            writer.write(UInt16(StreamTerms.byteCount))
            streams.write(to: &writer)
        }
        if let prefaces {
            writer.write(Self.prefacesTag)
            writer.write(UInt16(prefaces.count))
            writer.write(raw: prefaces)
        }
        if let delegation {
            writer.write(Self.delegationTag)
            writer.write(UInt16(Delegation.byteCount))
            delegation.write(to: &writer)
        }
    }
}

/// The terms on which one side of a link accepts streams of the other.
package struct StreamTerms: Equatable {
    /// The number of streams that the other side may have open at once.
    package var streams: Int
    /// The number of bytes of each stream that the other side may send before it gets more credit.
    package var window: Int
    /// The bits of a hello that say for which purposes the other side may open streams.
    fileprivate let abilities: UInt32

    /// Creates terms for the program's own streams and for those with these purposes.
    package init(streams: Int, window: Int, for purposes: some Sequence<StreamPurpose> = EmptyCollection()) {
        self.streams = streams
        self.window = window
        abilities = purposes.reduce(0) { $0 | $1.ability }
    }

    /// The terms for guests.
    var forGuests: StreamTerms {
        StreamTerms(
            streams: streams, window: window,
            for: StreamPurpose.allCases.filter { $0.isForGuests && accept($0) })
    }

    /// Returns whether the other side may open streams for this purpose.
    package func accept(_ purpose: StreamPurpose) -> Bool {
        purpose == .program || abilities & purpose.ability != 0
    }

    static let byteCount = 6

    func write(to writer: inout PayloadWriter) {
        writer.write(UInt16(streams))
        writer.write(UInt32(window))
    }

    /// Reads the field of a hello with these abilities.
    init(reading bytes: UnsafeRawBufferPointer, abilities: UInt32) throws(WireError) {
        self.abilities = abilities & Hello.Ability.purposes
        var reader = FieldReader(bytes)
        streams = Int(try reader.number(UInt16.self, "the hello's number of streams"))
        window = Int(clamping: try reader.number(UInt32.self, "the hello's window for streams"))
        try reader.finish("the hello's field of streams")
        guard streams > 0, window > 0 else { throw .malformed("the hello has streams without room") }
    }
}

extension Hello {
    /// The smallest allowed `maximumFrame`. A peer that accepts less could not receive every control frame.
    package static let leastMaximumFrame = 8_192

    /// Returns the versions that a hello offers. A hello begins with them in every version of the protocol, so they
    /// can be read even if the rest cannot.
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

    /// Reads a hello. Skips unknown extension fields (tag, length, bytes) behind the known fields, unless the highest
    /// bit of the tag says that the field must be understood.
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
        guard let service = ServiceName(try reader.shortText("the hello's service")) else {
            throw .malformed("the hello's service name is invalid")
        }
        self.service = service
        guard let name = DisplayName(try reader.shortText("the hello's name"), of: peer) else {
            throw .malformed("the hello's display name is invalid")
        }
        self.name = name
        while reader.remaining > 0 {
            let tag = try reader.number(UInt8.self, "a hello field's tag")
            let content = try reader.take(
                Int(try reader.number(UInt16.self, "a hello field's length")), "a hello field")
            if tag == Self.prefacesTag { prefaces = Array(content) }
            if tag == Self.delegationTag { delegation = try Delegation(reading: content) }
            if tag == Self.streamsTag, abilities & Ability.streams != 0 {
                streams = try StreamTerms(reading: content, abilities: abilities)
            }
            guard tag < 0x80 else { throw .malformed("the hello has an unknown critical field \(tag)") }
        }
        guard abilities & Ability.streams == 0 || streams != nil else {
            throw .malformed("the hello has streams without their field")
        }
    }
}
