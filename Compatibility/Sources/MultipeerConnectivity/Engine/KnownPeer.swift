import NighCore
import NighSystem
import Synchronization

/// A peer as all its `MCPeerID` objects share it: its name, its PeerID, and its key if it is a peer of this program.
final class KnownPeer: Sendable {
    let id: PeerID
    let name: String
    /// Nil for a peer that is somebody else.
    let identity: Identity?
    /// Whether this program is the peer, and not only has its key.
    private let isUsed = Mutex(false)

    /// A new peer of this program's.
    convenience init(new name: String) {
        self.init(.ephemeral(), name: name)
        LocalPeers.shared.add(self)
    }

    init(_ identity: Identity, name: String) {
        id = identity.peerID
        self.name = name
        self.identity = identity
    }

    init(remote id: PeerID, name: String) {
        self.id = id
        self.name = name
        identity = nil
    }

    /// Keeps the key in a file, so that the peer is the same in a later run of the program. A failure is reported to
    /// the person, because archiving has no way to do so.
    func keep() {
        guard let identity else { return }
        do throws(NighError) {
            try LocalPeers.file(of: id).save(identity)
            if isUsed.withLock({ $0 }) { LocalPeers.shared.claim(self) }
        } catch {
            NighMultipeer.report("the key of \(name) could not be kept: \(error)")
        }
    }

    /// This program advertises or browses as the peer from now on.
    func use() {
        isUsed.withLock { $0 = true }
        LocalPeers.shared.claim(self)
    }
}

/// The peers of this program: those that it has made, and those whose keys it has kept.
final class LocalPeers: Sendable {
    static let shared = LocalPeers()

    private struct Entry {
        weak var peer: KnownPeer?
    }

    private let peers = Mutex<[PeerID: Entry]>([:])

    func add(_ peer: KnownPeer) {
        peers.withLock { peers in
            // Names that are gone are dropped when the table has grown.
            if peers.count >= 1_024 { peers = peers.filter { $0.value.peer != nil } }
            peers[peer.id] = Entry(peer: peer)
        }
    }

    /// The peer of an archive: one of this program's if its key is here, else somebody else.
    func peer(_ id: PeerID, name: String) -> KnownPeer {
        if let peer = peers.withLock({ $0[id]?.peer }) { return peer }
        guard let identity = try? Self.file(of: id).load(createIfMissing: false), identity.peerID == id else {
            return KnownPeer(remote: id, name: name)
        }
        let peer = KnownPeer(identity, name: name)
        add(peer)
        return peer
    }

    private let claimed = Mutex<Set<PeerID>>([])

    /// Holds the key file of a peer, if there is one, until the program ends. Reports it if another program holds it.
    /// Two programs with one key are one peer to everybody, themselves included: each takes what the other advertises
    /// for its own.
    func claim(_ peer: KnownPeer) {
        claimed.withLock { claimed in
            guard !claimed.contains(peer.id) else { return }
            let file = open(Self.file(of: peer.id).path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            guard file >= 0 else { return }
            claimed.insert(peer.id)
            guard flock(file, LOCK_EX | LOCK_NB) != 0 else { return }
            close(file)
            NighMultipeer.report(
                "another program of this user is \(peer.name), too, from the same archive; the two cannot find "
                    + "each other, and nobody can tell them apart: keep an MCPeerID for each program")
        }
    }

    static func file(of id: PeerID) -> IdentityFile {
        IdentityFile(path: "\(NighMultipeer.settings.identityFolder)/\(id).pem")
    }
}
