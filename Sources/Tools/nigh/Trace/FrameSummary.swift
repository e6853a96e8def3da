import JSONText
import NighCore
import NighGroups
import NighIntroductions
import NighRecord

/// The content of one recorded frame, in words and as JSON.
struct FrameSummary {
    var text: String
    var details: [JSON.Member] = []
    /// How the frame breaks the protocol; nil if it does not.
    var fault: String?
    /// The lane that the frame belongs to, if any.
    var lane: Lane?
    /// The number of the message that the frame is or belongs to, if it is known.
    var message: UInt64?
    /// For a pong whose ping was seen: the time since the ping.
    var roundTrip: Moment.Span?

    init(text: String) { self.text = text }

    /// Reads `frame`, and updates the state of its link, and of the conversation, which may go on over other links.
    init(
        of frame: RecordedFrame, at time: Int64, in state: inout LinkState,
        _ conversations: inout TracedConversations
    ) {
        text = ""
        read(frame, at: time, &state)
        readStreams(frame, &state, &conversations)
    }

    private mutating func read(_ frame: RecordedFrame, at time: Int64, _ state: inout LinkState) {
        if let known = FrameType(rawValue: frame.type), readSize(of: known, frame, &state) { return }
        guard frame.isWhole else {
            text =
                frame.isCutOff
                ? "the link ended in the middle of it"
                : "only its first \(frame.payload.count) bytes were recorded"
            return
        }
        do throws(WireError) {
            let content = try frame.payload.withUnsafeBytes { bytes throws(WireError) in
                try FrameContent(type: frame.type, reading: bytes)
            }
            read(content, frame, at: time, &state)
        } catch {
            fault = error.message
            text = "breaks the protocol: \(error.message)"
        }
    }

    /// Says which records for calls and actors a frame completes.
    private mutating func readStreams(
        _ frame: RecordedFrame, _ state: inout LinkState, _ conversations: inout TracedConversations
    ) {
        let type = FrameType(rawValue: frame.type)
        guard type == .streamData || type == .streamControl, !frame.isCutOff,
            let number = state.numberOfNextStreamFrame(frame.direction), let id = state.conversation
        else { return }
        guard conversations.note(frame: number, frame.direction, in: id) == .new else {
            return text += ", sent again"
        }
        guard type == .streamData else {
            let content = frame.payload.withUnsafeBytes { bytes in
                try? FrameContent(type: frame.type, reading: bytes)
            }
            if case .streamControl(let control)? = content {
                conversations.note(control, in: id)
            }
            return
        }
        guard let stream = frame.streamNumber,
            let found = conversations.read(
                frame.isWhole ? frame.payload[4..<frame.payload.count] : nil, of: stream, frame.direction,
                in: id)
        else { return }
        text = "stream \(stream) (\(found.stream.label)), \(frame.length - 4) bytes"
        details += [
            .init("stream_name", .text(found.stream.name)),
            .init("stream_purpose", .text("\(found.stream.purpose)")),
        ]
        guard !found.records.isEmpty else { return }
        text += ": " + found.records.map(\.text).joined(separator: "; ")
        details.append(.init("stream_records", .list(found.records.map { .object($0.members) })))
    }

    /// Describes a message of the kind of groups, if enough of it was recorded.
    private mutating func describeGroups(in frame: RecordedFrame) {
        text += " (groups)"
        let record = frame.payload.withUnsafeBytes { bytes in
            try? GroupRecord(reading: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        }
        guard let record else { return }
        text += ", \(record.summary)"
        details.append(.init("step", .text(record.step)))
    }

    /// Describes a message of the kind of introductions, if all of it was recorded.
    private mutating func describeIntroductions(in frame: RecordedFrame) {
        text += " (introductions)"
        let records = frame.payload.withUnsafeBytes { bytes in
            try? IntroductionRecord.records(in: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        }
        guard let records, !records.isEmpty, frame.isWhole else { return }
        text += records.map { ", \($0.summary)" }.joined()
        details.append(.init("records", .list(records.map { .text($0.step) })))
    }

    /// Reads a frame whose size alone is reported, so that it does not matter how much of it was recorded. Returns
    /// false for all other frames.
    private mutating func readSize(
        of type: FrameType, _ frame: RecordedFrame, _ state: inout LinkState
    ) -> Bool {
        switch type {
        case .message, .bulkMessage:
            let lane: Lane = type == .message ? .main : .bulk
            self.lane = lane
            message = state.numberOfNext(frame.direction, lane)
            text = "\(lane)\(message.map { " \($0)" } ?? "")"
        case .kindMessage, .bulkKindMessage:
            let first = frame.payload.withUnsafeBytes(\.first)
            guard let kind = first.flatMap(MessageKind.init) else { return false }
            let lane: Lane = type == .kindMessage ? .main : .bulk
            self.lane = lane
            message = state.numberOfNext(frame.direction, lane)
            text = "\(lane)\(message.map { " \($0)" } ?? ""), kind \(kind.rawValue)"
            details = [.init("message_kind", .integer(Int(kind.rawValue)))]
            if kind == GroupRecord.kind { describeGroups(in: frame) }
            if kind == IntroductionRecord.kind { describeIntroductions(in: frame) }
        case .piece, .bulkPiece:
            guard frame.length > 0 else { return false }
            let lane: Lane = type == .piece ? .main : .bulk
            self.lane = lane
            if let progress = state.piece(of: frame.length, frame.direction, lane) {
                message = progress.number
                text = "\(lane)\(message.map { " \($0)" } ?? ""), \(progress.done) of \(progress.size) bytes"
                details = [
                    .init("bytes_done", .integer(progress.done)),
                    .init("message_bytes", .integer(progress.size)),
                ]
                if progress.done > progress.size { fault = "more bytes than the message was to have" }
            } else {
                text = "\(lane)"
            }
        case .unreliable: text = ""
        case .streamData:
            guard frame.length > 4, let number = frame.streamNumber else { return false }
            text = "stream \(number), \(frame.length - 4) bytes"
            details = [
                .init("stream", .integer(Int(number))), .init("stream_bytes", .integer(frame.length - 4)),
            ]
        default: return false
        }
        return true
    }

    private mutating func read(
        _ content: FrameContent, _ frame: RecordedFrame, at time: Int64, _ state: inout LinkState
    ) {
        switch content {
        case .hello(let hello): read(hello)
        case .close(let close):
            let name = LinkClose.name(of: close.number)
            text = name + (close.reason.isEmpty ? "" : ": \(close.reason)")
            details = [
                .init("code", .integer(Int(close.number))), .init("code_name", .text(name)),
                .init("words", .text(close.reason)),
            ]
        case .ping(let token, let extra):
            state.pings[LinkState.Ping(direction: frame.direction, token: token)] = time
            read(token: token, extra: extra)
        case .pong(let token, let extra):
            let pingDirection: PacketDirection = frame.direction == .incoming ? .outgoing : .incoming
            let sent = state.pings.removeValue(forKey: LinkState.Ping(direction: pingDirection, token: token))
            roundTrip = sent.map { Moment.Span(nanoseconds: time &- $0) }
            read(token: token, extra: extra)
            if let roundTrip { text += ", \(roundTrip.milliseconds) ms after its ping" }
        case .acknowledge(let standing): read(standing)
        case .invite(let request): read(request, frame, &state)
        case .resume(let request): read(request, frame, &state)
        case .accept(let acceptance):
            state.begin(numberedBy: acceptance.standing, from: frame.direction)
            state.conversation = acceptance.conversation
            read(acceptance.standing)
            text = "conversation \(Self.hex(acceptance.conversation)), \(text)"
            details += [
                .init("conversation", .text(Self.hex(acceptance.conversation))),
                .init("attempt", .integer(Int(clamping: acceptance.attempt))),
            ]
        case .decline(let refusal):
            text = "\(refusal.code)" + (refusal.reason.isEmpty ? "" : ": \(refusal.reason)")
            if refusal.retryAfterSeconds > 0 { text += ", not again before \(refusal.retryAfterSeconds) s" }
            details = [
                .init("conversation", .text(Self.hex(refusal.conversation))),
                .init("code_name", .text("\(refusal.code)")), .init("words", .text(refusal.reason)),
                .init("retry_after_s", .integer(Int(refusal.retryAfterSeconds))),
            ]
        case .pair(let message):
            text = message.name
            details = [.init("step", .text(message.name))]
        case .streamControl(let control): read(control)
        case .datagrams(let offer):
            text = "takes packets of up to \(offer.longestPacket) bytes beside the link"
            details = [
                .init("connection", .text(Self.hex(offer.connection))),
                .init("longest_packet_bytes", .integer(offer.longestPacket)),
            ]
        case .crossed(let context):
            text = "\(context.count) bytes of context, of an invitation that is given up"
            details = [.init("context_bytes", .integer(context.count))]
        case .introduction(let introduction):
            details = [.init("introduction_bytes", .integer(introduction.count))]
            guard let token = try? IntroductionToken(reading: introduction), let peer = token.introducer
            else { return text = "\(introduction.count) bytes that say who has introduced the sender" }
            text = "introduced by \(peer.short), number \(token.number)"
            details += [
                .init("introducer", .text(peer.description)),
                .init("introduction_number", .integer(Int(clamping: token.number))),
            ]
        case .begin(let lane, let size, let kind):
            self.lane = lane
            message = state.numberOfNext(frame.direction, lane)
            state.began(message, of: size, frame.direction, lane)
            text = "\(lane)\(message.map { " \($0)" } ?? ""), \(size) bytes follow"
            details = [.init("message_bytes", .integer(size))]
            guard let kind else { return }
            text += ", kind \(kind.rawValue)"
            details.append(.init("message_kind", .integer(Int(kind.rawValue))))
        case .unknown: text = "of a later version, and skipped"
        // `readSize` has read those.
        case .message, .piece, .unreliable, .streamData: break
        }
    }

    private mutating func read(_ hello: Hello) {
        text =
            "\(hello.name) (\(hello.peer.short)), \(hello.service), protocol \(Self.range(hello.versions)), "
            + "frames to \(hello.maximumFrame), messages to \(hello.maximumMessage)"
        details = [
            .init("peer", .text(hello.peer.description)), .init("name", .text(hello.name.description)),
            .init("service", .text(hello.service.description)),
            .init("lowest_version", .integer(Int(hello.versions.lowerBound))),
            .init("highest_version", .integer(Int(hello.versions.upperBound))),
            .init("abilities", .integer(Int(hello.abilities))),
            .init("incarnation", .text(Self.hex(hello.incarnation))),
            .init("maximum_frame_bytes", .integer(hello.maximumFrame)),
            .init("maximum_message_bytes", .integer(hello.maximumMessage)),
        ]
        if hello.acceptsKinds { text += ", kinds" }
        guard let streams = hello.streams else { return }
        text +=
            ", \(streams.streams) streams"
            + [
                ("files", .files), ("relays", .relay), ("channels", .channel), ("calls", .calls),
                ("streams of channels", .channelStream), ("actors", .actors),
                ("forwarded connections", .forward),
                ("compared files", .comparedFiles),
            ]
            .filter { (_, purpose: StreamPurpose) in streams.accept(purpose) }.map { ", \($0.0)" }.joined()
        details += [
            .init("maximum_streams", .integer(streams.streams)),
            .init("stream_window_bytes", .integer(streams.window)),
        ]
    }

    private mutating func read(_ frame: StreamControlFrame) {
        details = [.init("stream", .integer(Int(frame.number)))]
        func note(_ step: String, _ words: String = "", _ detail: JSON.Member? = nil) {
            text = "stream \(frame.number), \(step)" + (words.isEmpty ? "" : ": \(words)")
            details.append(.init("step", .text(step)))
            if let detail { details.append(detail) }
        }
        switch frame.control {
        case .open(let name, .program): note("open", name, .init("stream_name", .text(name)))
        case .open(let name, let purpose):
            let words = name.isEmpty ? "\(purpose)" : "\(purpose), \(name)"
            note("open-for", words, .init("stream_name", .text(name)))
            details.append(.init("stream_purpose", .text("\(purpose)")))
        case .credit(let bytes):
            note("credit", "\(bytes) bytes in all", .init("credit_bytes", .integer(Int(clamping: bytes))))
        case .finish: note("finish")
        case .cancel(let reason): note("cancel", reason, .init("words", .text(reason)))
        case .stop(let reason): note("stop", reason, .init("words", .text(reason)))
        case .release: note("release")
        }
    }

    private mutating func read(
        _ request: ConversationRequest, _ frame: RecordedFrame, _ state: inout LinkState
    ) {
        state.begin(numberedBy: request.standing, from: frame.direction)
        read(request.standing)
        text = "conversation \(Self.hex(request.conversation)), attempt \(request.attempt), \(text)"
        if request.timeoutMilliseconds > 0 { text += ", waits \(request.timeoutMilliseconds) ms" }
        if !request.context.isEmpty { text += ", \"\(String(decoding: request.context, as: UTF8.self))\"" }
        details += [
            .init("conversation", .text(Self.hex(request.conversation))),
            .init("attempt", .integer(Int(clamping: request.attempt))),
            .init("timeout_ms", .integer(Int(request.timeoutMilliseconds))),
            .init("context", .text(String(decoding: request.context, as: UTF8.self))),
        ]
    }

    private mutating func read(_ standing: Standing) {
        let (received, granted) = (standing.received, standing.granted)
        text =
            "has \(received[0]) main and \(received[1]) bulk, grants \(granted[0]) and \(granted[1]) bytes"
        details = [
            .init("received_main", .integer(Int(clamping: received[0]))),
            .init("received_bulk", .integer(Int(clamping: received[1]))),
            .init("granted_main_bytes", .integer(Int(clamping: granted[0]))),
            .init("granted_bulk_bytes", .integer(Int(clamping: granted[1]))),
        ]
        guard standing.streamFrames > 0 else { return }
        text += ", has \(standing.streamFrames) frames of streams"
        details.append(.init("received_stream_frames", .integer(Int(clamping: standing.streamFrames))))
    }

    private mutating func read(token: UInt64, extra: Int) {
        text = "token \(Self.hex(token))" + (extra > 0 ? ", and \(extra) bytes" : "")
        details = [.init("token", .text(Self.hex(token))), .init("extra_bytes", .integer(extra))]
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static func range(_ versions: ClosedRange<UInt8>) -> String {
        versions.count == 1 ? "\(versions.lowerBound)" : "\(versions.lowerBound) to \(versions.upperBound)"
    }
}

extension RecordedFrame {
    /// The number of the stream that a frame with data belongs to.
    fileprivate var streamNumber: UInt32? {
        guard payload.count >= 4 else { return nil }
        return payload.withUnsafeBytes { UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self)) }
    }
}
