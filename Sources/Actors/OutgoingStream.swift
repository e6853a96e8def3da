import Nigh
import NighCalls
import NighCore

/// A sequence of values that this program sends to a peer.
struct OutgoingStream: Sendable {
    typealias Send = ([UInt8]) async throws -> Void

    /// The kind of a record, its first byte.
    enum Kind: UInt8 {
        case value = 0
        case failure = 1
    }

    /// The number by which the peer finds the stream.
    let number: UInt64
    /// The `RemoteStream`.
    let original: any Sendable
    /// Sends all values.
    let produce: @Sendable (_ send: Send) async throws -> Void

    /// Opens the stream, and sends the values in a task of its own, until the last one or until nobody reads them.
    nonisolated(nonsending) func begin(to peer: Peer, _ system: ActorSystem) async throws(NighError) {
        let stream = try await peer.openStream(named: "\(ActorStream.values)\(number)", for: .actors)
        let limit = try system.session.messageLimit(for: peer.id)
        let errors = system.errors
        Task(executorPreference: system.session.loop.programExecutor) {
            await withTaskGroup { group in
                group.addTask { await send(over: stream, limit: limit, errors, to: peer) }
                // Ends when this side has finished, or when nobody reads any more.
                group.addTask { _ = await stream.stopped() }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private func send(over stream: ByteStream, limit: Int, _ errors: ErrorAllowance, to peer: Peer) async {
        do {
            try await produce { bytes in
                guard bytes.count < limit else {
                    throw NighError(
                        .sending, .messageTooLarge(size: bytes.count, limit: limit), peer: peer.label)
                }
                try await stream.write(Self.frame(.value, ByteSlice(bytes)))
            }
            stream.finish()
        } catch {
            let content = errors.encode(error, showsText: peer.trust == .paired)
            try? await stream.write(Self.frame(.failure, content))
            stream.finish()
        }
    }

    private static func frame(_ kind: Kind, _ content: ByteSlice) -> ByteSlice {
        StreamMessageParser.frame(then: content) { $0.write(kind.rawValue) }
    }
}
