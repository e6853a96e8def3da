import NighCalls
import NighCore
import NighRecord

/// A record, made by hand, of a conversation with streams, and what a trace says of it.
struct RecordedCalls {
    private(set) var bytes = RecordFormat.header(time: 0, headLimit: nil)
    private var link: UInt64 = 0

    static let conversation: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7]

    mutating func add(_ content: RecordEntry.Content) {
        RecordFormat.write(RecordEntry(time: 0, link: link, content), to: &bytes)
    }

    mutating func add(
        _ type: FrameType, _ direction: PacketDirection, _ payload: [UInt8], of length: Int? = nil
    ) {
        add(
            .frame(
                RecordedFrame(
                    direction: direction, type: type.rawValue, length: length ?? payload.count,
                    payload: ByteSlice(payload))))
    }

    /// The conversation gets its next link: both sides say how many frames of streams they have received.
    mutating func begin(_ type: FrameType, hereReceived: UInt8 = 0, thereReceived: UInt8 = 0) {
        func tail(_ count: UInt8) -> [UInt8] { count == 0 ? [] : [0, 0, 0, 0, 0, 0, 0, count] }
        let standing = [UInt8](repeating: 0, count: 32)
        let attempt: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
        link += 1
        add(.opened(LinkOpening(isDialled: true, scheme: "tcp")))
        add(
            type, .outgoing,
            Self.conversation + attempt + standing + [0, 0, 0, 0, 0, 0] + tail(hereReceived))
        add(.accept, .incoming, Self.conversation + attempt + standing + tail(thereReceived))
    }

    mutating func open(
        _ stream: UInt8, _ name: String, for purpose: StreamPurpose, _ direction: PacketDirection
    ) {
        add(
            .streamControl, direction,
            [0, 0, 0, stream, 6, purpose.rawValue, UInt8(name.utf8.count)] + Array(name.utf8))
    }

    mutating func send(_ bytes: [UInt8], over stream: UInt8, _ direction: PacketDirection) {
        add(.streamData, direction, [0, 0, 0, stream] + bytes)
    }

    mutating func send(_ records: CallRecord..., over stream: UInt8, _ direction: PacketDirection) {
        send(records.flatMap(\.frame.bytes), over: stream, direction)
    }
}
