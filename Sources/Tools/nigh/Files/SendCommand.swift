import Arguments
import JSONText
import NighLoop
import NighCore
import NighMemory

/// `nigh send`: sends a file to a `nigh receive`.
struct SendCommand: Subcommand {
    let commandName = "send"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice
    let path: String
    let name: String?
    let giveUp: Duration

    static let description = Command<any Subcommand>(
        "send", "Sends a file to a `nigh receive`, and resumes it after an interruption",
        text: """
            The other device runs `nigh receive`. PEER is its name, the beginning of its PeerID, or its address. Both sides \
            compare the hash of the whole file at the end, so a file that is reported as sent has arrived, byte for byte.

            If the link breaks, the transfer waits for another one. If the conversation ends or a program is killed, the \
            other side keeps what it has. The transfer continues from there if the identity and the file's name and size \
            are the same, after a check that the file still begins with what is there. A pipe can be read only once, so \
            its transfer ends with the conversation.
            """,
        Operand("PEER", .peer, "the peer to send to"),
        Operand(
            optional: "FILE", .text("FILE", candidates: .files), default: SentFile.standardInput,
            "the file to send; - is the standard input"),
        OutputOptions.options, SessionOptions.options,
        Option("as", .text("NAME"), "the name of the file at the other side; by default its own name"),
        Option(
            "give-up", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(60),
            "gives up if nothing moves for this time, also before the other side is found"),
        examples: [
            Example("puma holiday.mov", "sends that file to the device called puma"),
            Example(
                "tcp://192.168.1.7:4000 backup.iso --give-up 1h",
                "sends to an address, and waits for up to an hour"),
            Example("puma - --as notes.txt", "sends what is typed, until Ctrl-D"),
        ]
    ) { peer, path, output, session, name, giveUp in
        SendCommand(output: output, session: session, peer: peer, path: path, name: name, giveUp: giveUp)
    }

    /// A larger buffer would only take longer to end early: the receiver lets no more be under way.
    static let sendBuffer = 2 << 20

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        if let name, name.isEmpty || name.utf8.count > FileOffer.longestName {
            throw UsageError("--as: a name has 1 to \(FileOffer.longestName) bytes")
        }
        let file = try SentFile(path, as: name)
        let session = try CommandSession(self.session, role: .client, results: results) {
            $0.limits.sendBuffer = Self.sendBuffer
            $0.timings.linger = .seconds(2)
        }
        let plan = FileSender.Plan(choice: peer, giveUp: giveUp)
        let sender = FileSender(plan, file, over: session, on: ThreadEventLoop(), results)
        session.startReading { sender.enqueue($0) }
        interruption.onRequest { sender.interrupt() }
        let outcome = await sender.deliver()
        await session.close()
        if let error = outcome.error {
            // Before a peer was found there is nothing to sum up.
            guard outcome.peer != nil else { throw error }
            results.summarize(members(outcome, file) + [.init("error", Results.json(of: error))], lines: [])
            if results.isText { results.fail(error) } else { results.remark("\(error)") }
            return .failed
        }
        results.summarize(members(outcome, file), lines: [line(outcome, file)])
        return .success
    }

    private func members(_ outcome: FileSender.Outcome, _ file: SentFile) -> [JSON.Member] {
        [
            .init("peer_id", JSON(outcome.peer.map { "\($0.id)" })),
            .init("peer_name", JSON(outcome.peer.map { "\($0.name)" })),
            .init("transport", JSON(outcome.peer?.transport)), .init("name", .text(file.name)),
            .init("size_bytes", JSON(file.size ?? (outcome.error == nil ? outcome.stored : nil))),
            .init("sha256", JSON(outcome.error == nil ? outcome.hash.map(hexadecimal) : nil)),
            .init("stored_bytes", .integer(outcome.stored)), .init("sent_bytes", .integer(outcome.sent)),
            .init("resumed_at_bytes", .integer(outcome.resumedAt)),
            .init("conversations", .integer(outcome.conversations)), .init("cuts", .integer(outcome.cuts)),
            .init("duration_ms", .number(outcome.time.milliseconds)),
            .init("bytes_per_second", JSON(rate(of: outcome.sent, in: outcome.time))),
        ]
    }

    private func line(_ outcome: FileSender.Outcome, _ file: SentFile) -> Line {
        let speed = rate(of: outcome.sent, in: outcome.time).map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let cuts = outcome.cuts > 0 ? ", cut \(outcome.cuts == 1 ? "once" : "\(outcome.cuts) times")" : ""
        return Line("sent ", .good) + Line(file.label, .strong)
            + Line(" to \(outcome.peer.map { "\($0.name)" } ?? ""): \(ByteCount(outcome.stored)) in ")
            + Line("\(durationText(outcome.time))\(speed)\(cuts), ")
            + Line("sha256 \(outcome.hash.map(hexadecimal) ?? "")", .faint)
    }
}
