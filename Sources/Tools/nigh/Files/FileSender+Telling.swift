import JSONText
import NighLoop
import NighCore

/// The reports about a file that is being sent.
extension FileSender {
    func showProgress() {
        let now = thread.now
        if results.live.isSeen, outcome.error == nil {
            results.live.show([meter.line(file.label, at: now, remark: remark)])
        }
        guard results.form == .jsonLines, now - toldAt >= .seconds(1), meter.count != toldCount else {
            return
        }
        toldAt = now
        toldCount = meter.count
        results.tell(
            Self.progress,
            [
                .init("stored_bytes", .integer(meter.count)), .init("size_bytes", JSON(file.size)),
                .init("bytes_per_second", JSON(meter.rate(at: now))),
            ], words: [])
    }

    func tellStart(at offset: Int) {
        guard let peer else { return }
        let words =
            offset > 0
            ? [Line("\(peer.name) has \(ByteCount(offset)) of it already: going on from there")] : []
        results.tell(
            Self.start,
            [
                .init("peer_id", .text("\(peer.id)")), .init("peer_name", .text("\(peer.name)")),
                .init("transport", JSON(peer.transport)), .init("offset_bytes", .integer(offset)),
                .init("size_bytes", JSON(file.size)),
            ], words: words)
    }

    func note(_ state: String, _ error: NighError?) {
        guard results.isInWords else {
            return results.tell(
                Self.link,
                [.init("state", .text(state)), .init("error", error.map(Results.json) ?? .null)], words: [])
        }
        let words =
            switch state {
            case "lost": "the link is lost, and looked for"
            case "back": "the link is back"
            default: "the conversation has ended; looking for the other side again"
            }
        results.remark(words + (error.map { " (\($0.cause))" } ?? ""))
    }
}

extension FileFailure {
    /// Creates the failure that the other side ended the transfer. With `goesOn`, the file can be read and sent again.
    static func stopped(_ stop: FileStop, by name: String, goesOn: Bool) -> FileFailure {
        let what =
            switch stop.reason {
            case .cancelled: "ended it"
            case .declined: "does not want it"
            case .tooLarge: "does not take it"
            case .noSpace: "has no room for it"
            default: "could not go on with it"
            }
        let advice = stop.reason == .cancelled && goesOn ? "; sent again, it goes on from what is there" : ""
        return FileFailure(
            "\(name) \(what)\(stop.words.isEmpty ? "" : ": \(stop.words)")\(advice)", stop.reason)
    }
}
