import NighCompatibility
import NighCore

extension SessionCore {
    /// Opens a stream to a connected peer.
    func startStream(named name: String, to member: Member) throws -> OutputStream {
        let output = StreamOutput()
        let transfers = member.transfers
        guard let number = transfers.add({ output.fail(MCError.gone) }) else { throw MCError.gone }
        let header = StreamHeader(sessions: member.sessions, name: name, content: .stream)
        member.low.openStream(named: StreamHeader.streamName, to: member.id) { result in
            switch result {
            case .success(let stream):
                Task(executorPreference: QueueExecutor(label: "nigh.multipeer.stream")) {
                    await output.send(on: stream, header: header)
                    transfers.remove(number)
                }
            case .failure(let error):
                output.fail(MCError(ofTransfer: error))
                transfers.remove(number)
            }
        }
        return PeerOutputStream(output)
    }

    /// Passes a stream that a peer has opened to the delegate.
    func received(_ stream: ByteStream, named name: String, rest: [UInt8], from member: Member) {
        let input = StreamInput()
        let transfers = member.transfers
        guard let number = transfers.add({ input.fail(MCError.gone) }) else { return }
        // This side writes nothing.
        stream.finish()
        Task(executorPreference: QueueExecutor(label: "nigh.multipeer.stream")) {
            await input.fill(from: stream, rest: rest)
            transfers.remove(number)
        }
        let made = Handover(PeerInputStream(input))
        let peerID = Handover(member.peerID)
        notify { $1.session($0, didReceive: made.value, withName: name, fromPeer: peerID.value) }
    }
}
