import JSONText
import NighLoop
import NighCore
import SessionArguments

/// A file that a peer is sending here. Confined to the `FileReceiver`.
final class IncomingFile {
    /// Unique in the program.
    let number: Int
    var peer: Peer
    /// The warning that the person sees before deciding.
    let warning: PeerWarning?
    var machine: FileReceiveMachine
    /// When the peer was accepted or, once it is connected, when it connected.
    var since: Moment
    /// The name of the file here.
    var name: SafeFileName?
    var file: (any ReceivedFile)?
    /// The path of the received file.
    var path: String?
    /// When the sender was told to begin.
    var startedAt: Moment
    var resumedAt = 0
    var meter: TransferMeter?
    /// Why this side ended the transfer.
    var error: FileFailure?
    /// A remark that is shown beside the progress.
    var remark: String?
    var reportedAt: Moment
    var reportedCount = -1

    init(_ number: Int, _ peer: Peer, _ machine: FileReceiveMachine, at now: Moment) {
        self.number = number
        self.peer = peer
        warning = PeerWarning(peer)
        self.machine = machine
        since = now
        startedAt = now
        reportedAt = now
    }

    var label: String { name?.text ?? "a file" }

    /// Drops a file whose sender does not know the size: data from a pipe is never resumed.
    func discardIfUseless() { if machine.offer?.size == nil { file?.discard() } }
}

/// The reports about files that are received.
extension FileReceiver {
    private func members(_ incoming: IncomingFile) -> [JSON.Member] {
        [
            .init("name", .text(incoming.label)), .init("peer_id", .text("\(incoming.peer.id)")),
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
        results.remark("waiting for files; send with: nigh send \(name) FILE, or to \(list)")
    }

    func reportStart(_ incoming: IncomingFile) {
        let offset = incoming.resumedAt
        if results.isText {
            let size = incoming.machine.offer?.size.map { " (\(ByteCount($0)))" } ?? ""
            let standing = offset > 0 ? ", continuing from \(ByteCount(offset))" : ""
            return results.remark("\(incoming.peer.name) sends \(incoming.label)\(size)\(standing)")
        }
        results.report(
            Self.start,
            members(incoming) + [
                .init("transport", JSON(incoming.peer.transport)), .init("offset_bytes", .integer(offset)),
                .init("size_bytes", JSON(incoming.machine.offer?.size)),
            ], lines: [])
    }

    func reportFile(_ incoming: IncomingFile) {
        let time = (LoopThread.now - incoming.startedAt).duration
        let rate = rate(of: incoming.machine.position - incoming.resumedAt, in: time)
        let hash = hexadecimal(incoming.file?.hash ?? [])
        let speed = rate.map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let line =
            Line("received ", .good) + Line(incoming.path ?? incoming.label, .strong)
            + Line(" from \(incoming.peer.name): \(ByteCount(incoming.machine.position)) in ")
            + Line("\(durationText(time))\(speed), ") + Line("sha256 \(hash)", .faint)
        if results.isText, case .standardOutput = plan.destination {
            return results.remark(line.text(colours: false))
        }
        results.report(
            Self.file,
            members(incoming) + [
                .init("path", JSON(incoming.path)), .init("transport", JSON(incoming.peer.transport)),
                .init("size_bytes", .integer(incoming.machine.position)), .init("sha256", .text(hash)),
                .init("resumed_at_bytes", .integer(incoming.resumedAt)),
                .init("duration_ms", .number(time.milliseconds)), .init("bytes_per_second", JSON(rate)),
            ], lines: [line])
    }

    func reportFailure(_ incoming: IncomingFile, _ error: FileFailure) {
        outcome.failed += 1
        let remains = incoming.file?.remains
        if results.isText {
            let advice = "if the file is sent again, it continues where it stopped"
            let stays = remains.map { "; \($0) stays; \(advice)" } ?? ""
            return results.remark("\(incoming.label) from \(incoming.peer.name): \(error)\(stays)")
        }
        results.report(
            Self.failure,
            members(incoming) + [
                .init("part", JSON(remains)), .init("stored_bytes", .integer(incoming.file?.count ?? 0)),
                .init("error", Results.json(of: error)),
            ], lines: [])
    }

    /// Reports what happened to the link to a sender.
    func reportLink(_ state: String, _ incoming: IncomingFile, _ error: NighError?) {
        incoming.remark = state == "lost" ? "the link is lost; looking for another" : nil
        if results.isText {
            let cause = error.map { " (\($0.cause))" } ?? ""
            let text = state == "lost" ? "is lost; looking for another" : "is back"
            return results.remark("the link to \(incoming.peer.name) \(text)\(cause)")
        }
        results.report(
            Self.link,
            [
                .init("state", .text(state)), .init("peer_id", .text("\(incoming.peer.id)")),
                .init("peer_name", .text("\(incoming.peer.name)")),
                .init("error", error.map(Results.json) ?? .null),
            ], lines: [])
    }

    func showProgress(at now: Moment) {
        let shown = incomingFiles.values.filter { $0.meter != nil }.sorted { $0.startedAt < $1.startedAt }
        if results.live.isVisible {
            results.live.show(
                shown.compactMap { $0.meter?.line($0.label, at: now, remark: $0.remark) })
        }
        guard results.form == .jsonLines else { return }
        for incoming in shown {
            guard let meter = incoming.meter, now - incoming.reportedAt >= .seconds(1),
                meter.count != incoming.reportedCount
            else { continue }
            incoming.reportedAt = now
            incoming.reportedCount = meter.count
            results.report(
                Self.progress,
                members(incoming) + [
                    .init("stored_bytes", .integer(meter.count)),
                    .init("size_bytes", JSON(incoming.machine.offer?.size)),
                    .init("bytes_per_second", JSON(meter.rate(at: now))),
                ], lines: [])
        }
    }
}
