import NighCore
import Synchronization

/// The identity of a session, kept from other sessions for as long as this one needs it: two sessions of one identity
/// and one service are one peer to everybody else.
final class IdentityUse: Sendable {
    let identity: Identity
    let trust: TrustStore
    /// Whether the identity is temporary although the saved one was asked for.
    let isReplacement: Bool
    private let use: Use?

    private struct Use: Hashable {
        var path: String
        var service: String
    }

    /// What sessions of this program use now, and the files that it has claimed for all of them, until it ends.
    private struct Uses {
        var current: Set<Use> = []
        var claimedPaths: Set<String> = []

        mutating func begin(_ use: Use, of file: IdentityFile) -> Bool {
            guard !current.contains(use), claimedPaths.contains(use.path) || file.claim() else {
                return false
            }
            claimedPaths.insert(use.path)
            current.insert(use)
            return true
        }
    }

    private static let uses = Mutex(Uses())

    private init(_ identity: Identity, _ trust: TrustStore, isReplacement: Bool = false, use: Use? = nil) {
        self.identity = identity
        self.trust = trust
        self.isReplacement = isReplacement
        self.use = use
    }

    /// Reads the identity from its file. If another program, or another session of this service, uses the saved
    /// identity, this gives a temporary one instead.
    static func begin(_ choice: SessionIdentity, service: ServiceName) throws(NighError) -> IdentityUse {
        switch choice {
        case .temporary: return IdentityUse(.ephemeral(), .ephemeral())
        case .file(let path): return IdentityUse(try IdentityFile(path: path).load(), try .standard())
        case .saved:
            let file = try IdentityFile()
            let (identity, trust) = (try file.load(), try TrustStore.standard())
            let use = Use(path: file.path, service: service.description)
            guard uses.withLock({ $0.begin(use, of: file) }) else {
                return IdentityUse(.ephemeral(), trust, isReplacement: true)
            }
            return IdentityUse(identity, trust, use: use)
        }
    }

    /// Another session may use the identity.
    func end() {
        if let use { Self.uses.withLock { _ = $0.current.remove(use) } }
    }
}
