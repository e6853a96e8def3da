import Distributed
import Nigh
import NighCore
import Synchronization

/// The surroundings of values while they are encoded or decoded: the arguments or the result of one call.
final class ValueContext: CBORContext {
    let system: ActorSystem
    /// The peer that the values come from; nil while values are encoded, and in a call of this program to itself.
    let peer: PeerID?
    /// The sequences among encoded values, which are still to be sent; in a call of this program to itself, to be read.
    private let streams = Mutex<[OutgoingStream]>([])

    static let key = CodingUserInfoKey(rawValue: "NighActors.values")!

    init(_ system: ActorSystem, peer: PeerID? = nil) {
        self.system = system
        self.peer = peer
    }

    var userInfo: [CodingUserInfoKey: any Sendable] { [.actorSystemKey: system, Self.key: self] }

    func add(_ stream: OutgoingStream) { streams.withLock { $0.append(stream) } }

    /// The sequence with this number, in a call of this program to itself.
    func ownStream(_ number: UInt64) -> (any Sendable)? {
        streams.withLock { streams in streams.first { $0.number == number }?.original }
    }

    /// Opens the streams of the sequences, to the peer that gets the values.
    nonisolated(nonsending) func openStreams(to peer: Peer) async throws(NighError) {
        let streams = streams.withLock { streams in
            defer { streams = [] }
            return streams
        }
        for stream in streams { try await stream.begin(to: peer, system) }
    }
}
