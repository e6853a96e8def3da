import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
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
struct ReceiveErrand: Errand {
    let command = "receive"
    let output: OutputOptions
    let session: SessionOptions
    let options: ReceiveOptions

    static let description = Command<any Errand>(
        "receive", "Takes files that others send with `nigh send`",
        text: """
            Waits, and takes what comes until Ctrl-C, several files at once. Each is asked about, unless --accept says whose are taken.

            Files go into the current directory or that of --into, and nowhere else: of what the sender calls a file only the last part is \
            taken, without dots at its front and without control characters. A file that is there already is left alone; the new one is then \
            called `name (2).txt`. Nothing that comes is executable.

            While a file comes it is called NAME.part, with a note beside it of whose it is. When it is cut off, both stay, and when \
            the same device sends the same file again, it goes on from there. They can be removed at any time. --force replaces plain \
            files alone, and no device, pipe or folder.
            """,
        OutputOptions.options, SessionOptions.options, ReceiveOptions.options,
        examples: [
            Example("", "asks about each file, and puts it here"),
            Example("--accept paired --into ~/Downloads", "whatever paired devices send"),
            Example("--accept any -o -", "one file, to the standard output, for another program to read"),
        ]
    ) { output, session, options in ReceiveErrand(output: output, session: session, options: options) }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let isToOutput = options.file == ReceiveOptions.standardOutput
        guard !isToOutput || results.isInWords else {
            throw Misuse("--output - has the file on the standard output, where no JSON can stand beside it")
        }
        guard options.policy != .ask || isTerminal(STDIN_FILENO) else {
            throw Misuse(
                "nobody can be asked without a terminal: --accept any takes what everybody sends, --accept paired what paired devices do"
            )
        }
        // Then writing to a file that may not grow fails with an error like any other.
        signal(SIGXFSZ, SIG_IGN)
        let destination = try destination()
        let session = try CommandSession(
            self.session, role: .server, taking: [.send], results: results
        ) {
            // One more than is accepted, so that a paired device can take the place of another.
            $0.limits.peers = FileReceiver.mostSenders + 1
            $0.timings.linger = .seconds(2)
        }
        let plan = FileReceiver.Plan(
            destination: destination, policy: options.policy, mostBytes: options.mostBytes ?? .max,
            isOnce: options.isOnce || destination.isForOne, replaces: options.replaces)
        let questions = options.policy == .ask ? try FileQuestions(results.live) : nil
        let receiver = FileReceiver(
            plan, over: session, on: ThreadEventLoop(), results, asking: questions)
        session.startReading { receiver.took($0) }
        interruption.onRequest { receiver.interrupt() }
        let loss = Task {
            // A transport may take a moment to report that it does not work.
            try await Task.sleep(for: .seconds(1))
            return await session.onLoop { $0.groundlessness }
        }
        interruption.onRequest { loss.cancel() }
        let outcome = try await withThrowingTaskGroup(of: FileReceiver.Outcome?.self) { group in
            group.addTask { await receiver.work() }
            group.addTask {
                if let unavailable = try? await loss.value {
                    receiver.interrupt()
                    throw unavailable
                }
                return nil
            }
            while let next = try await group.next() {
                if let outcome = next {
                    loss.cancel()
                    return outcome
                }
            }
            return FileReceiver.Outcome()
        }
        await session.close()
        return report(outcome, results)
    }

    private func destination() throws -> FileReceiver.Plan.Destination {
        guard let file = options.file else { return .folder(try ReceivingFolder(options.folder ?? ".")) }
        guard file != ReceiveOptions.standardOutput else { return .standardOutput }
        guard let name = SafeFileName(ofPath: file) else {
            throw Misuse("--output: \(file) is no name of a file")
        }
        try refuseToReplace(file)
        let path = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(
            separator: "/")
        let folder = try ReceivingFolder(path.isEmpty ? (file.hasPrefix("/") ? "/" : ".") : path)
        guard options.replaces || !folder.has(name.text) else {
            throw FileFailure("\(file) is there already; --force replaces it")
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
        let hasFailed = failed(outcome)
        var members: [JSON.Member] = [
            .init("received", .integer(outcome.received)), .init("failed", .integer(outcome.failed)),
            .init("received_bytes", .integer(outcome.bytes)),
        ]
        if let error = outcome.error { members.append(.init("error", Results.json(of: error))) }
        results.sumUp(members, words: [])
        return hasFailed ? .failed : .well
    }

    /// Returns whether a failure or an interrupted transfer ended the command, or whether the one file that it waited
    /// for did not come.
    private func failed(_ outcome: FileReceiver.Outcome) -> Bool {
        outcome.error != nil || outcome.received == 0 && (options.isOnce || options.file != nil)
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
        Option("into", .text("DIRECTORY", candidates: .directories), "where files go; here without it"),
        Option(
            "output", short: "o", .text("FILE|-", candidates: .files),
            "takes one file and gives it that name; - is the standard output"),
        Option(
            "accept", .choice(of: AcceptPolicy.self), default: .ask,
            "whose files are taken: you are asked; those of any device; or those of paired devices"),
        Option("max-size", .size(in: 1 ... .max), "takes no larger files"),
        Option(flag: "once", "ends after one file"),
        Option(flag: "force", "replaces a file that is there already")
    ) { folder, file, policy, mostBytes, isOnce, replaces in
        if folder != nil, file != nil { throw Misuse("--into and --output exclude each other") }
        return ReceiveOptions(
            folder: folder, file: file, policy: policy, mostBytes: mostBytes, isOnce: isOnce,
            replaces: replaces)
    }
}
