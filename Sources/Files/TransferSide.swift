import NighCore

/// One side of a transfer, `OutgoingFiles` or `IncomingFiles`: takes the bytes of the stream, and does the work on the
/// disk between. It knows no stream, no clock and no thread. Its driver gives it the bytes that came, calls `work`, and
/// carries out the result.
package protocol TransferSide: AnyObject {
    /// Whether it can take bytes now. While it cannot, they wait in the stream, and so does the sender.
    var takesBytes: Bool { get }

    /// Whether the receiver has taken the offer, and the transfer has not ended.
    var isUnderway: Bool { get }

    /// Whether the transfer has ended. The records that are then left to send only give the reason.
    var hasEnded: Bool { get }

    /// The outcome for each item.
    var outcomes: [ItemOutcome] { get }

    /// Pauses the transfer, or goes on. The other side gets the reason.
    func setPaused(_ isPaused: Bool, because reason: String)

    /// Ends the transfer from this side.
    func stop(_ fault: FileFault)

    /// Ends the transfer if all is sent and only the other side's end is missing: that side takes too long.
    func leave()

    /// Takes the next bytes of the stream.
    func receive(_ bytes: UnsafeRawBufferPointer)

    /// The other side has finished writing, or the stream has failed.
    func receiveEnd(_ error: NighError?)

    /// Does the next piece of work, which takes a few milliseconds at most where the disk does not stall.
    func work() -> TransferWork

    /// How far the transfer is.
    var progress: TransferCount { get }
}

/// The result of one piece of work.
package enum TransferWork {
    /// These bytes are to be sent. They stay in place until the next call of `work`.
    case send(UnsafeRawBufferPointer)
    /// There may be more to do at once.
    case again
    /// There is nothing to do before bytes have come or the program has given a command.
    case wait
    /// There is nothing to do before there is something to read in a pipe that is sent.
    case waitForInput(AwaitedInput)
    /// The disk is full or too many files are open: there is nothing to do before some time has passed.
    case waitForRoom
    /// All is sent: finish writing, and wait for the other side's end.
    case finish
    /// The transfer is over.
    case over(TransferEnding)
}

/// How a transfer ended.
package enum TransferEnding {
    /// Every item was kept or has failed; `outcomes` says which.
    case complete
    /// The other side stopped it.
    case stopped(FileFault)
    /// This side stopped it, for its own or the program's reasons.
    case stoppedHere(FileFault)
    /// The stream failed before the end. Sent again, the transfer continues where it was.
    case lost(NighError)
}

/// The outcome for one item.
package enum ItemOutcome: Hashable, Sendable {
    case pending
    /// It is at the receiver, whole and verified. The path is known at the receiver only, and the hash for files only.
    case kept(path: String?, hash: [UInt8]?)
    /// It is not at the receiver, for a reason that this side or the other gave.
    case failed(FileFault, words: String)
}

/// How far a transfer is.
package struct TransferCount: Hashable, Sendable {
    /// The bytes that the receiver has, in all items.
    package var done = 0
    /// The bytes of all items whose size is known.
    package var total = 0
    /// Whether the sizes of all items are known.
    package var isTotalKnown = true
    /// The items that are at the receiver.
    package var itemsDone = 0
    /// The items that have failed.
    package var itemsFailed = 0
    package var items = 0
    /// The bytes that the receiver had before the transfer began.
    package var resumed = 0
    /// The bytes of files that went through the stream.
    package var transferred = 0
    /// The bytes that the receiver has got since the transfer began.
    package var moved: Int { done - resumed }
    /// The item that is being transferred.
    package var current: Int?
    /// Why nothing moves; nil unless a side has paused.
    package var pause: Pause?

    /// Counts an item of the offer.
    mutating func add(_ item: FileItem) {
        items += 1
        total += item.size ?? 0
        if item.size == nil { isTotalKnown = false }
    }

    /// Counts an item whose outcome is known.
    mutating func conclude(_ outcome: ItemOutcome) {
        if case .kept = outcome { itemsDone += 1 } else { itemsFailed += 1 }
    }

    package struct Pause: Hashable, Sendable {
        package var isHere: Bool
        package var reason: String

        package init(isHere: Bool, reason: String) {
            self.isHere = isHere
            self.reason = reason
        }
    }
}
