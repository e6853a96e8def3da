import NighCore
import NighFiles
import Synchronization

/// Which files a session accepts.
public enum FileAcceptance: Hashable, Sendable {
    /// None. A peer that sends files gets an error which says so.
    case none
    /// Those that the program accepts: it gets each offer in ``Session/fileOffers``.
    case ask
    /// All files of paired peers, into this folder. Other peers' files are declined.
    case paired(into: String)
    /// The files of every connected peer, into this folder.
    case everyone(into: String)
}

/// The files that peers offer. Each offer goes to one reader, so use one loop for all of them.
///
/// An offer waits until it is answered, and at most 16 wait at once: more are declined. The sequence ends when the
/// session is closed.
public struct FileOffers: AsyncSequence, Sendable {
    let inbox: Inbox<FileOffer>

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Inbox<FileOffer>

        /// The next offer, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> FileOffer? {
            await inbox.next()
        }

        /// The next offer; nil after the last, or if the task is cancelled.
        public mutating func next() async -> FileOffer? { await next(isolation: nil) }
    }
}

/// Answers the offers of files as the settings say, or passes them on to the program.
final class FileReception: ConversationLayer {
    let offers = FileOffers(inbox: Inbox())
    private let acceptance: FileAcceptance
    private let session = Mutex(WeakSession())
    private let incoming = Mutex<IncomingOffers?>(nil)
    /// Held while an offer is added to `offers`, so that they stay in order.
    private let adding = Mutex(())

    private struct WeakSession {
        weak var core: SessionCore?
    }

    init(_ acceptance: FileAcceptance) {
        self.acceptance = acceptance
        incoming.withLock { $0 = IncomingOffers { [weak self] in self?.answer($0) } }
    }

    /// Reports to this session from now on.
    func report(to core: SessionCore) { session.withLock { $0.core = core } }

    var purposes: [StreamPurpose] { acceptance == .none ? [] : [.files] }

    func receive(_ stream: ByteStream) { incoming.withLock(\.self)?.receive(stream) }

    private func answer(_ offer: FileOffer) {
        guard let core = session.withLock({ $0.core }) else { return offer.decline() }
        switch acceptance {
        case .none: offer.decline()
        case .ask:
            add(offer)
            core.report(.filesOffered(offer))
        case .paired(let folder):
            guard core.peer(offer.peer).trust == .paired else {
                return offer.decline(because: "files are accepted from paired devices only")
            }
            accept(offer, into: folder, core)
        case .everyone(let folder): accept(offer, into: folder, core)
        }
    }

    /// Adds an offer for the program, and drops those that have ended or were accepted meanwhile. `IncomingOffers`
    /// bounds the others.
    private func add(_ offer: FileOffer) {
        adding.withLock { _ in
            var waiting: [FileOffer] = []
            while let next = offers.inbox.poll() { waiting.append(next) }
            for next in waiting where !next.transfer.isAnswered { offers.inbox.append(next) }
            offers.inbox.append(offer)
        }
    }

    private func accept(_ offer: FileOffer, into folder: String, _ core: SessionCore) {
        do throws(NighError) {
            core.report(.filesAccepted(try offer.accept(into: folder)))
        } catch {
            offer.decline(because: "files cannot be written there now")
            core.report(.problem(error))
        }
    }
}

extension Peer {
    /// Offers a file, or a folder with all that is in it, to the peer, whose program accepts or declines it. Returns
    /// when the offer is on its way; ``FileTransfer/finish()`` waits for the end. If the task is cancelled before that,
    /// the call fails at once and nothing is offered.
    ///
    /// If the same file was offered before and did not arrive whole, only what is missing is sent.
    public nonisolated(nonsending) func send(
        file path: String, metadata: [UInt8] = []
    ) async throws(NighError) -> FileTransfer {
        try await send(files: [path], metadata: metadata)
    }

    /// Offers files and folders to the peer, in one transfer; see ``send(file:metadata:)``. Fails if there are no
    /// paths, or if one of them cannot be read. A file in a folder that cannot be read, or one that changes while it is
    /// sent, does not stop the others.
    ///
    /// - Parameter metadata: Bytes that the peer's program gets with the offer: at most 4,096.
    public nonisolated(nonsending) func send(
        files paths: [String], metadata: [UInt8] = []
    ) async throws(NighError) -> FileTransfer {
        guard !isOfClosedSession else { throw NighError(.sending, .closed, peer: label) }
        guard !paths.isEmpty else {
            throw NighError(
                .sending, .invalid("list of files: it is empty"), peer: label,
                advice: "name at least one path")
        }
        guard metadata.count <= FileRecord.longestMetadata else {
            throw NighError(
                .sending, .limit("metadata of files", FileRecord.longestMetadata), peer: label,
                advice: "send longer data as a message or a file of its own")
        }
        // Looking through folders takes time.
        let source = try await onOwnThread(.sending) { () throws(NighError) in
            do throws(FileFailure) {
                return FoundFiles(try SourceTree(paths.map { .path($0) }, giveUp: .seconds(60)))
            } catch {
                throw error.error(.sending, peer: label)
            }
        }
        let stream = try await openStream(named: "files", for: .files)
        return FileTransfer.begin(source.tree, metadata: metadata, on: stream)
    }

    /// Carries the files from the thread that found them to that of the transfer.
    ///
    /// `@unchecked Sendable`: nothing else uses them.
    private struct FoundFiles: @unchecked Sendable {
        let tree: SourceTree
        init(_ tree: SourceTree) { self.tree = tree }
    }
}

extension Session {
    /// The files that peers offer, with ``FileAcceptance/ask`` in ``SessionSettings/files``.
    public var fileOffers: FileOffers { core.reception.offers }

    /// Offers files and folders to each of these peers, in a transfer of its own; see ``Peer/send(files:metadata:)``.
    /// The transfers are in the order of the peers. Fails if one peer cannot be sent files, or if the task is
    /// cancelled; the peers before have their offers then.
    public nonisolated(nonsending) func send(
        files paths: [String], metadata: [UInt8] = [], to peers: [Peer]
    ) async throws(NighError) -> [FileTransfer] {
        var transfers: [FileTransfer] = []
        for peer in peers { transfers.append(try await peer.send(files: paths, metadata: metadata)) }
        return transfers
    }
}
