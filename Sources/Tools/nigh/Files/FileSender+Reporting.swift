import JSONText
import NighLoop
import NighCore

/// The reports about a file that is being sent.
extension FileSender {
    func showProgress() {
        let now = thread.now
        if results.live.isVisible, outcome.error == nil {
            results.live.show([meter.line(file.label, at: now, remark: remark)])
        }
        guard results.form == .jsonLines, now - reportedAt >= .seconds(1), meter.count != reportedCount else {
            return
        }
        reportedAt = now
        reportedCount = meter.count
        results.report(
            Self.progress,
            [
                .init("stored_bytes", .integer(meter.count)), .init("size_bytes", JSON(file.size)),
                .init("bytes_per_second", JSON(meter.rate(at: now))),
            ], lines: [])
    }

    func reportStart(at offset: Int) {
        guard let peer else { return }
        let lines =
            offset > 0
            ? [Line("\(peer.name) already has \(ByteCount(offset)) of it: continuing from there")] : []
        results.report(
            Self.start,
            [
                .init("peer_id", .text("\(peer.id)")), .init("peer_name", .text("\(peer.name)")),
                .init("transport", JSON(peer.transport)), .init("offset_bytes", .integer(offset)),
                .init("size_bytes", JSON(file.size)),
            ], lines: lines)
    }

    func reportLink(_ state: String, _ error: NighError?) {
        guard results.isText else {
            return results.report(
                Self.link,
                [.init("state", .text(state)), .init("error", error.map(Results.json) ?? .null)], lines: [])
        }
        let text =
            switch state {
            case "lost": "the link is lost; looking for another"
            case "back": "the link is back"
            default: "the conversation has ended; looking for the other side again"
            }
        results.remark(text + (error.map { " (\($0.cause))" } ?? ""))
    }
}

extension FileFailure {
    /// Creates the failure that the other side ended the transfer. With `canResume`, the file can be read and sent again.
    static func stopped(_ stop: FileStop, by name: String, canResume: Bool) -> FileFailure {
        let what =
            switch stop.reason {
            case .cancelled: "ended the transfer"
            case .declined: "does not want the file"
            case .tooLarge: "does not accept the file"
            case .noSpace: "has no space for the file"
            default: "could not continue the transfer"
            }
        let continues = stop.reason == .cancelled && canResume
        let advice = continues ? "; if you send it again, it continues where it stopped" : ""
        return FileFailure(
            "\(name) \(what)\(stop.explanation.isEmpty ? "" : ": \(stop.explanation)")\(advice)", stop.reason)
    }
}
