import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighFiles
import NighMemory
import Terminal

/// Whose files are accepted.
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
    let session: SessionOptions
    let options: ReceiveOptions

    static let description = Command<any Subcommand>(
        "receive", "Receives files and folders sent with `nigh send`",
        text: """
            Waits for files and folders until Ctrl-C, and receives from several devices at once. It asks about each offer, \
            unless --accept says whose files to accept.

            They go into the current directory or that of --into, and nowhere else: names lose dots at their front and \
            control characters. What exists is left alone; a new file is then called `name (2).txt`, unless it has the same \
            content. No received file is executable.

            What is incomplete is in the folder NAME.part. If the transfer is interrupted, it stays, and when the same \
            device sends the same again, it continues from there. `nigh transfers` lists and removes such folders. --force \
            replaces plain files only, never a device, pipe or folder.
            """,
        OutputOptions.options, SessionOptions.options, ReceiveOptions.options,
        examples: [
            Example("", "asks about each offer, and puts the files here"),
            Example("--accept paired --into ~/Downloads", "accepts all files from paired devices"),
            Example(
                "--accept any -o -", "receives one file to the standard output, for another program to read"),
        ]
    ) { output, session, options in ReceiveCommand(output: output, session: session, options: options) }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let isToOutput = options.file == ReceiveOptions.standardOutput
        guard !isToOutput || results.isText else {
            throw UsageError(
                "--output - writes the file to the standard output, so it cannot be used with --json or --json-lines"
            )
        }
        guard options.policy != .ask || isTerminal(STDIN_FILENO) else {
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
            self.session, role: .server, accepting: [.send], results: results
        ) {
            $0.layers.append(offers)
            $0.limits.peers = FileReceiver.mostPeers
            $0.timings.linger = .seconds(2)
        }
        let plan = FileReceiver.Plan(
            destination: destination, policy: options.policy, mostBytes: options.mostBytes ?? .max,
            isOnce: options.isOnce || destination.isForOne, replaces: options.replaces,
            showsHashes: self.session.isVerbose)
        let questions = options.policy == .ask ? try FileQuestions(results.live) : nil
        let receiver = FileReceiver(
            plan, offers, over: session, on: ThreadEventLoop(), results, asking: questions)
        Task { for await offer in complete { receiver.enqueue(offer) } }
        session.start(
            onEvent: { receiver.enqueue($0) },
            onMessage: { _, origin in receiver.refuseMessages(of: origin.peer) })
        interruption.onRequest { receiver.interrupt() }
        let loss = Task {
            let unusable = await session.unusableTransports()
            if unusable != nil { receiver.interrupt() }
            return unusable
        }
        interruption.onRequest { loss.cancel() }
        let outcome = await receiver.run()
        loss.cancel()
        let unavailable = await loss.value
        await session.close()
        incoming.finish()
        if let unavailable { throw unavailable }
        return report(outcome, results)
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
        let isEnough = outcome.hasWholeTransfer || !options.isOnce && options.file == nil
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
    var policy: AcceptPolicy
    var mostBytes: Int?
    var isOnce: Bool
    var replaces: Bool

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
            "accept", .choice(of: AcceptPolicy.self), default: .ask,
            "whose files to accept: you are asked about each offer; those of any device; those of paired devices"
        ),
        Option("max-size", .size(in: 1 ... .max), "the maximum size of a file"),
        Option(flag: "once", "ends after one transfer"),
        Option(flag: "force", "replaces an existing file")
    ) { folder, file, policy, mostBytes, isOnce, replaces in
        if folder != nil, file != nil { throw UsageError("--into and --output cannot be used together") }
        return ReceiveOptions(
            folder: folder, file: file, policy: policy, mostBytes: mostBytes, isOnce: isOnce,
            replaces: replaces)
    }
}
