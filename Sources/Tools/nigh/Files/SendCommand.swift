import Arguments
import Glibc
import JSONText
import NighCore
import NighFiles
import NighLoop
import NighMemory
import SessionArguments
import Terminal

/// `nigh send`: sends files and folders to devices that run `nigh receive`, or to the device on which a person types
/// the shown code.
struct SendCommand: Subcommand {
    let commandName = "send"
    var output: OutputOptions
    var session: SessionOptions
    /// The operands as they were typed. The first one may name the peer.
    let words: [String]
    /// The peers that `--to` names.
    let named: [PeerChoice]
    /// The identity to which the files were offered before; nil if this is the first time.
    var identity: PeerID?
    /// The ID of the record that this command continues; nil if it continues none.
    var record: String?
    let name: String?
    /// How long nothing may move; nil if the user did not say.
    let giveUp: Duration?

    private static let namedReceiver = "--web shows a code, for whoever scans it: leave out --to"

    static let standardInput = "-"

    static let description = Command<any Subcommand>(
        "send", "Sends files and folders, and resumes them after an interruption",
        text: """
            The other device runs `nigh receive`; PEER is its name, the beginning of its PeerID, or its address. If the first \
            operand is a file here, it is sent, too: then name the device with --to. Without a device this command shows a \
            code, which the person at the other device types: it needs no pairing, is good for one transfer, and one wrong \
            guess ends it. At a terminal you can also choose a receiver nearby.

            A folder is sent with all that is in it, except links, pipes and devices. Both sides compare the hash of each \
            whole file at the end, so a file that is reported as sent has arrived, byte for byte. A file that the receiver \
            already has is not sent again.

            If the link breaks, the transfer waits for another one. If the conversation ends or a program is killed, the \
            other side keeps what it has. The transfer continues from there if the identity and the names are the same, and \
            sends only what is missing or has changed. `nigh transfers` lists what is unfinished. A pipe can be read only \
            once, so its transfer ends with the conversation.
            """,
        Operand(
            optional: "PEER",
            .text("PEER", candidates: .linesAndFiles(of: CompleteCommand.line(for: .peers))),
            "the device to send to"),
        Operand(
            repeated: "FILE", .text("FILE", candidates: .files),
            "the files and folders to send; - is the standard input"),
        OutputOptions.options, SessionOptions.options,
        Option(repeated: "to", .peer, "sends to this device; then all operands are files"),
        Option(
            "as", .text("NAME"), "the name of the file or folder at the other side; by default its own name"),
        Option(
            "wait", .duration(in: .seconds(1)...(.seconds(86_400))),
            "gives up if nothing moves for this time; by default 1min until the other side has accepted, then 10min, and "
                + "never while a code waits to be typed"
        ).formerly("give-up"),
        SessionOptions.web,
        examples: [
            Example("holiday.mov", "shows a code for the other device; there: nigh receive CODE"),
            Example("puma holiday.mov photos", "sends that file and that folder to the device called puma"),
            Example("--to puma --to lynx photos", "sends to both at once"),
            Example(
                "tcp://192.168.1.7:4000 backup.iso --wait 1h",
                "sends to an address, and waits for up to an hour"),
            Example("--web holiday.mov", "shows a code that a phone scans to fetch it in its browser"),
            Example("puma - --as notes.txt", "sends what is typed, until Ctrl-D"),
        ]
    ) { first, rest, output, session, named, name, giveUp, web in
        var command = SendCommand(
            output: output, session: session, words: (first.map { [$0] } ?? []) + rest, named: named,
            name: name, giveUp: giveUp)
        command.session.admitsGuests = web
        return command
    }

    var kinds: [Results.Kind] { [FileSender.file] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        if let name, name.isEmpty || name.utf8.count > Self.longestName || name.utf8.contains(0) {
            throw UsageError("--as: a name has 1 to \(Self.longestName) bytes")
        }
        let order = try SendOrder(of: self)
        if name != nil, order.paths.count > 1 {
            throw UsageError("--as names a single FILE, and here are \(order.paths.count)")
        }
        let isStandardInput = order.paths == [Self.standardInput]
        // Each transfer reads the files by itself.
        let files = try (0..<max(order.peers.count, 1)).map { _ in
            try FilesToSend(
                SourceTree(entries(order.paths), giveUp: giveUp ?? SendPatience.untilAccepted),
                at: order.paths, label: isStandardInput ? "the standard input" : nil)
        }
        if let remark = order.remark { results.remark(remark) }
        for skipped in files[0].skipped {
            results.report(
                FileSender.skipped,
                [.init("path", .text(skipped.path)), .init("reason", .text(skipped.reason))], lines: [])
            results.remark("\(skipped.path) is not sent: \(skipped.reason)")
        }
        guard !isStandardInput || files.count == 1 else {
            throw UsageError("the standard input can be read only once, so it is sent to one device")
        }
        let showsCode = order.peers.isEmpty
        if self.session.admitsGuests, !showsCode { throw UsageError(Self.namedReceiver) }
        let session = try CommandSession(
            self.session, role: showsCode ? .peer : .client,
            accepting: showsCode ? CodeOffer.purposes(guests: self.session.admitsGuests) : [],
            results: results
        ) {
            $0.timings.linger = .seconds(2)
        }
        let offer =
            showsCode
            ? try CodeOffer(
                session, results,
                mayChoose: !isStandardInput && results.isText && isTerminal(STDIN_FILENO)) : nil
        let senders = senders(of: files, to: order.peers, offer, over: session, results)
        session.start(onEvent: { event in
            for sender in senders { sender.enqueue(event) }
            offer?.handle(event)
        })
        stopRequest.onRequest { for sender in senders { sender.interrupt() } }
        let unusable = showsCode ? session.stopIfUnusable(stopRequest) : nil
        try await offer?.begin()
        let outcomes = await withTaskGroup { group in
            for (index, sender) in senders.enumerated() { group.addTask { (index, await sender.deliver()) } }
            var outcomes = [FileSender.Outcome](repeating: .init(), count: senders.count)
            for await (index, outcome) in group { outcomes[index] = outcome }
            return outcomes
        }
        unusable?.cancel()
        let unavailable = await unusable?.value
        offer?.end()
        await session.close()
        if let unavailable { throw unavailable }
        let report = SendReport(command: self, results)
        guard outcomes.count == 1 else { return report.write(outcomes, files, to: order.peers) }
        // Before a peer was found there is nothing to sum up.
        if outcomes[0].peer == nil, let error = outcomes[0].error { throw error }
        return report.write(outcomes[0], files[0])
    }

    private func senders(
        of files: [FilesToSend], to peers: [PeerChoice], _ offer: CodeOffer?, over session: CommandSession,
        _ results: Results
    ) -> [FileSender] {
        let lines = SendDisplay(results.live, transfers: files.count).transfers
        return files.indices.map { index in
            let target: FileSender.Target =
                if let offer { .offer(offer) } else { .peer(called(peers[index])) }
            var record: SavedTransfer?
            // A code cannot be used again, so there is nothing that could be continued later.
            if !peers.isEmpty, files[index].canBeRepeated, files[index].paths != [Self.standardInput] {
                record = SavedTransfer(of: self, to: peers[index], files[index])
            }
            return FileSender(
                FileSender.Plan(target: target, giveUp: giveUp, identity: identity), files[index],
                recordedIn: record, over: session, on: ThreadEventLoop(), results, display: lines[index])
        }
    }

    /// The peer to call. Somebody else may have the name of the one to which the files were offered before.
    func called(_ peer: PeerChoice) -> PeerChoice {
        if let identity, case .named = peer { .named("\(identity)") } else { peer }
    }

    /// The longest name that a sender may give a file, in bytes.
    private static let longestName = 1_024

    private func entries(_ paths: [String]) -> [SourceTree.Entry] {
        if paths == [Self.standardInput] { return [.standardInput(as: name ?? "stdin")] }
        return paths.map { .path($0, as: name) }
    }
}

/// The meaning of the operands of `nigh send`: which peer gets which files.
struct SendOrder {
    /// The peers to send to; empty if none is named, and then a code is shown.
    let peers: [PeerChoice]
    /// The files and folders to send; only `-` for the standard input.
    let paths: [String]
    /// A sentence about how the first operand was understood; nil if that is clear.
    private(set) var remark: String?

    init(of command: SendCommand) throws(UsageError) {
        try self.init(
            words: command.words, named: command.named, isRepeated: command.identity != nil,
            areFiles: command.session.admitsGuests,
            readsTerminal: isTerminal(STDIN_FILENO), exists: { access($0, F_OK) == 0 })
    }

    /// - Parameters:
    ///   - isRepeated: whether the words come from a record, in which the first one names the peer.
    ///   - areFiles: whether the first word cannot name a peer either.
    ///   - readsTerminal: whether the standard input is a terminal.
    ///   - exists: whether there is a file with a path.
    init(
        words: [String], named: [PeerChoice], isRepeated: Bool = false, areFiles: Bool = false,
        readsTerminal: Bool = false, exists: (String) -> Bool
    ) throws(UsageError) {
        var words = words
        var peers = named
        if peers.isEmpty, !areFiles, let first = words.first, first != SendCommand.standardInput {
            let address = try? TransportAddress.typed(first)
            let isFile = address == nil && exists(first)
            if address == nil, !isFile, words.count == 1, readsTerminal, Self.isMeantAsFile(first) {
                throw UsageError("there is no file \(first) here; if it is a device, write --to \(first)")
            }
            if isRepeated || !isFile {
                peers = [address.map(PeerChoice.address) ?? .named(first)]
                words.removeFirst()
            } else if words.count > 1, !first.contains(where: { "./".contains($0) }) {
                remark =
                    "\(first) is a file here, and is sent; to send to a device of that name, write --to \(first)"
            }
        }
        if words.isEmpty {
            guard !peers.isEmpty else {
                throw UsageError("FILE is missing: name what to send; - is the standard input")
            }
            words = [SendCommand.standardInput]
        }
        guard words.count == 1 || !words.contains(SendCommand.standardInput) else {
            throw UsageError("the standard input cannot be sent together with files")
        }
        self.peers = peers
        paths = words
    }

    /// Whether a word looks like the path of a file: with a slash, or with an ending such as `.mov`.
    private static func isMeantAsFile(_ word: String) -> Bool {
        guard let dot = word.lastIndex(of: "."), !word.contains("/") else { return word.contains("/") }
        let ending = word[dot...].dropFirst()
        return (1...4).contains(ending.count) && ending.allSatisfy { $0.isLetter || $0.isNumber }
    }
}
