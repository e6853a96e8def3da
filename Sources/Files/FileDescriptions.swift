// How files and transfers print: each in one short line, for people.

extension FileItem: CustomStringConvertible {
    /// The path within the offer, and the size.
    public var description: String {
        switch kind {
        case .folder: "\(path), a folder"
        case .file: size.map { "\(path), \($0) bytes" } ?? path
        }
    }
}

extension FileResult: CustomStringConvertible {
    /// Whether the item arrived, and where it is, or why it did not.
    public var description: String {
        if let error { return "\(item.path) did not arrive: \(error)" }
        return path.map { "\(item.path) is at \($0)" } ?? "\(item.path) arrived"
    }
}

extension FileProgress: CustomStringConvertible {
    /// The transfer's activity, whether the link is lost, and how far it is.
    public var description: String {
        let bytes = total.map { "\(done) of \($0) bytes" } ?? "\(done) bytes"
        let failures = itemsFailed == 0 ? "" : ", \(itemsFailed) failed"
        let link = isReconnecting ? ", the link is lost" : ""
        return "\(state)\(link), \(bytes), \(itemsDone) of \(itemCount) files and folders\(failures)"
    }
}

extension FileProgress.State: CustomStringConvertible {
    /// The state in words.
    public var description: String {
        switch self {
        case .waiting: "waiting for an answer"
        case .transferring: "transferring"
        case .paused(_, let reason): reason.isEmpty ? "paused" : "paused: \(reason)"
        case .ended: "ended"
        }
    }
}

extension FileOffer: CustomStringConvertible {
    /// The peer's name, and the number and size of the items.
    public var description: String {
        let bytes = totalSize.map { ", \($0) bytes" } ?? ""
        return "\(transfer.peerLabel) offers \(items.count) files and folders\(bytes)"
    }
}

extension FileTransfer: CustomStringConvertible {
    /// The peer at the other end, and how far the transfer is.
    public var description: String { "files \(isIncoming ? "from" : "to") \(peerLabel): \(progress)" }
}
