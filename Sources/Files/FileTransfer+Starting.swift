import NighCore
import Synchronization

extension FileTransfer {
    /// Offers files on a stream that was opened for that.
    ///
    /// - Parameter onAllKept: called on the thread of the transfer when the receiver has kept everything, before the
    ///   receiver learns that this is known here.
    package static func begin(
        _ source: sending any FileSource, metadata: [UInt8] = [], on stream: ByteStream,
        onAllKept: @escaping @Sendable () -> Void = {}
    ) -> FileTransfer {
        let side = OutgoingFiles(source, metadata: metadata)
        side.onDecided = { outcomes in
            let areAllKept = outcomes.allSatisfy { if case .kept = $0 { true } else { false } }
            if areAllKept { onAllKept() }
        }
        let transfer = FileTransfer(with: stream.peer, isIncoming: false, items: side.items) {
            [weak stream] in
            stream?.wake()
        }
        transfer.note(side.progress, isUnderway: false, at: LoopThread.now)
        let queue = FileQueue()
        Task(executorPreference: queue) {
            let ending = await TransferRun(stream: stream, side: side, transfer: transfer, queue: queue).run()
            transfer.end(ending, side.outcomes)
        }
        return transfer
    }
}

/// Receives the offers of all peers of a session.
package final class IncomingOffers: Sendable {
    /// The offers of one session that may wait for an answer.
    package static let limit = 16
    /// The time within which an offer has to come whole, in seconds.
    private static let listingTime = 30.0
    /// How long another program may wait to open a file that is being received, in seconds.
    private static let admissionInterval = 0.2

    private struct State {
        /// The offers that have no answer.
        var undecided = 0
        /// The transfers that have not ended.
        var running: [(stream: ByteStream, transfer: FileTransfer)] = []
    }

    private let state = Mutex(State())
    private let onOffer: @Sendable (FileOffer) -> Void

    /// - Parameter onOffer: gets each offer, on a thread of the transfer.
    package init(onOffer: @escaping @Sendable (FileOffer) -> Void) { self.onOffer = onOffer }

    /// Takes a stream that a peer has opened to send files.
    package func receive(_ stream: ByteStream) {
        let transfer = FileTransfer(with: stream.peer, isIncoming: true, items: []) { [weak stream] in
            stream?.wake()
        }
        let (isTooMany, earlier) = state.withLock { state in
            // What the conversation before this one has left holds its files for a moment more.
            let earlier = state.running.filter { $0.stream.peer == stream.peer && $0.stream.failure != nil }
            state.running.append((stream, transfer))
            let isTooMany = state.undecided >= Self.limit
            if !isTooMany { state.undecided += 1 }
            return (isTooMany, earlier.map(\.transfer))
        }
        let queue = FileQueue()
        Task(executorPreference: queue) {
            for transfer in earlier { _ = try? await transfer.finish() }
            await self.run(transfer, on: stream, queue, isTooMany: isTooMany)
        }
    }

    private func run(
        _ transfer: FileTransfer, on stream: ByteStream, _ queue: FileQueue, isTooMany: Bool
    ) async {
        let side = IncomingFiles()
        if isTooMany { side.stop(FileFault(.declined, "too many offers wait for an answer there")) }
        var isCounted = !isTooMany
        var isListed = false
        queue.after(Self.listingTime) { transfer.order(.stopUnlisted) }
        let admission = queue.every(Self.admissionInterval) {
            if transfer.isUnderway { transfer.order(.admitOtherPrograms) }
        }
        let ending = await TransferRun(stream: stream, side: side, transfer: transfer, queue: queue).run {
            if !isListed, side.isDeciding {
                isListed = true
                transfer.list(side.items)
                onOffer(FileOffer(transfer, metadata: side.metadata))
            }
            if isCounted, isListed, !side.isDeciding {
                isCounted = false
                state.withLock { $0.undecided -= 1 }
            }
        }
        admission.cancel()
        state.withLock { state in
            if isCounted { state.undecided -= 1 }
            state.running.removeAll { $0.transfer === transfer }
        }
        // The sizes that the offer left open are known now.
        transfer.list(side.items)
        transfer.end(ending, side.outcomes)
    }
}
