import Testing

@testable import NighCore

/// The stream tables of two sides, and the link between them, which can be cut.
final class StreamPair {
    final class Side {
        let table: StreamTable
        var opened: [ByteStream] = []
        private var attended: [StreamPort] = []
        var header = ControlWriter()
        /// The bytes that the present link was given and the other side has not read.
        var wire = ByteQueue()
        /// When what comes now comes.
        var now = Moment(nanoseconds: 0)

        /// The streams that this side has opened, which would be cancelled if nobody kept them.
        private var kept: [ByteStream] = []

        private final class Relay: StreamAttention, @unchecked Sendable {
            // Confined to the test's thread.
            weak var side: Side?
            func attend(to stream: StreamPort) { side?.attended.append(stream) }
        }

        init(isOdd: Bool, ours: StreamTerms, theirs: StreamTerms, pieceLimit: Int) {
            let (relay, hello) = (Relay(), Frames.hello(seed: isOdd ? 1 : 2))
            table = StreamTable(
                StreamTable.Agreement(
                    peer: hello.peer, identity: hello.peer, peerName: hello.name, isOdd: isOdd, ours: ours,
                    theirs: theirs, pieceLimit: pieceLimit),
                largeChunks: LargeChunks(), chunks: PeerPort.makeChunks(), attention: relay)
            relay.side = self
        }

        @discardableResult
        func open(_ name: String, for purpose: StreamPurpose = .program) throws(NighError) -> ByteStream {
            kept.append(ByteStream(try table.open(named: name, for: purpose)))
            return kept[kept.count - 1]
        }

        /// Writes up to `budget` bytes of frames to the link.
        func write(budget: Int = 1 << 20) {
            while let port = attended.popLast() { table.attend(to: port) }
            _ = table.gather(into: &wire, budget: budget, header: &header)
        }

        /// The frames on the link, cut apart.
        var frames: [[UInt8]] { StreamPair.frames(in: wire.bytes) }

        /// Takes one frame.
        func receive(_ frame: [UInt8]) throws(WireError) {
            let isData = frame[3] == FrameType.streamData.rawValue
            let port = try ByteSlice(frame[4...]).withUnsafeBytes { bytes throws(WireError) -> StreamPort? in
                guard isData else { return try table.receivedControl(StreamControlFrame(reading: bytes)) }
                try table.receivedData(bytes, now: now) { ByteSlice(copying: $0) }
                return nil
            }
            if let port { opened.append(ByteStream(port)) }
        }

        /// Takes a control frame of a stream.
        func receive(_ control: StreamControl, for number: UInt32) throws(WireError) {
            try receive(Frames.frame(.streamControl, control.payload(for: number)))
        }
    }

    let odd: Side
    let even: Side

    /// - Parameters:
    ///   - purposes: those of which the even side accepts streams.
    ///   - oddPurposes: those of which the odd side does, if they are others.
    ///   - pieceLimit: the longest payload of a frame that both sides accept.
    init(
        streams: Int = 4, window: Int = 10_000, for purposes: [StreamPurpose] = [],
        odd oddPurposes: [StreamPurpose]? = nil, pieceLimit: Int = 16_384
    ) {
        let even = StreamTerms(streams: streams, window: window, for: purposes)
        let odd = StreamTerms(streams: streams, window: window, for: oddPurposes ?? purposes)
        self.odd = Side(isOdd: true, ours: odd, theirs: even, pieceLimit: pieceLimit)
        self.even = Side(isOdd: false, ours: even, theirs: odd, pieceLimit: pieceLimit)
    }

    /// Opens a stream from the odd side; returns its two ends.
    func open(
        _ name: String = "x", for purpose: StreamPurpose = .program
    ) throws -> (odd: ByteStream, even: ByteStream) {
        let stream = try odd.open(name, for: purpose)
        try settle()
        return (stream, try #require(even.opened.last))
    }

    /// Streams carry parts of this. A debug build takes long to make a byte, so it makes them once.
    private static let pattern = (0..<(1 << 20) + 1_000)
        .map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// Returns bytes for a stream to carry, which are others for another seed.
    static func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { Array(pattern[seed..<seed + count]) }

    /// Cuts the bytes of a link into frames.
    static func frames(in bytes: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let header = rest.withUnsafeBytes { FrameHeader(readingFrom: $0.baseAddress.unsafelyUnwrapped) }
            let length = FrameHeader.byteCount + header.payloadLength
            frames.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return frames
    }

    /// Lets `count` frames pass from one side to the other.
    @discardableResult
    func carry(from sender: Side, to receiver: Side, frames count: Int = .max) throws -> Int {
        sender.write()
        let frames = sender.frames
        let carried = frames.prefix(count)
        for frame in carried { try receiver.receive(frame) }
        #expect(receiver.table.isConsistent)
        sender.wire.removeAll()
        sender.wire.append(ByteSlice(frames.dropFirst(carried.count).flatMap { $0 }))
        return carried.count
    }

    /// Lets everything pass in both directions, and acknowledges it.
    func settle() throws {
        while try carry(from: odd, to: even) + carry(from: even, to: odd) > 0 {}
        try acknowledge()
    }

    func acknowledge() throws {
        try odd.table.acknowledge(upTo: even.table.received)
        try even.table.acknowledge(upTo: odd.table.received)
    }

    /// Cuts the link: what is on it is lost, and the next one begins.
    func cut() throws {
        for side in [odd, even] { side.wire.removeAll() }
        try odd.table.startLink(count: even.table.received)
        try even.table.startLink(count: odd.table.received)
    }
}

extension ByteStream {
    /// Writes what there is room for.
    @discardableResult
    func put(_ bytes: [UInt8]) throws(NighError) -> Int { try tryWrite(ByteSlice(bytes)) }

    /// The bytes that a test has read of a stream, and how the stream ended.
    struct Content: Equatable {
        var bytes: [UInt8] = []
        var hasEnded = false
        var error: NighError.Cause?
    }

    /// Reads everything that has come.
    func take() -> Content {
        var content = Content()
        while true {
            switch poll() {
            case .bytes(let slice): content.bytes += slice.bytes
            case .nothing: return content
            case .end:
                content.hasEnded = true
                return content
            case .failed(let error):
                content.error = error.cause
                return content
            }
        }
    }
}
