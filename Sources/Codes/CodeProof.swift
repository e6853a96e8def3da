import NighCore

/// Runs code exchanges over a stream of a conversation.
package enum CodeProof {
    /// The outcome of an exchange.
    package enum Outcome: Equatable, Sendable {
        /// Both sides know the code.
        case proven
        /// The other side does not know the code, or says that it is not valid any more.
        case wrong
        /// The exchange ended before anybody made a guess.
        case incomplete(NighError)
    }

    /// The name of the stream that the asking side opens.
    package static let streamName = "code"

    /// The number of exchanges on one stream, if the links change meanwhile.
    private static let maximumExchanges = 4

    /// Proves to a connected peer that this side knows the code, and checks that the peer does.
    package static func prove(_ key: CodeKey, to peer: Peer, as own: PeerID) async -> Outcome {
        do throws(NighError) {
            let stream = try await peer.openStream(named: streamName)
            return try await run(.asking, key, on: stream, with: peer, as: own)
        } catch {
            return .incomplete(error)
        }
    }

    /// Checks whether the peer that has opened the stream knows the code.
    package static func check(_ key: CodeKey, on stream: ByteStream, of peer: Peer, as own: PeerID) async
        -> Outcome
    {
        do throws(NighError) {
            return try await run(.asked, key, on: stream, with: peer, as: own)
        } catch {
            return .incomplete(error)
        }
    }

    private static func run(
        _ role: CodeExchange.Role, _ key: CodeKey, on stream: ByteStream, with peer: Peer, as own: PeerID
    ) async throws(NighError) -> Outcome {
        var unread: [UInt8] = []
        for _ in 0..<maximumExchanges {
            guard let material = try await peer.keyingMaterial(label: CodeExchange.exporterLabel) else {
                throw NighError(
                    .conversing, .unavailable("one-time codes need an encrypted link"), peer: "\(peer.name)")
            }
            var exchange = CodeExchange(role: role, key: key, own: own, other: peer.id, material: material)
            if role == .asking { try await stream.write(exchange.first.bytes) }
            exchanging: while true {
                let message = try await next(&unread, on: stream, from: peer)
                let step: CodeExchange.Step
                do throws(CodeExchange.Violation) {
                    step = try exchange.receive(message)
                } catch {
                    stream.cancel(because: "not a code exchange")
                    throw NighError(
                        .conversing, .protocolViolation("a wrong message of a code exchange"),
                        peer: "\(peer.name)")
                }
                switch step {
                case .send(let message): try await stream.write(message.bytes)
                case .restart(let message):
                    if let message { try await stream.write(message.bytes) }
                    break exchanging
                case .proven(let message):
                    if let message { try await stream.write(message.bytes) }
                    stream.finish()
                    return .proven
                case .wrong(let message):
                    // The guess counts, whether its answer arrives or not.
                    if let message { _ = try? await stream.write(message.bytes) }
                    stream.finish()
                    return .wrong
                }
            }
        }
        stream.cancel(because: "the links change too often")
        throw NighError(.conversing, .linkLost, peer: "\(peer.name)")
    }

    private static func next(_ unread: inout [UInt8], on stream: ByteStream, from peer: Peer)
        async throws(NighError) -> CodeMessage
    {
        while true {
            do throws(CodeMessage.Unknown) {
                if let message = try CodeMessage.take(from: &unread) { return message }
            } catch {
                stream.cancel(because: "not a code exchange")
                throw NighError(
                    .conversing, .protocolViolation("a message \(error.kind) of a code exchange"),
                    peer: "\(peer.name)")
            }
            guard let bytes = try await stream.read() else {
                throw NighError(.conversing, .linkLost, peer: "\(peer.name)")
            }
            unread += bytes.withUnsafeBytes { Array($0) }
        }
    }
}
