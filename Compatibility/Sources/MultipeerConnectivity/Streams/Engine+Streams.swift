import NighCompatibility
import NighCore

/// A stream that a peer has opened to a session which is not connected to it yet: the peer's own word may still be
/// under way.
struct ParkedStream {
    let peer: PeerID
    let header: StreamHeader
    let rest: [UInt8]
    let stream: ByteStream
    let deadline: Date
}

extension Engine {
    /// A peer has opened a stream.
    func opened(_ stream: ByteStream) {
        Task(executorPreference: QueueExecutor(label: "nigh.multipeer.stream")) {
            guard let (header, rest) = await StreamHeader.read(from: stream) else { return }
            Control.async {
                let parked = ParkedStream(
                    peer: stream.peer, header: header, rest: rest, stream: stream,
                    deadline: Date() + Self.joinTime)
                guard !self.deliver(parked), SessionDirectory.session(header.sessions.to) != nil else {
                    return
                }
                self.parkedStreams.append(parked)
                Control.after(Self.joinTime) { [weak self] in
                    self?.parkedStreams.removeAll { $0.deadline <= Date() }
                }
            }
        }
    }

    /// Gives a stream to its session. Returns false if the session is not connected to the peer.
    private func deliver(_ parked: ParkedStream) -> Bool {
        let sessions = parked.header.sessions
        guard let session = SessionDirectory.session(sessions.to), let member = session.member(parked.peer),
            member.sessions.to == sessions.from
        else { return false }
        switch parked.header.content {
        case .stream:
            session.received(parked.stream, named: parked.header.name, rest: parked.rest, from: member)
        case .resource(let size):
            session.received(
                resource: parked.stream, named: ResourceName.harmless(parked.header.name), size: size,
                rest: parked.rest,
                from: member)
        }
        return true
    }

    /// Gives those streams to a session that it is connected for by now.
    func reconsiderStreams(of session: SessionCore) {
        let waiting = parkedStreams
        parkedStreams = []
        for parked in waiting where parked.header.sessions.to != session.number || !deliver(parked) {
            parkedStreams.append(parked)
        }
    }
}
