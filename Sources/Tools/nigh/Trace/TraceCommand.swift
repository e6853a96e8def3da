import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighRecord

/// `nigh trace`: shows the traffic of links, frame by frame, from a record or live.
struct TraceCommand: Subcommand {
    let commandName = "trace"
    let output: OutputOptions
    /// The record to read; nil means a live session.
    let file: String?
    let filter: TraceFilter
    let options: Options
    let session: SessionOptions

    /// How a trace is shown, and where it comes from.
    struct Options: Sendable {
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
            "Source and output",
            Option(flag: "hex", short: "x", "also shows the bytes of each frame"),
            Option(
                flag: "follow", short: "f", "waits for more at the end of FILE, which is still being written"),
            Option(
                "pcapng", .file(),
                "writes a capture for Wireshark instead of showing the frames; never overwrites a file"),
            Option("connect", .peer, "live: the peer to invite, by name, PeerID or address"),
            Option(flag: "accept", "live: accepts every invitation; by default every one is declined"),
            Option("duration", short: "d", .duration(), "live: ends after this time; by default at Ctrl-C")
        ) { dumps, follows, capture, peer, accepts, duration in
            Options(
                dumpsPayloads: dumps, follows: follows, capture: capture, peer: peer, accepts: accepts,
                duration: duration)
        }
    }

    static let description = Command<any Subcommand>(
        "trace", "Shows what passes on links, frame by frame",
        text: """
            With FILE it reads a record that --record of nigh or fourinarow has written; - is the standard input. Without FILE it \
            runs a session of its own and shows what passes there, until Ctrl-C. Peers that find this session may connect to it, and \
            their invitations are declined without --accept. With --connect it invites a peer itself. Each line has the time, the link, \
            the direction (-> sent, <- received), the type of the frame, the size of its payload in bytes, the peer at the other end, \
            and what the frame says. Packets beside a link have lines, too, with their numbers. Records and traces show all messages in plain text, so keep them to yourself: only you can read a \
            record's file.

            The types for --type are \(TraceFilter.typeNames.joined(separator: ", ")). `packet` means all packets.
            """,
        OutputOptions.options, Operand(optional: "FILE", .file(), "the record; a live session without it"),
        Options.options, TraceFilter.options, SessionOptions.options,
        examples: [
            Example("conversation.nigh", "shows everything that was recorded"),
            Example(
                "conversation.nigh --type ping --type pong --direction in",
                "shows the pings and pongs that were received"),
            Example(
                "conversation.nigh -x --peer Puma --until 2s",
                "shows what passed with Puma in the first two seconds, with all bytes"),
            Example("conversation.nigh --pcapng conversation.pcapng", "writes a capture for Wireshark"),
            Example("--service fourinarow --connect Puma", "invites Puma, and shows what passes"),
            Example(
                "--accept --record conversation.nigh",
                "accepts every peer, shows what passes, and records it"),
        ]
    ) { output, file, options, filter, session in
        if file == nil, options.follows || options.capture != nil {
            throw UsageError("--follow and --pcapng need FILE")
        }
        if file != nil,
            options.peer != nil || options.accepts || options.duration != nil || session.record != nil
        {
            throw UsageError(
                "--connect, --accept, --duration and --record are for a live trace, without FILE")
        }
        if options.capture != nil, filter != TraceFilter() || options.dumpsPayloads {
            throw UsageError("--pcapng writes all of FILE: leave out the options for what is shown")
        }
        return TraceCommand(output: output, file: file, filter: filter, options: options, session: session)
    }

    var kinds: [Results.Kind] {
        if options.capture != nil { return [] }
        let kinds = [Trace.linkKind, Trace.frameKind, Trace.packetKind, Trace.gapKind]
        return file == nil ? kinds + [LiveTrace.listeningKind] : kinds
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        if file == nil {
            return try await LiveTrace(command: self, results: results, stopRequest: stopRequest).run()
        }
        let source = try RecordSource(
            path: file ?? "-", follows: options.follows, isRequestedToEnd: { stopRequest.isRequested })
        if let capture = options.capture { return try write(source, to: capture, results) }
        let result = show(source, results)
        if let fault = result.fault, result.reader.startTime == nil { throw fault }
        summarize(result, results)
        return result.fault == nil ? .success : .failed
    }

    /// The result of reading a record.
    struct ReadResult: Sendable {
        let totals: TraceTotals
        let reader: RecordReader
        /// Why the record was not read to its end.
        var fault: (any Error)?
    }

    /// Shows everything that comes from `source`.
    func show(_ source: RecordSource, _ results: Results) -> ReadResult {
        var trace = Trace(filter, dumpsPayloads: options.dumpsPayloads)
        var fault: (any Error)?
        do {
            while let entry = try source.next() {
                if trace.startTime == nil { trace.startTime = source.reader.startTime }
                for item in trace.add(entry) { results.report(item.kind, item.members, lines: item.lines) }
            }
        } catch {
            fault = error
        }
        if fault == nil, source.reader.startTime == nil { fault = RecordReader.Fault.noRecord }
        return ReadResult(totals: trace.totals, reader: source.reader, fault: fault)
    }

    /// Reports the summary, and faults of the record.
    func summarize(_ result: ReadResult, _ results: Results) {
        if let fault = result.fault {
            results.remark("\(fault)")
        } else {
            Self.remarks(on: result.reader).forEach(results.remark)
        }
        results.summarize(
            result.totals.members + [
                .init("unread_bytes", .integer(result.reader.unreadByteCount)),
                .init("error", result.fault.map { Results.json(of: $0) } ?? .null),
            ], lines: result.totals.lines)
    }

    private static func remarks(on reader: RecordReader) -> [String] {
        var remarks: [String] = []
        if reader.unreadByteCount > 0 {
            remarks.append(
                "the record ends in the middle of an entry (\(reader.unreadByteCount) bytes): its program was killed, or is still writing"
            )
        }
        if reader.unknownEntryCount > 0 {
            remarks.append("\(reader.unknownEntryCount) entries of a later version were skipped")
        }
        return remarks
    }

    private func write(_ source: RecordSource, to path: String, _ results: Results) throws -> ExitStatus {
        // Read before the file is created, so that an input that is no record leaves no file behind.
        var entry = try source.next()
        if source.reader.startTime == nil { throw RecordReader.Fault.noRecord }
        let file = try CaptureFile(path)
        var capture = PacketCapture()
        try file.write(capture.fileHeader())
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
        results.summarize(
            [
                .init("pcapng", .text(path)), .init("packets", .integer(capture.packetCount)),
                .init("unread_bytes", .integer(source.reader.unreadByteCount)),
                .init("error", fault.map { Results.json(of: $0) } ?? .null),
            ], lines: ["\(capture.packetCount) packets in \(path)"])
        return fault == nil ? .success : .failed
    }
}

/// A file that a capture is written to. It is new, and only its owner can read it, because it holds all messages.
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
