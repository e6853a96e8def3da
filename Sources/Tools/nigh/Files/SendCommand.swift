import Arguments
import Glibc
import JSONText
import NighCore
import NighFiles
import NighLoop
import NighMemory

/// `nigh send`: sends files and folders to a `nigh receive`.
struct SendCommand: Subcommand {
    let commandName = "send"
    var output: OutputOptions
    var session: SessionOptions
    /// The peer as the user wrote it, by which a record is found again.
    let peer: PeerChoice
    /// The identity to which the files were offered before; nil if this is the first time.
    var identity: PeerID?
    let paths: [String]
    /// Whether no FILE was given, so that the standard input is sent.
    let leavesFilesOut: Bool
    let name: String?
    /// How long nothing may move; nil if the user did not say.
    let giveUp: Duration?

    static let standardInput = "-"

    static let description = Command<any Subcommand>(
        "send", "Sends files and folders to a `nigh receive`, and resumes them after an interruption",
        text: """
            The other device runs `nigh receive`. PEER is its name, the beginning of its PeerID, or its address. A folder is \
            sent with all that is in it, except links, pipes and devices. Both sides compare the hash of each whole file at \
            the end, so a file that is reported as sent has arrived, byte for byte.

            If the link breaks, the transfer waits for another one. If the conversation ends or a program is killed, the \
            other side keeps what it has. The transfer continues from there if the identity and the names are the same, and \
            sends only what is missing or has changed. `nigh transfers` lists what is unfinished. A pipe can be read only \
            once, so its transfer ends with the conversation.
            """,
        Operand("PEER", .peer, "the peer to send to"),
        Operand(
            repeated: "FILE", .text("FILE", candidates: .files),
            "the files and folders to send; - is the standard input, as if there is none"),
        OutputOptions.options, SessionOptions.options,
        Option(
            "as", .text("NAME"), "the name of the file or folder at the other side; by default its own name"),
        Option(
            "give-up", .duration(in: .seconds(1)...(.seconds(86_400))),
            "gives up if nothing moves for this time; by default 60s until the other side has accepted, and 10min from then on"
        ),
        examples: [
            Example("puma holiday.mov photos", "sends that file and that folder to the device called puma"),
            Example(
                "tcp://192.168.1.7:4000 backup.iso --give-up 1h",
                "sends to an address, and waits for up to an hour"),
            Example("puma - --as notes.txt", "sends what is typed, until Ctrl-D"),
        ]
    ) { peer, paths, output, session, name, giveUp in
        let leavesFilesOut = paths.isEmpty
        let paths = leavesFilesOut ? [standardInput] : paths
        if paths.count > 1 {
            if name != nil { throw UsageError("--as names a single FILE, and here are \(paths.count)") }
            if paths.contains(standardInput) {
                throw UsageError("the standard input cannot be sent together with files")
            }
        }
        return SendCommand(
            output: output, session: session, peer: peer, identity: nil, paths: paths,
            leavesFilesOut: leavesFilesOut,
            name: name, giveUp: giveUp)
    }

    var kinds: [Results.Kind] { [FileSender.file] }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        if let name, name.isEmpty || name.utf8.count > Self.longestName || name.utf8.contains(0) {
            throw UsageError("--as: a name has 1 to \(Self.longestName) bytes")
        }
        if let problem = missingDevice { throw problem }
        let files = try FilesToSend(
            SourceTree(entries, giveUp: giveUp ?? SendPatience.untilAccepted),
            label: paths == [Self.standardInput] ? "the standard input" : nil)
        for skipped in files.skipped {
            results.report(
                FileSender.skipped,
                [.init("path", .text(skipped.path)), .init("reason", .text(skipped.reason))], lines: [])
            results.remark("\(skipped.path) is not sent: \(skipped.reason)")
        }
        let session = try CommandSession(self.session, role: .client, results: results) {
            $0.timings.linger = .seconds(2)
        }
        let record = files.canBeRepeated && paths != [Self.standardInput] ? SendRecord(of: self, files) : nil
        let sender = FileSender(
            FileSender.Plan(choice: called, giveUp: giveUp, identity: identity), files, recordedIn: record,
            over: session,
            on: ThreadEventLoop(), results)
        session.start(onEvent: { sender.enqueue($0) })
        interruption.onRequest { sender.interrupt() }
        let outcome = await sender.deliver()
        await session.close()
        // Before a peer was found there is nothing to sum up.
        if outcome.peer == nil, let error = outcome.error { throw error }
        return report(outcome, files, results)
    }

    /// The peer to call. Somebody else may have the name of the one to which the files were offered before.
    var called: PeerChoice {
        if let identity, case .named = peer { .named("\(identity)") } else { peer }
    }

    /// The error for a command line that has a file in the place of the device, as if the device were forgotten.
    private var missingDevice: UsageError? {
        guard leavesFilesOut, case .named(let text) = peer, access(text, F_OK) == 0 else { return nil }
        let word = ShellWord.operand(text)
        return UsageError(
            "PEER is missing: write `nigh send PEER \(word)`, or `nigh send \(word) -` if that is a device "
                + "and the standard input is to be sent")
    }

    /// The longest name that a sender may give a file, in bytes.
    private static let longestName = 1_024

    private var entries: [SourceTree.Entry] {
        if paths == [Self.standardInput] { return [.standardInput(as: name ?? "stdin")] }
        return paths.map { .path($0, as: name) }
    }

    // MARK: The report

    private func report(_ outcome: FileSender.Outcome, _ files: FilesToSend, _ results: Results) -> ExitStatus
    {
        for result in outcome.results where result.item.kind == .file || result.error != nil {
            var members: [JSON.Member] = [
                .init("path", .text(result.item.path)),
                .init("size_bytes", JSON(result.item.size ?? (result.isComplete ? outcome.stored : nil))),
                .init("sha256", JSON(result.hash?.hexadecimal)),
            ]
            if let error = result.error { members.append(.init("error", Results.json(of: error))) }
            results.report(FileSender.file, members, lines: [])
        }
        let failed = outcome.results.filter { $0.error != nil }
        let error = outcome.error ?? (failed.isEmpty ? nil : failure(failed, of: outcome))
        guard let error else {
            results.summarize(members(outcome), lines: lines(outcome, files))
            return .success
        }
        if outcome.error == nil, outcome.results.count > 1 {
            for result in failed { results.remark("\(result.item.path) did not arrive: \(reason(result))") }
        }
        results.summarize(members(outcome) + [.init("error", Results.json(of: error))], lines: [])
        if results.isText { results.fail(error) } else { results.remark("\(error)") }
        return .failed
    }

    /// The failure of a transfer in which it was decided what becomes of each file.
    private func failure(_ failed: [FileResult], of outcome: FileSender.Outcome) -> FileFailure {
        guard outcome.results.count > 1 else { return FileFailure(reason(failed[0])) }
        let count = outcome.results.count
        return FileFailure("\(failed.count) of \(count) files and folders did not arrive")
    }

    private func reason(_ result: FileResult) -> String {
        if case .file(let fault)? = result.error?.cause { return fault.explanation }
        return result.error.map { "\($0.cause)" } ?? ""
    }

    private func members(_ outcome: FileSender.Outcome) -> [JSON.Member] {
        [
            .init("peer_id", JSON(outcome.peer.map { "\($0.id)" })),
            .init("peer_name", JSON(outcome.peer.map { "\($0.name)" })),
            .init("transport", JSON(outcome.peer?.transport)),
            .init(
                "size_bytes", JSON(outcome.progress?.total ?? (outcome.error == nil ? outcome.stored : nil))),
            .init("stored_bytes", .integer(outcome.stored)), .init("sent_bytes", .integer(outcome.sent)),
            .init("resumed_bytes", .integer(outcome.progress?.resumed ?? 0)),
            .init("conversations", .integer(outcome.conversations)), .init("cuts", .integer(outcome.cuts)),
            .init("duration_ms", .number(outcome.time.milliseconds)),
            .init("bytes_per_second", JSON(rate(of: outcome.sent, in: outcome.time))),
        ]
    }

    private func lines(_ outcome: FileSender.Outcome, _ files: FilesToSend) -> [Line] {
        let speed = rate(of: outcome.sent, in: outcome.time).map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let cuts = outcome.cuts > 0 ? ", cut \(outcome.cuts == 1 ? "once" : "\(outcome.cuts) times")" : ""
        let resumed = outcome.progress?.resumed ?? 0
        let rest = resumed > 0 ? ", \(ByteCount(resumed)) of it was there before" : ""
        let line =
            Line("sent ", .good)
            + Line(files.items.count == 1 ? files.label : TransferText.count(files.items), .strong)
            + Line(" to \(outcome.peer.map { "\($0.name)" } ?? ""): \(ByteCount(outcome.stored)) in ")
            + Line("\(durationText(outcome.time))\(speed)\(cuts)\(rest)")
        guard session.isVerbose, outcome.results.count == 1, let hash = outcome.results[0].hash else {
            return [line]
        }
        return [line + Line(", ") + Line("sha256 \(hash.hexadecimal)", .faint)]
    }
}
