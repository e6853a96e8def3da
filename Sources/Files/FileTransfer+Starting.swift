import CMalloc
import NighCore
import NighSystem
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
        let version: FileVersion = stream.purpose == .comparedFiles ? .comparing : .first
        let side = OutgoingFiles(source, metadata: metadata, version: version)
        side.onDecided = { outcomes in
            let areAllKept = outcomes.allSatisfy { if case .kept = $0 { true } else { false } }
            if areAllKept { onAllKept() }
        }
        let transfer = FileTransfer(
            with: stream.peer, of: stream.identity, called: stream.peerLabel, isIncoming: false,
            items: side.items
        ) { [weak stream] in
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

extension Peer {
    /// Opens a stream to send files: one on which they are compared, if the peer can do that.
    package nonisolated(nonsending) func openFileStream() async throws(NighError) -> ByteStream {
        do throws(NighError) {
            return try await openStream(named: "files", for: .comparedFiles)
        } catch {
            guard case .unsupported = error.cause else { throw error }
            return try await openStream(named: "files", for: .files)
        }
    }
}

/// Receives the offers of all peers of a session.
package final class IncomingOffers: ConversationLayer {
    /// The offers of one session that may wait for an answer. One more of a peer that has made none may wait in any
    /// case, so that no peer keeps out the others.
    package static let limit = 16
    /// The time within which an offer has to come whole.
    package static let listingTime = Duration.seconds(30)
    /// The bytes of memory that the items of all offers of one session may take, from the offer to the end of its
    /// transfer: about two offers of 100,000 items. A 64th of it each peer may take in any case.
    package static let mostHeldBytes = 64 << 20
    /// After a transfer with a list of this many bytes, free memory is given back to the system.
    private static let largeList = 4 << 20

    private struct State {
        /// The number of offers of each peer that have no answer.
        var undecided: [PeerID: Int] = [:]
        /// The bytes of memory that the items take that each peer has offered.
        var held: [PeerID: Int] = [:]
        var heldByAll = 0
        /// The transfers that have not ended.
        var running: [(stream: ByteStream, transfer: FileTransfer)] = []
    }

    private let state = Mutex(State())
    private let onOffer: @Sendable (FileOffer) -> Void

    /// - Parameter onOffer: gets each offer, on a thread of the transfer.
    package init(onOffer: @escaping @Sendable (FileOffer) -> Void) { self.onOffer = onOffer }

    /// Whether an offer of the peer comes now or waits for an answer.
    package func isOffering(_ peer: PeerID) -> Bool { state.withLock { $0.undecided[peer] != nil } }

    /// The purposes of streams for files.
    package static let purposes: [StreamPurpose] = [.files, .comparedFiles]

    package var purposes: [StreamPurpose] { Self.purposes }

    /// Takes a stream that a peer has opened to send files.
    package func receive(_ stream: ByteStream) {
        let transfer = FileTransfer(
            with: stream.peer, of: stream.identity, called: stream.peerLabel, isIncoming: true, items: []
        ) { [weak stream] in
            stream?.wake()
        }
        let (isTooMany, earlier) = state.withLock { state in
            // Transfers of an earlier conversation with the peer hold their files for a moment more.
            let earlier = state.running.filter { $0.stream.peer == stream.peer && $0.stream.failure != nil }
            state.running.append((stream, transfer))
            let ofThisPeer = state.undecided[stream.peer, default: 0]
            let isTooMany = ofThisPeer > 0 && state.undecided.values.reduce(0, +) >= Self.limit
            if !isTooMany { state.undecided[stream.peer] = ofThisPeer + 1 }
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
        side.mayHold = { [self, peer = stream.peer] in hold($0, of: peer) }
        if isTooMany { side.stop(FileFault(.declined, "too many offers wait for an answer there")) }
        var isCounted = !isTooMany
        var isListed = false
        // A transfer that has ended before is not kept until then, with all that was listed.
        queue.after(Self.listingTime / .seconds(1)) { [weak transfer] in transfer?.order(.stopUnlisted) }
        let ending = await TransferRun(stream: stream, side: side, transfer: transfer, queue: queue).run {
            if !isListed, side.isDeciding {
                isListed = true
                transfer.list(side.items)
                onOffer(FileOffer(transfer, metadata: side.metadata))
            }
            if isCounted, isListed, !side.isDeciding {
                isCounted = false
                uncount(stream.peer)
            }
        }
        if isCounted { uncount(stream.peer) }
        state.withLock { state in state.running.removeAll { $0.transfer === transfer } }
        release(side.heldBytes, of: stream.peer)
        // The sizes that the offer left open are known now.
        transfer.list(side.items)
        transfer.end(ending, side.outcomes)
        // By then the program has looked at it, and let go of it as a rule. The C library would keep the memory.
        if side.heldBytes >= Self.largeList { queue.after(1) { malloc_trim(0) } }
    }

    /// Returns whether an item of an offer may take more memory, and counts it then.
    func hold(_ bytes: Int, of peer: PeerID) -> Bool {
        state.withLock { state in
            let own = state.held[peer, default: 0] + bytes
            let all = state.heldByAll + bytes
            guard all <= Self.mostHeldBytes || own <= Self.mostHeldBytes / 64 else { return false }
            state.held[peer] = own
            state.heldByAll = all
            return true
        }
    }

    /// The items of a transfer that has ended take no more memory.
    func release(_ bytes: Int, of peer: PeerID) {
        state.withLock { state in
            state.held[peer] = state.held[peer].flatMap { $0 > bytes ? $0 - bytes : nil }
            state.heldByAll -= bytes
        }
    }

    /// An offer of the peer has its answer, or will not get one.
    private func uncount(_ peer: PeerID) {
        state.withLock { state in
            state.undecided[peer] = state.undecided[peer].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
    }
}
