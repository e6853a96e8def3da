import JSONText
import NighCore
import NighFiles
import NighLoop
import NighSystem
import SessionArguments

/// The files that a peer sends to this command. Confined to the `FileReceiver`, hence `@unchecked Sendable`.
final class IncomingTransfer: @unchecked Sendable {
    /// A number that is unique in the program.
    let number: Int
    var peer: Peer
    /// When the peer was accepted or, once it is connected, when it connected.
    var since: Moment
    /// Nil until the peer has offered something.
    var offer: FileOffer?
    /// An offer that came when this transfer was about to end.
    var next: FileOffer?
    /// The name of a single file or folder, or how many there are.
    var label = "files"
    var isAccepted = false
    var startedAt: Moment
    var progress: FileProgress?
    /// Why nothing comes at the moment.
    var linkRemark: String?
    /// The bytes of the files that have arrived.
    var receivedBytes = 0
    var reportedAt: Moment
    var reportedCount = -1

    init(_ number: Int, _ peer: Peer, at now: Moment) {
        self.number = number
        self.peer = peer
        since = now
        startedAt = now
        reportedAt = now
    }

    /// Whether the transfer has its result, although it may not have ended.
    var isEnding: Bool {
        guard let progress = offer?.transfer.progress else { return false }
        return progress.state == .ended || progress.isDecided
    }

    /// The facts that count when another peer wants the place of this one.
    func holder(at now: Moment) -> SenderPlaces.Holder {
        var movedAt = offer?.transfer.movedAt ?? since
        // A transfer that waits for this side is not idle.
        if case .paused(isHere: true, _)? = offer?.transfer.progress.state { movedAt = now }
        return SenderPlaces.Holder(
            peer: peer.id, number: number, isPaired: peer.trust == .paired, isAccepted: isAccepted,
            movedAt: movedAt)
    }

    /// The title for a person: the name of a single file or folder in quotes, or how many there are.
    var title: String { offer?.items.count == 1 ? TransferText.quoted(label) : label }

    /// The sender with its PeerID, and with a warning if it looks like another.
    var sender: String {
        let doubt = PeerWarning(peer).map { "; \($0.sentence)" } ?? ""
        return "\(peer.name) (\(peer.identity.short)\(doubt))"
    }
}

/// The reports about files that are received.
extension FileReceiver {
    static let ready = Results.Kind("ready", plural: "ready")
    static let start = Results.Kind("start", plural: "starts")
    static let link = Results.Kind("link", plural: "links")
    static let progress = Results.Kind("progress", plural: "progress")
    static let file = Results.Kind("file", plural: "files")
    static let transfer = Results.Kind("transfer", plural: "transfers")
    static let failure = Results.Kind("failure", plural: "failures")

    private func members(_ incoming: IncomingTransfer, name: String? = nil) -> [JSON.Member] {
        [
            .init("name", .text(name ?? incoming.label)), .init("peer_id", .text("\(incoming.peer.id)")),
            .init("peer_name", .text("\(incoming.peer.name)")),
        ]
    }

    func reportReady(_ addresses: [TransportAddress], _ session: Session) {
        let name = session.configuration.name
        results.report(
            Self.ready,
            [
                .init("peer_id", .text("\(session.id)")), .init("peer_name", .text("\(name)")),
                .init("addresses", .list(addresses.map { .text("\($0)") })),
            ], lines: [])
        guard results.isText else { return }
        let list = addresses.map(\.description).joined(separator: " or ")
        results.remark(
            "waiting for files; send with: nigh send \(ShellWord.operand("\(name)")) FILE, or to \(list)")
    }

    func reportStart(_ incoming: IncomingTransfer) {
        guard let offer = incoming.offer else { return }
        if results.isText {
            let size = offer.totalSize.map { " (\(ByteCount($0)))" } ?? ""
            return results.remark("\(incoming.peer.name) sends \(incoming.title)\(size)")
        }
        results.report(
            Self.start,
            members(incoming) + [
                .init("transport", JSON(incoming.peer.transport)),
                .init("items", .integer(offer.items.count)), .init("size_bytes", JSON(offer.totalSize)),
            ], lines: [])
    }

    /// Reports a file or folder that has arrived, or has not.
    func reportItem(_ result: FileResult, _ incoming: IncomingTransfer) {
        if let error = result.error {
            outcome.failed += 1
            return report(
                error, name: result.item.path, title: TransferText.quoted(result.item.path), part: nil,
                stored: 0,
                incoming)
        }
        guard result.item.kind == .file else { return }
        let isOnly = incoming.offer?.items.count == 1
        let size = result.item.size ?? 0
        outcome.received += 1
        outcome.bytes += size
        incoming.receivedBytes += size
        let name = result.path.map(Self.lastName) ?? incoming.label
        if let path = result.path { hooks?.run(for: .init(path: path, size: size, peer: incoming.peer)) }
        let hash = result.hash?.hexadecimal ?? ""
        let line =
            Line("received ", .good) + Line(result.path ?? name, .strong)
            + Line(" from \(incoming.peer.name): \(ByteCount(size))")
            + Line(isOnly ? " in \(time(of: incoming))" : "")
            + (plan.showsHashes ? Line(", ") + Line("sha256 \(hash)", .faint) : Line(""))
        if results.isText, case .standardOutput = plan.destination {
            return results.remark(line.text(colours: false))
        }
        results.report(
            Self.file,
            members(incoming, name: name) + [
                .init("path", JSON(result.path)), .init("size_bytes", .integer(size)),
                .init("sha256", .text(hash)),
            ], lines: [line])
    }

    private static func lastName(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    private func duration(of incoming: IncomingTransfer) -> Duration {
        (LoopThread.now - incoming.startedAt).duration
    }

    private func transferRate(of incoming: IncomingTransfer) -> Double? {
        let count = incoming.offer?.transfer.progress.transferred ?? 0
        return rate(of: count, in: duration(of: incoming))
    }

    private func time(of incoming: IncomingTransfer) -> String {
        let speed = transferRate(of: incoming).map { ", \(ByteCount(Int($0)))/s" } ?? ""
        return "\(durationText(duration(of: incoming)))\(speed)"
    }

    /// Reports a transfer in which each file has its result.
    func reportEnd(_ incoming: IncomingTransfer) {
        guard let offer = incoming.offer, let progress = incoming.progress else { return }
        let failed = progress.itemsFailed > 0 ? "; \(progress.itemsFailed) did not arrive" : ""
        let line =
            Line("received ", .good) + Line(TransferText.count(offer.items), .strong)
            + Line(
                " from \(incoming.peer.name): \(ByteCount(incoming.receivedBytes)) in \(time(of: incoming))\(failed)"
            )
        results.report(
            Self.transfer,
            members(incoming) + [
                .init("transport", JSON(incoming.peer.transport)),
                .init("items", .integer(progress.itemCount)), .init("failed", .integer(progress.itemsFailed)),
                .init("received_bytes", .integer(incoming.receivedBytes)),
                .init("resumed_bytes", .integer(progress.resumed)),
                .init("duration_ms", .number(duration(of: incoming).milliseconds)),
                .init("bytes_per_second", JSON(transferRate(of: incoming))),
            ], lines: offer.items.count > 1 ? [line] : [])
    }

    /// Reports a transfer that ended too early.
    func reportFailure(_ incoming: IncomingTransfer, _ error: NighError) {
        outcome.failed += 1
        report(
            error, name: incoming.label, title: incoming.title, part: remains(of: incoming),
            stored: incoming.progress?.done ?? 0, incoming)
    }

    /// The path of the part of a transfer that stays; nil if nothing does.
    private func remains(of incoming: IncomingTransfer) -> String? {
        let folder: ReceivingFolder
        switch plan.destination {
        case .folder(let place), .file(let place, _): folder = place
        case .standardOutput: return nil
        }
        let names = Set(incoming.offer?.items.map { $0.path.pathComponents.first ?? "" } ?? [])
        let left = (try? folder.unfinished()) ?? []
        let own = left.filter { $0.sender == incoming.peer.identity && names.contains($0.name) }
        return (own.first { $0.partialBytes > 0 } ?? own.first { $0.keptFiles > 0 })?.path
    }

    private func report(
        _ error: NighError, name: String, title: String, part: String?, stored: Int,
        _ incoming: IncomingTransfer
    ) {
        if results.isText {
            let reason =
                if case .file(let fault) = error.cause { fault.explanation } else { "\(error.cause)" }
            let stays = part.map {
                "; \($0) stays; if it is sent again, it continues where it stopped"
            }
            return results.remark("\(title) from \(incoming.peer.name): \(reason)\(stays ?? "")")
        }
        results.report(
            Self.failure,
            members(incoming, name: name) + [
                .init("part", JSON(part)), .init("stored_bytes", .integer(stored)),
                .init("error", Results.json(of: error)),
            ], lines: [])
    }

    /// Reports a change of the link to a sender.
    func reportLink(_ state: String, _ incoming: IncomingTransfer, _ error: NighError?) {
        incoming.linkRemark = state == "lost" ? "the link is lost; looking for another" : nil
        if results.isText {
            let cause = error.map { " (\($0.cause))" } ?? ""
            let transport = incoming.peer.transport ?? "another transport"
            let name = incoming.peer.name
            let text =
                switch state {
                case "lost": "the link to \(name) is lost; looking for another"
                case "back": "the link to \(name) is back, over \(transport)"
                default: "what \(name) sends goes on over \(transport)"
                }
            return results.remark("\(text)\(cause)")
        }
        results.report(
            Self.link,
            [
                .init("state", .text(state)), .init("transport", JSON(incoming.peer.transport)),
                .init("peer_id", .text("\(incoming.peer.id)")),
                .init("peer_name", .text("\(incoming.peer.name)")),
                .init("error", error.map(Results.json) ?? .null),
            ], lines: [])
    }

    /// Reports that a transfer has paused or goes on.
    func reportPause(_ incoming: IncomingTransfer) {
        guard let progress = incoming.progress, progress.state != .ended else { return }
        reportProgress(incoming, progress)
        guard results.isText else { return }
        let reason = progress.state.pause.map { "has paused: \($0)" } ?? "goes on"
        results.remark("\(incoming.title) from \(incoming.peer.name) \(reason)")
    }

    func showProgress(at now: Moment) {
        let shown = transfers.values.filter(\.isAccepted).sorted { $0.startedAt < $1.startedAt }
        if results.live.isVisible {
            results.live.show(
                shown.flatMap { incoming in
                    incoming.offer.map {
                        TransferText.lines(incoming.title, $0.transfer.progress, remark: incoming.linkRemark)
                    } ?? []
                })
        }
        for incoming in shown where now - incoming.reportedAt >= .seconds(1) {
            guard let progress = incoming.offer?.transfer.progress, progress.done != incoming.reportedCount
            else { continue }
            incoming.reportedAt = now
            reportProgress(incoming, progress)
        }
    }

    private func reportProgress(_ incoming: IncomingTransfer, _ progress: FileProgress) {
        guard results.form == .jsonLines else { return }
        incoming.reportedCount = progress.done
        results.report(Self.progress, members(incoming) + TransferText.members(progress), lines: [])
    }
}
