import Arguments
import Glibc
import JSONText
import NighCore
import NighFiles
import NighLoop
import NighSystem
import SessionArguments

/// `nigh transfers`: lists the transfers that are unfinished, continues those that this user has begun, and removes
/// them.
struct TransfersCommand: Subcommand {
    /// An action on the transfers.
    enum Action: Sendable {
        case list
        case resume(String, PluginChoice)
        case remove(String)
    }

    let output: OutputOptions
    /// The folder that files were received into; nil means the current one.
    let folder: String?
    let action: Action

    static let description = Command<any Subcommand>(
        "transfers", "Lists unfinished transfers, continues or removes them",
        text: """
            A transfer is unfinished if `nigh send` has begun it and not everything has arrived, or if `nigh receive` has left a \
            folder NAME.part. The sender continues it, with `nigh transfers resume` or by sending the same again, while \
            `nigh receive` runs at the other device.
            """,
        OutputOptions.options, intoOption,
        examples: [
            Example("", "lists what you send, and what is unfinished in the current folder"),
            Example("resume 1f3a", "continues to send"),
            Example("remove 1f3a --into ~/Downloads", "removes what was received of it in that folder"),
        ],
        subcommands: [
            Command(
                "resume", "Continues to send",
                text: """
                    It sends the same files to the same peer with the same options. Plugins are not remembered: name them \
                    again, unless they are in a plugin folder.
                    """,
                OutputOptions.options, PluginChoice.options, idOperand,
                examples: [Example("1f3a", "sends the same files to the same peer")]
            ) { TransfersCommand(output: $0, folder: nil, action: .resume($2, $1)) },
            Command(
                "remove", "Removes what is left of a transfer", OutputOptions.options, intoOption, idOperand,
                examples: [Example("1f3a", "forgets a send, or removes the folder NAME.part")]
            ) { TransfersCommand(output: $0, folder: $1, action: .remove($2)) },
        ]
    ) { TransfersCommand(output: $0, folder: $1, action: .list) }

    private static let intoOption = Option(
        "into", .text("DIRECTORY", candidates: .directories),
        "the folder that files were received into; by default the current one")
    private static let idOperand = Operand(
        "ID", .text("ID", candidates: .lines(of: CompleteCommand.line(for: .transfers))),
        "the ID of a transfer, or its beginning")

    static let kind = Results.Kind("transfer", plural: "transfers")

    var commandName: String { if case .resume = action { "send" } else { "transfers" } }

    var kinds: [Results.Kind] {
        switch action {
        case .list: [Self.kind]
        case .resume: [FileSender.file]
        case .remove: []
        }
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        switch action {
        case .list: show(try outgoing + incoming(), results)
        case .resume(let id, let plugins):
            let content: SavedTransfer.Content
            let transfer = try choose(id, from: outgoing)
            switch transfer.origin {
            case .outgoing(let recorded): content = recorded
            case .refused(let error): throw error
            case .incoming: return .failed
            }
            guard case .action(let command)? = try? NighProgram.table.parse(content.arguments, width: 80),
                var send = command as? SendCommand
            else {
                throw FileFailure("the record of \(id) cannot be read; `nigh transfers remove` removes it")
            }
            send.output = output
            send.session.plugins = plugins
            send.identity = content.peer
            send.record = transfer.id
            return try await send.run(results, stopRequest)
        case .remove(let id):
            let transfer = try choose(id, from: outgoing + incoming())
            switch transfer.origin {
            case .outgoing, .refused: try SavedTransfer.remove(transfer.id)
            case .incoming(let place, let left): try place.remove(left)
            }
            let names = transfer.names.isEmpty ? transfer.id : transfer.names.joined(separator: ", ")
            results.summarize(transfer.members, lines: [Line("\(names) is removed.")])
        }
        return .success
    }

    // MARK: The transfers

    struct Unfinished {
        fileprivate enum Origin {
            case outgoing(SavedTransfer.Content)
            /// A record that others could have written.
            case refused(NighError)
            case incoming(ReceivingFolder, UnfinishedTransfer)
        }

        let id: String
        fileprivate let origin: Origin
        let peer: PeerID?
        let peerName: String?
        let names: [String]
        let done: Int
        let size: Int?
        /// The number of files that are whole here; nil for a transfer that this side sends.
        let wholeFiles: Int?
        /// The time of the last change, in seconds since 1970.
        let changed: Int

        private var isOutgoing: Bool { if case .incoming = origin { false } else { true } }
        var direction: String { isOutgoing ? "to" : "from" }

        var members: [JSON.Member] {
            [
                .init("id", .text(id)), .init("direction", .text(isOutgoing ? "outgoing" : "incoming")),
                .init("peer_id", JSON(peer.map { "\($0)" })), .init("peer_name", JSON(peerName)),
                .init("names", .list(names.map { .text($0) })), .init("done_bytes", .integer(done)),
                .init("size_bytes", JSON(size)),
                .init("whole_files", JSON(wholeFiles)),
                .init("changed_at", .text(Self.date(changed, gmtime_r) + "Z")),
            ]
        }

        /// The transfer in one line, for a person.
        var line: Line {
            let size = size.map { " of \(ByteCount($0))" } ?? ""
            let who = peerName ?? peer?.short ?? "?"
            return Line(id, .strong) + Line(" \(direction) \(who): \(names.joined(separator: ", ")), ")
                + Line("\(ByteCount(done))\(size)")
                + Line(isOutgoing ? "; nigh transfers resume \(id)" : "", .faint)
        }

        fileprivate static func date(
            _ seconds: Int,
            _ convert: (UnsafePointer<time_t>, UnsafeMutablePointer<tm>) -> UnsafeMutablePointer<tm>?
        ) -> String {
            var (seconds, parts) = (seconds, tm())
            _ = convert(&seconds, &parts)
            var text = [CChar](repeating: 0, count: 32)
            strftime(&text, text.count, "%Y-%m-%dT%H:%M:%S", &parts)
            return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }

    /// The unfinished transfers: those that this user sends, and those in the folder.
    func unfinished() -> [Unfinished] {
        let readable = outgoing.filter { if case .refused = $0.origin { false } else { true } }
        return readable + ((try? incoming()) ?? [])
    }

    private var outgoing: [Unfinished] {
        SavedTransfer.all().map { id, content in
            switch content {
            case .success(let content):
                Unfinished(
                    id: id, origin: .outgoing(content), peer: content.peer, peerName: content.peerName,
                    names: content.names, done: content.done, size: content.total, wholeFiles: nil,
                    changed: content.changed)
            case .failure(let error):
                Unfinished(
                    id: id, origin: .refused(error), peer: nil, peerName: nil, names: [], done: 0, size: nil,
                    wholeFiles: nil, changed: 0)
            }
        }
    }

    private func incoming() throws -> [Unfinished] {
        guard let place = try place() else { return [] }
        let known = try? TrustStore.standard().peers
        return try place.unfinished().map { left in
            Unfinished(
                id: SavedTransfer.id(of: Self.realPath(left.path)), origin: .incoming(place, left),
                peer: left.sender,
                peerName: known?.first { $0.id == left.sender }?.name.description, names: [left.name],
                done: left.partialBytes, size: nil, wholeFiles: left.keptFiles,
                changed: left.lastChange / 1_000_000_000)
        }
    }

    /// The folder that files were received into; nil if none is named and no files can be received into the current
    /// one.
    private func place() throws(FileFailure) -> ReceivingFolder? {
        guard let folder else { return try? ReceivingFolder(".") }
        return try ReceivingFolder(folder)
    }

    private static func realPath(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    private func choose(_ id: String, from transfers: [Unfinished]) throws -> Unfinished {
        let found = transfers.filter { $0.id.hasPrefix(id) }
        guard let transfer = found.first else {
            if case .resume = action, try incoming().contains(where: { $0.id.hasPrefix(id) }) {
                throw FileFailure("\(id) comes from another device, and only that can continue it")
            }
            throw FileFailure("there is no unfinished transfer \(id); `nigh transfers` lists them")
        }
        guard found.count == 1 else {
            throw FileFailure(
                "\(id) is the beginning of several IDs: \(found.map(\.id).joined(separator: ", "))")
        }
        return transfer
    }

    // MARK: The list

    private func show(_ all: [Unfinished], _ results: Results) {
        var transfers = all
        transfers.removeAll { transfer in
            guard case .refused(let error) = transfer.origin else { return false }
            results.remark("\(error)")
            return true
        }
        var table = TextTable([
            ("ID", .left), ("", .left), ("PEER", .left), ("DONE", .right), ("CHANGED", .left),
            ("FILES", .left),
        ])
        for transfer in transfers {
            results.report(Self.kind, transfer.members, lines: [])
            let size = transfer.size.map { " of \(ByteCount($0))" } ?? ""
            let whole = transfer.wholeFiles.map { $0 > 0 ? ", \($0) whole" : "" } ?? ""
            table.add([
                Line(transfer.id, .strong), Line(transfer.direction),
                Line(transfer.peerName ?? transfer.peer?.short ?? ""),
                Line("\(ByteCount(transfer.done))\(size)\(whole)"),
                Line(Unfinished.date(transfer.changed, localtime_r)),
                Line(transfer.names.joined(separator: ", ")),
            ])
        }
        results.summarize(
            [.init("count", .integer(transfers.count))],
            lines: transfers.isEmpty ? ["No transfer is unfinished."] : table.lines)
    }
}
