import Arguments
import JSONText
import NighLoop
import NighCore
import NighMemory

/// `nigh send`: sends a file to a `nigh receive`.
struct SendErrand: Errand {
    let command = "send"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice
    let path: String
    let name: String?
    let giveUp: Duration

    static let description = Command<any Errand>(
        "send", "Hands a file to a `nigh receive`, and goes on where it was cut",
        text: """
            The other device runs `nigh receive`. PEER is its name, how its PeerID begins, or its address. Both sides compare the hash of \
            the whole file at the end, so what is told as sent is there, byte for byte.

            A link that is cut is waited for. Where the conversation ends all the same, or a program was killed, the other side keeps what \
            it has, and it goes on from there, as long as this is the same identity and the same name of the file; that what is there is how the \
            file begins is looked after first. What comes from a pipe can be read once only, so a conversation that ends also ends that.
            """,
        Operand("PEER", .peer, "to whom"),
        Operand(
            optional: "FILE", .text("FILE", candidates: .files), default: SentFile.standardInput,
            "what to send; - is the standard input"),
        OutputOptions.options, SessionOptions.options,
        Option("as", .text("NAME"), "what it is to be called over there; its own name without it"),
        Option(
            "give-up", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(60),
            "for how long nothing may move, also before the other side is found"),
        examples: [
            Example("puma holiday.mov", "sends that to the device called puma"),
            Example("tcp://192.168.1.7:4000 backup.iso --give-up 1h", "by address, and patiently"),
            Example("puma - --as notes.txt", "sends what is typed, until Ctrl-D"),
        ]
    ) { peer, path, output, session, name, giveUp in
        SendErrand(output: output, session: session, peer: peer, path: path, name: name, giveUp: giveUp)
    }

    /// A larger buffer would only take longer to end early: the receiver lets no more be under way.
    static let sendBuffer = 2 << 20

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        if let name, name.isEmpty || name.utf8.count > FileOffer.longestName {
            throw Misuse("--as: a name has 1 to \(FileOffer.longestName) bytes")
        }
        let file = try SentFile(path, as: name)
        let session = try CommandSession(self.session, role: .client, results: results) {
            $0.limits.sendBuffer = Self.sendBuffer
            $0.timings.linger = .seconds(2)
        }
        let plan = FileSender.Plan(choice: peer, giveUp: giveUp)
        let sender = FileSender(plan, file, over: session, on: ThreadEventLoop(), results)
        session.startReading { sender.took($0) }
        interruption.onRequest { sender.interrupt() }
        let outcome = await sender.deliver()
        await session.close()
        if let error = outcome.error {
            // Before a peer was found there is nothing to sum up.
            guard outcome.peer != nil else { throw error }
            results.sumUp(members(outcome, file) + [.init("error", Results.json(of: error))], words: [])
            if results.isInWords { results.fail(error) } else { results.remark("\(error)") }
            return .failed
        }
        results.sumUp(members(outcome, file), words: [words(outcome, file)])
        return .well
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

    private func words(_ outcome: FileSender.Outcome, _ file: SentFile) -> Line {
        let speed = rate(of: outcome.sent, in: outcome.time).map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let cuts = outcome.cuts > 0 ? ", cut \(outcome.cuts == 1 ? "once" : "\(outcome.cuts) times")" : ""
        return Line("sent ", .good) + Line(file.label, .strong)
            + Line(" to \(outcome.peer.map { "\($0.name)" } ?? ""): \(ByteCount(outcome.stored)) in ")
            + Line("\(spoken(outcome.time))\(speed)\(cuts), ")
            + Line("sha256 \(outcome.hash.map(hexadecimal) ?? "")", .faint)
    }
}
