import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighRecord

/// `nigh trace`: shows what passes on links, frame by frame, from a record or live.
struct TraceErrand: Errand {
    let command = "trace"
    let output: OutputOptions
    /// The record to read; nil means a live session.
    let file: String?
    let filter: TraceFilter
    let manner: Manner
    let session: SessionOptions

    /// How a trace is shown, and where it comes from.
    struct Manner: Sendable {
        var dumpsPayloads: Bool
        var follows: Bool
        /// The file to which a capture is written, instead of showing the trace.
        var capture: String?
        /// The peer to invite; nil means waiting for others.
        var peer: PeerChoice?
        var accepts: Bool
        /// The time after which a live trace ends by itself.
        var duration: Duration?

        static let options = OptionGroup(
            "From where, and how",
            Option(flag: "hex", short: "x", "also the bytes of each frame"),
            Option(
                flag: "follow", short: "f", "waits for more at the end of FILE, which is still being written"),
            Option(
                "pcapng", .file(),
                "writes FILE as a capture for Wireshark instead of showing it; not to a file that is there"),
            Option("connect", .peer, "live: whom to invite, a name, PeerID or address"),
            Option(flag: "accept", "live: accepts every invitation; without it every one is declined"),
            Option("duration", short: "d", .duration(), "live: ends after so long; at Ctrl-C without it")
        ) { dumps, follows, capture, peer, accepts, duration in
            Manner(
                dumpsPayloads: dumps, follows: follows, capture: capture, peer: peer, accepts: accepts,
                duration: duration)
        }
    }

    static let description = Command<any Errand>(
        "trace", "Shows what passes on links, frame by frame: from a record, or as it happens",
        text: """
            With FILE it reads a record that --record of nigh or fourinarow has written; - is the standard input. Without one it \
            runs a session of its own and shows what passes there, until Ctrl-C: others that find it may link up with it, and are declined \
            unless it is told to --accept; with --connect it invites somebody itself. Each line has the time, the link, the direction \
            (-> sent, <- came), the type of the frame, the bytes of its payload, who is at the other end, and what it says. \
            Records and traces show what was said in plain text, so keep them to yourself: a record's file can be read by you alone.
            """,
        OutputOptions.options, Operand(optional: "FILE", .file(), "the record; a live session without it"),
        Manner.options, TraceFilter.options, SessionOptions.options,
        examples: [
            Example("conversation.nigh", "all that was recorded"),
            Example(
                "conversation.nigh --type ping --type pong --direction in", "the pings and pongs that came"),
            Example(
                "conversation.nigh -x --peer Puma --until 2s",
                "with all bytes, what passed with Puma in the first two seconds"),
            Example("conversation.nigh --pcapng conversation.pcapng", "a capture for Wireshark"),
            Example("--service fourinarow --connect Puma", "what passes between this and Puma, now"),
            Example("--accept --record conversation.nigh", "whoever calls, shown and written down"),
        ]
    ) { output, file, manner, filter, session in
        if file == nil, manner.follows || manner.capture != nil {
            throw Misuse("--follow and --pcapng need FILE")
        }
        if file != nil,
            manner.peer != nil || manner.accepts || manner.duration != nil || session.record != nil
        {
            throw Misuse("--connect, --accept, --duration and --record are for a live trace, without FILE")
        }
        return TraceErrand(output: output, file: file, filter: filter, manner: manner, session: session)
    }

    static let kinds = [Trace.linkKind, Trace.frameKind, Trace.gapKind]

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        if file == nil {
            return try await LiveTrace(errand: self, results: results, interruption: interruption).run()
        }
        let source = try RecordSource(
            path: file ?? "-", follows: manner.follows, isRequestedToEnd: { interruption.isRequested })
        if let capture = manner.capture { return try write(source, to: capture, results) }
        let shown = show(source, results)
        if let fault = shown.fault, shown.reader.startTime == nil { throw fault }
        sumUp(shown, results)
        return shown.fault == nil ? .well : .failed
    }

    /// The result of reading a record.
    struct Shown: Sendable {
        let totals: TraceTotals
        let reader: RecordReader
        /// Why the record was not read to its end.
        var fault: (any Error)?
    }

    /// Shows everything that comes from `source`.
    func show(_ source: RecordSource, _ results: Results) -> Shown {
        var trace = Trace(filter, dumpsPayloads: manner.dumpsPayloads)
        var fault: (any Error)?
        do {
            while let entry = try source.next() {
                if trace.startTime == nil { trace.startTime = source.reader.startTime }
                for item in trace.take(entry) { results.tell(item.kind, item.members, words: item.words) }
            }
        } catch {
            fault = error
        }
        if fault == nil, source.reader.startTime == nil { fault = RecordReader.Fault.noRecord }
        return Shown(totals: trace.totals, reader: source.reader, fault: fault)
    }

    /// Reports the summary, and what is wrong with the record.
    func sumUp(_ shown: Shown, _ results: Results) {
        if let fault = shown.fault {
            results.remark("\(fault)")
        } else {
            Self.remarks(on: shown.reader).forEach(results.remark)
        }
        results.sumUp(
            shown.totals.members + [
                .init("unread_bytes", .integer(shown.reader.unreadByteCount)),
                .init("error", shown.fault.map { Results.json(of: $0) } ?? .null),
            ], words: shown.totals.words)
    }

    private static func remarks(on reader: RecordReader) -> [String] {
        var remarks: [String] = []
        if reader.unreadByteCount > 0 {
            remarks.append(
                "the record ends in the middle of an entry (\(reader.unreadByteCount) bytes): its program was killed, or still writes"
            )
        }
        if reader.unknownEntryCount > 0 {
            remarks.append("\(reader.unknownEntryCount) entries of a later version were passed over")
        }
        return remarks
    }

    private func write(_ source: RecordSource, to path: String, _ results: Results) throws -> ExitStatus {
        // Read before the file is created, so that an input that is no record leaves no file behind.
        var entry = try source.next()
        if source.reader.startTime == nil { throw RecordReader.Fault.noRecord }
        let file = try CaptureFile(path)
        var capture = PacketCapture()
        try file.write(capture.beginning())
        var fault: (any Error)?
        var writtenAll = false
        while !writtenAll {
            if let next = entry { try file.write(capture.blocks(for: next)) }
            do {
                entry = try source.next()
                writtenAll = entry == nil
            } catch {
                fault = error
                writtenAll = true
            }
        }
        if let fault {
            results.remark("\(fault)")
        } else {
            Self.remarks(on: source.reader).forEach(results.remark)
        }
        results.sumUp(
            [
                .init("pcapng", .text(path)), .init("packets", .integer(capture.packetCount)),
                .init("unread_bytes", .integer(source.reader.unreadByteCount)),
                .init("error", fault.map { Results.json(of: $0) } ?? .null),
            ], words: ["\(capture.packetCount) packets in \(path)"])
        return fault == nil ? .well : .failed
    }
}

/// A file that a capture is written to. It is new, and only its owner can read it, because it holds what was said.
final class CaptureFile {
    private let descriptor: Int32
    private let path: String

    init(_ path: String) throws(NighError) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.error("making", path) }
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) throws(NighError) {
        var position = 0
        while position < bytes.count {
            let count = bytes[position...].withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.error("writing", path) }
            position += count
        }
    }

    private static func error(_ what: String, _ path: String) -> NighError {
        let number = errno
        return NighError(
            .configuring, .system(number, "\(what) \(path): \(String(cString: strerror(number)))"),
            advice: number == EEXIST ? "name another file: nothing is overwritten" : nil)
    }
}
