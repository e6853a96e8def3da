import JSONText
import NighCore
import NighFiles
import NighLoop

/// The reports about files that are being sent.
extension FileSender {
    static let start = Results.Kind("start", plural: "starts")
    static let link = Results.Kind("link", plural: "links")
    static let progress = Results.Kind("progress", plural: "progress")
    static let file = Results.Kind("file", plural: "files")
    static let skipped = Results.Kind("skipped", plural: "skipped")

    func reportStart(_ progress: FileProgress) {
        guard let peer else { return }
        results.report(
            Self.start,
            [
                .init("peer_id", .text("\(peer.id)")), .init("peer_name", .text("\(peer.name)")),
                .init("transport", JSON(peer.transport)), .init("items", .integer(progress.itemCount)),
                .init("size_bytes", JSON(progress.total)),
            ], lines: [])
    }

    func showProgress() {
        guard let progress else {
            if let linkRemark { display.show([TransferText.line(label, nil, remark: linkRemark)]) }
            return
        }
        if progress.state != .ended {
            let waiting = progress.state == .waiting ? "waiting for the answer" : nil
            display.show(TransferText.lines(label, progress, remark: linkRemark ?? waiting))
        } else if let linkRemark {
            display.show(TransferText.lines(label, progress, remark: linkRemark))
        } else {
            display.show([])
        }
        guard thread.now - reportedAt >= .seconds(1), progress.done != reportedCount else { return }
        reportProgress(progress)
    }

    /// The files, and the peer if there are several.
    private var label: String {
        display.isOnly ? files.label : "\(peer.map { "\($0.name)" } ?? target.description): \(files.label)"
    }

    private func reportProgress(_ progress: FileProgress) {
        guard results.form == .jsonLines else { return }
        reportedAt = thread.now
        reportedCount = progress.done
        results.report(Self.progress, receiver + TransferText.members(progress), lines: [])
    }

    /// The peer that a line of JSON is about, if there are several.
    private var receiver: [JSON.Member] {
        display.isOnly ? [] : [.init("peer_id", JSON(peer.map { "\($0.id)" }))]
    }

    /// Reports that the transfer has paused or goes on.
    func reportPause(_ progress: FileProgress) {
        reportProgress(progress)
        guard results.isText, let peer, progress.state != .ended else { return }
        results.remark(
            progress.state.pause.map { "\(peer.name) has paused: \($0)" } ?? "\(peer.name) goes on")
    }

    func reportLink(_ state: String, _ error: NighError?) {
        guard results.isText else {
            return results.report(
                Self.link,
                receiver + [
                    .init("state", .text(state)), .init("transport", JSON(peer?.transport)),
                    .init("error", error.map(Results.json) ?? .null),
                ], lines: [])
        }
        let transport = peer?.transport ?? "another transport"
        let text =
            switch state {
            case "lost": "the link is lost; looking for another"
            case "back": "the link is back, over \(transport)"
            case "moved": "it goes on over \(transport)"
            default: "the conversation has ended; looking for the other side again"
            }
        let whose = display.isOnly ? "" : "\(outcome.peer.map { "\($0.name)" } ?? target.description): "
        results.remark(whose + text + (error.map { " (\($0.cause))" } ?? ""))
    }
}

extension FileFailure {
    /// Creates the failure that the other side ended the transfer. With `canResume`, the files can be read and sent
    /// again.
    static func stopped(_ fault: FileFault, by name: String, canResume: Bool) -> FileFailure {
        let what =
            switch fault.reason {
            case .cancelled: "ended the transfer"
            case .declined: "does not want the files"
            case .tooLarge: "does not accept the files"
            case .noSpace: "has no space for the files"
            default: "could not continue the transfer"
            }
        let continues = fault.reason == .cancelled && canResume
        let advice = continues ? "; if you send it again, it continues where it stopped" : ""
        return FileFailure(
            "\(name) \(what)\(fault.explanation.isEmpty ? "" : ": \(fault.explanation)")\(advice)",
            fault.reason)
    }
}
