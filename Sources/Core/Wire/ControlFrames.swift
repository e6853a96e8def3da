/// The counts and grants of one side of a conversation, sent with the first frames on a
/// link and from time to time afterwards.
package struct Standing: Equatable {
    static let byteCount = 32

    /// The number of messages received whole since the conversation began, for each lane.
    package var received: InlineArray<2, UInt64> = [0, 0]
    /// The number of bytes of lane frames that the other side may send on this link in total, for each lane.
    package var granted: InlineArray<2, UInt64> = [0, 0]
    /// The number of frames of streams received since the conversation began. It is not part of the 32 bytes: it stands
    /// at the end of the frame, unless it is zero, so that a peer without streams never gets it.
    package var streamFrames: UInt64 = 0

    package static func == (left: Standing, right: Standing) -> Bool {
        left.received[0] == right.received[0] && left.received[1] == right.received[1]
            && left.granted[0] == right.granted[0] && left.granted[1] == right.granted[1]
            && left.streamFrames == right.streamFrames
    }

    /// Writes all 32 bytes without allocating.
    func write(to bytes: UnsafeMutableRawPointer) {
        bytes.storeBytes(of: received[0].bigEndian, as: UInt64.self)
        bytes.storeBytes(of: received[1].bigEndian, toByteOffset: 8, as: UInt64.self)
        bytes.storeBytes(of: granted[0].bigEndian, toByteOffset: 16, as: UInt64.self)
        bytes.storeBytes(of: granted[1].bigEndian, toByteOffset: 24, as: UInt64.self)
    }

    /// The length of the count at the end of a frame with this standing.
    var tailLength: Int { streamFrames > 0 ? 8 : 0 }

    /// Writes the count at the end of a frame, where it is needed.
    func writeTail(to writer: inout PayloadWriter) {
        if streamFrames > 0 { writer.write(streamFrames) }
    }

    /// Writes the payload of an acknowledgement, `byteCount` and `tailLength` bytes, without allocating.
    func writeAcknowledgement(to bytes: UnsafeMutableRawPointer) {
        write(to: bytes)
        guard streamFrames > 0 else { return }
        bytes.storeBytes(of: streamFrames.bigEndian, toByteOffset: Self.byteCount, as: UInt64.self)
    }

    func write(to writer: inout PayloadWriter) { write(to: writer.claim(Self.byteCount)) }

    init() {}

    init(reading reader: inout FieldReader) throws(WireError) {
        received = [
            try reader.number(UInt64.self, "a count of messages"),
            try reader.number(UInt64.self, "a count of messages"),
        ]
        granted = [
            try reader.number(UInt64.self, "a grant of bytes"),
            try reader.number(UInt64.self, "a grant of bytes"),
        ]
    }

    /// Reads the count at the end of a frame, which may be missing, and makes sure that nothing is behind it.
    mutating func readTail(_ reader: inout FieldReader, of what: String) throws(WireError) {
        if reader.remaining > 0 {
            streamFrames = try reader.number(UInt64.self, "a count of stream frames")
            guard streamFrames > 0 else { throw .malformed("a count of no stream frames") }
        }
        try reader.finish(what)
    }

    /// Reads the payload of an acknowledgement.
    init(acknowledging bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        try self.init(reading: &reader)
        try readTail(&reader, of: "an acknowledgement")
    }
}

/// A request for a conversation (`invite`), or to continue one on this link (`resume`). The dialling side sends it.
package struct ConversationRequest: Equatable {
    /// A random number that the inviter draws.
    package var conversation: UInt64
    /// Counts the sender's requests, to all peers together. A request is out of date if its number
    /// is not higher than one already seen.
    package var attempt: UInt64
    package var standing: Standing
    /// How long the inviter waits for an answer. Zero for a resume.
    package var timeoutMilliseconds: UInt32 = 0
    /// The inviting program's message to the invited program. Empty for a resume.
    package var context: [UInt8] = []
}

extension ConversationRequest: FramePayload {
    package var payloadLength: Int {
        8 + 8 + Standing.byteCount + 4 + 2 + context.count + standing.tailLength
    }

    package func write(to writer: inout PayloadWriter) {
        writer.write(conversation)
        writer.write(attempt)
        standing.write(to: &writer)
        writer.write(timeoutMilliseconds)
        writer.write(block: context)
        standing.writeTail(to: &writer)
    }
}

extension ConversationRequest {
    /// The longest context that is accepted, regardless of the limit for the contexts that this side sends.
    static let contextLimit = 4_096

    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        conversation = try reader.number(UInt64.self, "a request's conversation")
        attempt = try reader.number(UInt64.self, "a request's attempt")
        standing = try Standing(reading: &reader)
        timeoutMilliseconds = try reader.number(UInt32.self, "a request's timeout")
        context = try reader.bytes(atMost: Self.contextLimit, "an invitation's context")
        try standing.readTail(&reader, of: "a request")
    }

    /// The longest introduction.
    package static let introductionLimit = 512

    /// Reads an `introduction` frame. Its bytes mean nothing to a link, but there must be at least one.
    static func introduction(reading bytes: UnsafeRawBufferPointer) throws(WireError) -> [UInt8] {
        guard (1...introductionLimit).contains(bytes.count) else {
            throw .malformed("an introduction of \(bytes.count) bytes")
        }
        return Array(bytes)
    }

    /// Reads a `crossed` frame: the context of an invitation that its sender gives up.
    static func crossedContext(reading bytes: UnsafeRawBufferPointer) throws(WireError) -> [UInt8] {
        guard bytes.count <= contextLimit else {
            throw .malformed("an invitation's context of \(bytes.count) bytes")
        }
        return Array(bytes)
    }
}

/// The acceptance of a request.
package struct ConversationAcceptance: Equatable {
    package var conversation: UInt64
    /// The accepting side's own count of requests. It shows which of its earlier requests are out of date.
    package var attempt: UInt64
    package var standing: Standing
}

extension ConversationAcceptance: FramePayload {
    package var payloadLength: Int { 8 + 8 + Standing.byteCount + standing.tailLength }

    package func write(to writer: inout PayloadWriter) {
        writer.write(conversation)
        writer.write(attempt)
        standing.write(to: &writer)
        standing.writeTail(to: &writer)
    }
}

extension ConversationAcceptance {
    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        conversation = try reader.number(UInt64.self, "an acceptance's conversation")
        attempt = try reader.number(UInt64.self, "an acceptance's attempt")
        standing = try Standing(reading: &reader)
        try standing.readTail(&reader, of: "an acceptance")
    }
}

/// The refusal of a request.
package struct ConversationRefusal: Equatable {
    package enum Code: UInt8 {
        /// The program or person declined.
        case declined = 0
        /// The session has as many peers as `maxPeers` allows.
        case full = 1
        /// Too many invitations wait for an answer.
        case busy = 2
        /// The conversation to resume does not exist.
        case unknownConversation = 3
        /// A later request has been seen already.
        case outOfDate = 4
    }

    package var conversation: UInt64
    package var code: Code
    /// The number of seconds before which the invitation should not be repeated. Zero names no time.
    package var retryAfterSeconds: UInt32 = 0
    package var reason: String = ""
}

extension ConversationRefusal: FramePayload {
    package var payloadLength: Int { 8 + 1 + 4 + PayloadWriter.length(ofShort: reason) }

    package func write(to writer: inout PayloadWriter) {
        writer.write(conversation)
        writer.write(code.rawValue)
        writer.write(retryAfterSeconds)
        writer.write(short: reason)
    }
}

extension ConversationRefusal {
    /// Reads a refusal. An unknown code from a later version counts as `declined`.
    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        conversation = try reader.number(UInt64.self, "a refusal's conversation")
        code = Code(rawValue: try reader.number(UInt8.self, "a refusal's code")) ?? .declined
        retryAfterSeconds = try reader.number(UInt32.self, "a refusal's retry time")
        reason = try reader.displayText("a refusal's words")
        try reader.finish("a refusal")
    }
}

/// The token of a ping, and the bytes behind it that come back with it.
struct PingContent: FramePayload {
    let token: UInt64
    let extra: [UInt8]

    var payloadLength: Int { 8 + extra.count }

    func write(to writer: inout PayloadWriter) {
        writer.write(token)
        writer.write(raw: extra)
    }
}
