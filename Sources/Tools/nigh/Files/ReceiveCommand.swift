import Arguments
import Glibc
import JSONText
import NighCodes
import NighLoop
import NighCore
import NighFiles
import NighMemory
import Terminal

/// The senders whose files are accepted.
enum AcceptPolicy: String, CaseIterable, Sendable {
    /// The person at the terminal decides about each file.
    case ask
    /// Everybody's files.
    case any
    /// The files of paired devices.
    case paired
}

/// `nigh receive`: receives files sent with `nigh send`.
struct ReceiveCommand: Subcommand {
    let commandName = "receive"
    let output: OutputOptions
    var session: SessionOptions
    let code: OneTimeCode?
    let options: ReceiveOptions

    static let description = Command<any Subcommand>(
        "receive", "Receives files and folders sent with `nigh send`",
        text: """
            With the CODE that `nigh send` shows on the other device, takes the files for which it is shown, and ends. \
            Without a code, waits for files and folders until Ctrl-C, and receives from several devices at once. It asks about \
            each offer, unless --accept says whose files to accept.

            They go into the current directory or that of --into, and nowhere else: names lose dots at their front and \
            control characters. What exists is left alone; a new file is then called `name (2).txt`, unless it has the same \
            content. A program stays executable if it comes with a code or from a paired device.

            What is incomplete is in the folder NAME.part. If the transfer is interrupted, it stays, and when the same \
            device sends the same again, it continues from there. `nigh transfers` lists and removes such folders. --force \
            replaces plain files only, never a device, pipe or folder.

            With --web a phone without the program sends files from its browser. Files of this guest are accepted without a \
            question. The command ends when a guest has sent something and leaves.
            """,
        Operand(optional: "CODE", .oneTimeCode, "the code on the other device, such as 7-crisp-otter-lamp"),
        OutputOptions.options, SessionOptions.options, ReceiveOptions.options, SessionOptions.web,
        examples: [
            Example("7-crisp-otter-lamp", "takes the files for which the other device shows this code"),
            Example("", "asks about each offer, and puts the files here"),
            Example("--accept paired --into ~/Downloads", "accepts all files from paired devices"),
            Example("--web --into ~/Pictures", "lets a phone send photos, and ends when it leaves"),
            Example(
                "--accept any -o -", "receives one file to the standard output, for another program to read"),
        ]
    ) { code, output, session, options, web in
        if code == nil, options.source != nil || options.patience != nil {
            throw UsageError("--from and --wait are for receiving with a code")
        }
        if code != nil, web { throw UsageError("a code and --web cannot be used together") }
        var command = ReceiveCommand(output: output, session: session, code: code, options: options)
        command.session.admitsGuests = web
        return command
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let isToOutput = options.file == ReceiveOptions.standardOutput
        guard !isToOutput || results.isText else {
            throw UsageError(
                "--output - writes the file to the standard output, so it cannot be used with --json or --json-lines"
            )
        }
        // A person who types a code has accepted the files for which it is shown.
        let policy = code == nil ? options.policy ?? usualPolicy : .any
        guard policy != .ask || isTerminal(STDIN_FILENO) else {
            throw UsageError(
                "nobody can be asked without a terminal: use --accept any for the files of all devices, or --accept paired for those of paired devices"
            )
        }
        // Then writing to a file that may not grow fails with an error like any other.
        signal(SIGXFSZ, SIG_IGN)
        let destination = try destination()
        let (complete, incoming) = AsyncStream.makeStream(of: FileOffer.self)
        let offers = IncomingOffers { incoming.yield($0) }
        let session = try CommandSession(
            self.session, role: code == nil ? .server : .client, accepting: code == nil ? [.send] : [],
            results: results
        ) {
            $0.layers.append(offers)
            $0.limits.peers = FileReceiver.mostPeers
            $0.timings.linger = .seconds(2)
        }
        let plan = FileReceiver.Plan(
            destination: destination, policy: policy, mostBytes: options.mostBytes ?? .max,
            isOnce: options.isOnce || destination.isForOne || code != nil, replaces: options.replaces,
            waitsForProof: code != nil, endsWithGuest: self.session.admitsGuests,
            showsHashes: self.session.isVerbose)
        let hooks =
            options.command != nil || options.notifies
            ? ReceivedFileHooks(command: options.command, notifies: options.notifies, results) : nil
        let questions = policy == .ask ? try FileQuestions(results.live) : nil
        let receiver = FileReceiver(
            plan, offers, over: session, on: ThreadEventLoop(), results, asking: questions,
            hooks: hooks)
        Task { for await offer in complete { receiver.enqueue(offer) } }
        let visit = code.map { CodeVisit($0, at: options.source, within: options.patience, over: session) }
        session.start(
            onEvent: { event in
                receiver.enqueue(event)
                visit?.handle(event)
            },
            onMessage: { _, origin in receiver.refuseMessages(of: origin.peer) })
        stopRequest.onRequest { receiver.interrupt() }
        let visiting = visit.map { visit in
            Task {
                do {
                    try await visit.run { receiver.expect($0) }
                } catch is CancellationError {
                } catch {
                    receiver.fail(with: error)
                }
            }
        }
        let unusable = session.stopIfUnusable(stopRequest)
        let outcome = await receiver.run()
        visiting?.cancel()
        unusable.cancel()
        let unavailable = await unusable.value
        await session.close()
        await hooks?.finish()
        incoming.finish()
        if let unavailable { throw unavailable }
        if let failure = outcome.failure { throw failure }
        return report(outcome, results)
    }

    /// The policy without `--accept`. Guests are not asked about: they have scanned the code that is shown here.
    private var usualPolicy: AcceptPolicy {
        session.admitsGuests && !isTerminal(STDIN_FILENO) ? .paired : .ask
    }

    private func destination() throws -> FileReceiver.Plan.Destination {
        guard let file = options.file else { return .folder(try ReceivingFolder(options.folder ?? ".")) }
        guard file != ReceiveOptions.standardOutput else { return .standardOutput }
        guard let name = SafeFileName(ofPath: file) else {
            throw UsageError("--output: \(file) is not a file name")
        }
        try refuseToReplace(file)
        let path = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(
            separator: "/")
        let folder = try ReceivingFolder(path.isEmpty ? (file.hasPrefix("/") ? "/" : ".") : path)
        guard options.replaces || !folder.has(name.text) else {
            throw FileFailure("\(file) exists; --force replaces it")
        }
        return .file(folder, name)
    }

    /// Throws if anything but a plain file has the name, even with `--force`.
    private func refuseToReplace(_ file: String) throws(FileFailure) {
        var about = stat()
        guard lstat(file, &about) == 0 else { return }
        let isLink = about.st_mode & S_IFMT == S_IFLNK
        // The target of a link, if there is one, makes a better error.
        if isLink { _ = stat(file, &about) }
        let kind: String
        switch about.st_mode & S_IFMT {
        case S_IFDIR:
            throw FileFailure("\(file) is a directory; --into \(file) puts files into it")
        case S_IFIFO: kind = "a pipe"
        case S_IFSOCK: kind = "a socket"
        case S_IFCHR, S_IFBLK: kind = "a device"
        case _ where isLink: kind = "a symbolic link"
        default: return
        }
        throw FileFailure(
            "\(file) is \(kind), and only a plain file is replaced; `-o - > \(file)` writes to it")
    }

    private func report(_ outcome: FileReceiver.Outcome, _ results: Results) -> ExitStatus {
        // Without an end of its own, the command was to receive until it was interrupted.
        let isEnough =
            outcome.hasWholeTransfer
            || !options.isOnce && options.file == nil && code == nil && !session.admitsGuests
        var members: [JSON.Member] = [
            .init("received", .integer(outcome.received)), .init("failed", .integer(outcome.failed)),
            .init("received_bytes", .integer(outcome.bytes)),
        ]
        if let error = outcome.error { members.append(.init("error", Results.json(of: error))) }
        results.summarize(members, lines: [])
        return outcome.error == nil && isEnough ? .success : .failed
    }
}

/// The options of `nigh receive` itself.
struct ReceiveOptions: Sendable {
    var folder: String?
    /// The path of the one file; nil unless `--output` names it.
    var file: String?
    /// Nil if the user did not say.
    var policy: AcceptPolicy?
    /// The device that shows the code; nil for the one that announces its number.
    var source: PeerChoice?
    /// The time for finding that device; nil if the user did not say.
    var patience: Duration?
    var mostBytes: Int?
    var isOnce: Bool
    var replaces: Bool
    /// The shell command to run for each file that has arrived.
    var command: String?
    /// Whether the desktop shows a notice of each file that has arrived.
    var notifies: Bool

    static let standardOutput = "-"

    static let options = OptionGroup(
        "Receiving",
        Option(
            "into", .text("DIRECTORY", candidates: .directories),
            "the folder for the files; by default the current one"),
        Option(
            "output", short: "o", .text("FILE|-", candidates: .files),
            "receives a single file and gives it that name; - is the standard output"),
        Option(
            "accept", .choice(of: AcceptPolicy.self),
            "whose files to accept without a code: you are asked about each offer, as by default; those of any device; those "
                + "of paired devices"
        ),
        Option(
            "from", .peer,
            "the device that shows the code, if several have codes with one number, or its address"),
        Option(
            "wait", .duration(in: .seconds(1)...(.seconds(86_400))),
            "the time limit for finding the device that shows the code; by default 1min"),
        Option("max-size", .size(in: 1 ... .max), "the maximum size of a file"),
        Option(flag: "once", short: "1", "ends after one transfer"),
        Option(flag: "force", "replaces an existing file"),
        Option(
            "exec", .text("COMMAND"),
            "runs this shell command for each file that has arrived: its path is in $1 and $NIGH_FILE, the sender in $NIGH_PEER"
        ),
        Option(flag: "notify", "shows a notice on the desktop for each file that has arrived")
    ) { folder, file, policy, source, patience, mostBytes, isOnce, replaces, command, notifies in
        if folder != nil, file != nil { throw UsageError("--into and --output cannot be used together") }
        return ReceiveOptions(
            folder: folder, file: file, policy: policy, source: source, patience: patience,
            mostBytes: mostBytes, isOnce: isOnce,
            replaces: replaces, command: command, notifies: notifies)
    }
}

extension Notation where Value == OneTimeCode {
    /// A one-time code.
    static var oneTimeCode: Notation {
        Notation("CODE", candidates: .none) { text in
            do throws(OneTimeCode.Fault) {
                return try OneTimeCode(text)
            } catch {
                guard case .unknownWord(let word) = error,
                    let meant = SpellingSuggestion.closest(
                        to: word.lowercased(), among: OneTimeCode.vocabulary.map(String.init))
                else { throw error }
                throw UsageError("\(error): did you mean \(meant)?")
            }
        }
    }
}
