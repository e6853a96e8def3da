/// How far a transfer of files is.
public struct FileProgress: Hashable, Sendable {
    /// The activity of a transfer.
    public enum State: Hashable, Sendable {
        /// The offer is on its way, or the receiver has not decided.
        case waiting
        /// The receiver has taken the offer.
        case transferring
        /// Nothing moves until one side goes on. The reason is for a person; `isHere` says whether this side has
        /// paused.
        case paused(isHere: Bool, reason: String)
        /// Every file was kept or has failed, or the transfer was stopped or lost.
        case ended
    }

    /// The transfer's activity.
    public var state: State
    /// The bytes that the receiver has.
    public var done: Int
    /// The bytes of all files; nil if the size of one is not known.
    public var total: Int?
    /// The bytes that did not have to be sent, because the receiver had them from before.
    public var resumed: Int
    /// The bytes of files that have passed through the stream.
    public var transferred: Int
    /// The files and folders that are at the receiver, whole and verified.
    public var itemsDone: Int
    /// The files and folders that will not arrive in this transfer.
    public var itemsFailed: Int
    /// The number of files and folders.
    public var itemCount: Int
    /// The file that is being transferred.
    public var current: FileItem?
    /// Bytes a second over the last seconds; nil while there is too little to measure, and while the link is lost.
    public var bytesPerSecond: Double?
    /// Whether the link is lost, and the session looks for another one. Nothing moves meanwhile.
    public var isReconnecting = false

    /// The share that is done, from 0 to 1; nil if the size of a file is not known.
    public var fraction: Double? {
        total.map { $0 > 0 ? min(Double(done) / Double($0), 1) : itemsDone == itemCount ? 1 : 0 }
    }

    /// The time that the rest takes at the present rate; nil while that is unknown.
    public var timeLeft: Duration? {
        guard let total, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
        return .seconds(min(Double(max(total - done, 0)) / bytesPerSecond, 1e9))
    }
}
