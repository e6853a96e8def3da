import NighCore
import NighFiles
import Synchronization

/// Which files a session accepts.
public enum FileAcceptance: Hashable, Sendable {
    /// No files. A peer that sends some gets an error.
    case none
    /// Files that the program accepts: it gets each offer in ``Session/fileOffers``.
    case ask
    /// All files of paired peers, into this folder. Other peers' files are declined.
    case paired(into: String)
    /// The files of every connected peer, into this folder.
    case everyone(into: String)
}

/// Answers the offers of files as the settings say, or passes them on to the program.
final class FileReception: ConversationLayer {
    let offers = Incoming<FileOffer>()
    let accepted = Incoming<FileTransfer>()
    /// The number of accepted transfers that wait for a reader.
    private static let acceptedLimit = 64
    private let acceptance: FileAcceptance
    private let session = Mutex<SessionReference?>(nil)
    private let incoming = Mutex<IncomingOffers?>(nil)
    /// Held while an offer is added to `offers`, so that they stay in order.
    private let adding = Mutex(())

    init(_ acceptance: FileAcceptance) {
        self.acceptance = acceptance
        incoming.withLock { $0 = IncomingOffers { [weak self] in self?.answer($0) } }
    }

    func attach(to session: Session) { self.session.withLock { $0 = session.reference } }

    func sessionDidClose() {
        offers.inbox.finish()
        accepted.inbox.finish()
    }

    var purposes: [StreamPurpose] { acceptance == .none ? [] : IncomingOffers.purposes }

    func receive(_ stream: ByteStream) { incoming.withLock(\.self)?.receive(stream) }

    private func answer(_ offer: FileOffer) {
        guard let session = session.withLock(\.self) else { return offer.decline() }
        switch acceptance {
        case .none: offer.decline()
        case .ask: add(offer)
        case .paired(let folder):
            guard session.peer(offer.peer).trust == .paired else {
                return offer.decline(because: "files are accepted from paired devices only")
            }
            accept(offer, into: folder, session)
        case .everyone(let folder): accept(offer, into: folder, session)
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

    private func accept(_ offer: FileOffer, into folder: String, _ session: SessionReference) {
        do throws(NighError) {
            accepted.inbox.append(
                try offer.accept(into: folder), droppingOldestBeyond: Self.acceptedLimit)
        } catch {
            offer.decline(because: "files cannot be written there now")
            session.report(.problem(error))
        }
    }
}

extension Peer {
    /// Offers a file, or a folder with all that is in it, to the peer, whose program accepts or declines it. Returns
    /// when the offer is on its way; ``FileTransfer/finish()`` waits for the end. If the task is cancelled before that,
    /// the call fails at once and nothing is offered.
    ///
    /// If the same file was offered before and did not arrive whole, only the missing bytes are sent.
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
        let stream = try await openFileStream()
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
    /// The files that peers offer, with ``FileAcceptance/ask`` in ``SessionSettings/files``. An offer waits until it is
    /// answered, and at most 16 wait at once: more are declined.
    public var fileOffers: Incoming<FileOffer> { layer(FileReception.self)?.offers ?? .ended }

    /// The files that are being received because ``SessionSettings/files`` says so. If more than 64 transfers wait for
    /// the program to read of them, it does not hear of the oldest.
    public var acceptedFiles: Incoming<FileTransfer> { layer(FileReception.self)?.accepted ?? .ended }

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
