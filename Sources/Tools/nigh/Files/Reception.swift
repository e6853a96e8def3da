import JSONText
import NighLoop
import NighCore
import SessionArguments

/// A file that a peer is sending here. Confined to the `FileReceiver`.
final class Reception {
    /// Unique in the program.
    let number: Int
    var peer: Peer
    /// The warning that the person sees before deciding.
    let warning: PeerWarning?
    var talk: FileReceiving
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
    var toldAt: Moment
    var toldCount = -1

    init(_ number: Int, _ peer: Peer, _ talk: FileReceiving, at now: Moment) {
        self.number = number
        self.peer = peer
        warning = PeerWarning(peer)
        self.talk = talk
        since = now
        startedAt = now
        toldAt = now
    }

    var label: String { name?.text ?? "a file" }

    /// Drops a file whose sender does not know the size: data from a pipe is never resumed.
    func discardIfUseless() { if talk.offer?.size == nil { file?.discard() } }
}

/// The reports about files that are received.
extension FileReceiver {
    private func members(_ reception: Reception) -> [JSON.Member] {
        [
            .init("name", .text(reception.label)), .init("peer_id", .text("\(reception.peer.id)")),
            .init("peer_name", .text("\(reception.peer.name)")),
        ]
    }

    func tellReady(_ addresses: [TransportAddress], _ session: Session) {
        let name = session.configuration.name
        results.tell(
            Self.ready,
            [
                .init("peer_id", .text("\(session.id)")), .init("peer_name", .text("\(name)")),
                .init("addresses", .list(addresses.map { .text("\($0)") })),
            ], words: [])
        guard results.isInWords else { return }
        let list = addresses.map(\.description).joined(separator: " or ")
        results.remark("waiting for files; send with: nigh send \(name) FILE, or to \(list)")
    }

    func tellStart(_ reception: Reception) {
        let offset = reception.resumedAt
        if results.isInWords {
            let size = reception.talk.offer?.size.map { " (\(ByteCount($0)))" } ?? ""
            let standing = offset > 0 ? ", going on from \(ByteCount(offset))" : ""
            return results.remark("\(reception.peer.name) sends \(reception.label)\(size)\(standing)")
        }
        results.tell(
            Self.start,
            members(reception) + [
                .init("transport", JSON(reception.peer.transport)), .init("offset_bytes", .integer(offset)),
                .init("size_bytes", JSON(reception.talk.offer?.size)),
            ], words: [])
    }

    func tellFile(_ reception: Reception) {
        let time = (LoopThread.now - reception.startedAt).duration
        let rate = rate(of: reception.talk.position - reception.resumedAt, in: time)
        let hash = hexadecimal(reception.file?.hash ?? [])
        let speed = rate.map { ", \(ByteCount(Int($0)))/s" } ?? ""
        let words =
            Line("received ", .good) + Line(reception.path ?? reception.label, .strong)
            + Line(" from \(reception.peer.name): \(ByteCount(reception.talk.position)) in ")
            + Line("\(spoken(time))\(speed), ") + Line("sha256 \(hash)", .faint)
        if results.isInWords, case .standardOutput = plan.destination {
            return results.remark(words.text(colours: false))
        }
        results.tell(
            Self.file,
            members(reception) + [
                .init("path", JSON(reception.path)), .init("transport", JSON(reception.peer.transport)),
                .init("size_bytes", .integer(reception.talk.position)), .init("sha256", .text(hash)),
                .init("resumed_at_bytes", .integer(reception.resumedAt)),
                .init("duration_ms", .number(time.milliseconds)), .init("bytes_per_second", JSON(rate)),
            ], words: [words])
    }

    func tellFailure(_ reception: Reception, _ error: FileFailure) {
        outcome.failed += 1
        let remains = reception.file?.remains
        if results.isInWords {
            let stays = remains.map { "; \($0) stays, and sent again the file goes on from there" } ?? ""
            return results.remark("\(reception.label) from \(reception.peer.name): \(error)\(stays)")
        }
        results.tell(
            Self.failure,
            members(reception) + [
                .init("part", JSON(remains)), .init("stored_bytes", .integer(reception.file?.count ?? 0)),
                .init("error", Results.json(of: error)),
            ], words: [])
    }

    /// Reports what happened to the link to a sender.
    func note(_ state: String, _ reception: Reception, _ error: NighError?) {
        reception.remark = state == "lost" ? "the link is cut; waiting for it" : nil
        if results.isInWords {
            let cause = error.map { " (\($0.cause))" } ?? ""
            let words = state == "lost" ? "is lost, and looked for" : "is back"
            return results.remark("the link to \(reception.peer.name) \(words)\(cause)")
        }
        results.tell(
            Self.link,
            [
                .init("state", .text(state)), .init("peer_id", .text("\(reception.peer.id)")),
                .init("peer_name", .text("\(reception.peer.name)")),
                .init("error", error.map(Results.json) ?? .null),
            ], words: [])
    }

    func showProgress(at now: Moment) {
        let shown = receptions.values.filter { $0.meter != nil }.sorted { $0.startedAt < $1.startedAt }
        if results.live.isSeen {
            results.live.show(
                shown.compactMap { $0.meter?.line($0.label, at: now, remark: $0.remark) })
        }
        guard results.form == .jsonLines else { return }
        for reception in shown {
            guard let meter = reception.meter, now - reception.toldAt >= .seconds(1),
                meter.count != reception.toldCount
            else { continue }
            reception.toldAt = now
            reception.toldCount = meter.count
            results.tell(
                Self.progress,
                members(reception) + [
                    .init("stored_bytes", .integer(meter.count)),
                    .init("size_bytes", JSON(reception.talk.offer?.size)),
                    .init("bytes_per_second", JSON(meter.rate(at: now))),
                ], words: [])
        }
    }
}
