import NighCore
import NighRecord

/// The streams for calls and actors of all conversations in a trace. Both the streams and the count of their frames go
/// on when a conversation changes its link.
struct TracedConversations {
    /// Whether the trace has seen a frame of streams before.
    enum Sight {
        case new
        /// The frame was sent on an earlier link, too.
        case again
    }

    private struct Conversation {
        /// The numbers of the next new frames of streams, by direction.
        var next: [UInt64?] = [nil, nil]
        var streams: [UInt32: TracedStream] = [:]
    }

    private var conversations: [UInt64: Conversation] = [:]

    /// The most conversations that are followed: more than a session has at once.
    private static let conversationLimit = 256
    /// The most streams that are followed: more than both sides have open at once.
    private static let streamLimit = 4_096

    /// Counts a frame of streams.
    mutating func note(frame number: UInt64, _ direction: PacketDirection, in id: UInt64) -> Sight {
        if conversations[id] == nil, conversations.count >= Self.conversationLimit { conversations = [:] }
        var conversation = conversations.removeValue(forKey: id) ?? Conversation()
        defer { conversations[id] = conversation }
        let side = Int(direction.rawValue)
        if let next = conversation.next[side] {
            if number < next { return .again }
            // Frames are missing, so nothing is known of the streams any more.
            if number > next { conversation.streams = [:] }
        }
        conversation.next[side] = number &+ 1
        return .new
    }

    /// Applies a new frame to its stream.
    mutating func note(_ frame: StreamControlFrame, in id: UInt64) {
        switch frame.control {
        case .open(let name, let purpose):
            guard conversations[id]?.streams.count ?? .max < Self.streamLimit else { return }
            conversations[id]?.streams[frame.number] = TracedStream(name: name, purpose: purpose)
        case .release: conversations[id]?.streams[frame.number] = nil
        case .credit, .finish, .cancel, .stop: break
        }
    }

    /// Returns the stream with that number, if it is for calls or actors and known from its beginning, and the records
    /// that end with the bytes of a new frame. `bytes` is nil if not all of them were recorded.
    mutating func read(
        _ bytes: ByteSlice?, of number: UInt32, _ direction: PacketDirection, in id: UInt64
    ) -> (stream: TracedStream, records: [StreamRecord])? {
        guard let stream = conversations[id]?.streams[number] else { return nil }
        guard let bytes else {
            conversations[id]?.streams[number]?.lose(direction)
            return (stream, [])
        }
        return (stream, conversations[id]?.streams[number]?.read(bytes, direction) ?? [])
    }

    /// Forgets everything, because a gap in the record makes it unknown.
    mutating func reset() { conversations = [:] }
}
