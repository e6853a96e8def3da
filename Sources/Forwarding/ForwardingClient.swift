import NighCore

/// Opens connections to ports of other devices, through the conversations of a session. Needs no layer of the session.
///
/// Loop only.
package final class ForwardingClient: @unchecked Sendable {
    /// A connection that the other side has opened.
    package struct Opened {
        package let stream: ByteStream
        /// The first bytes of the connection, which came with the answer.
        package let early: ByteSlice
        /// How long the other side keeps a conversation that no link carries.
        package let grace: Duration
    }

    /// How long the other side may take to answer while a link carries the conversation.
    private static let answerTime = Moment.Span.seconds(20)

    /// The most connections that are carried at once.
    package static let connectionLimit = 256

    private let session: Session
    private let connections = CarriedConnections()

    package init(_ session: Session) { self.session = session }

    /// The connections so far, and the bytes of those that are over. Loop only.
    package var counts: ForwardingCounts { connections.counts }

    /// The bytes that were taken from one side of a connection and not given to the other yet. Loop only.
    package var heldByteCount: Int { connections.heldByteCount }

    /// Whether one more connection may be carried. Loop only.
    package var hasRoom: Bool { connections.count < Self.connectionLimit }

    /// Opens a stream to a port of a peer's device and waits for the answer. Loop only.
    package func open(
        _ port: UInt16, at peer: PeerID, completion: @escaping @Sendable (Result<Opened, NighError>) -> Void
    ) {
        session.openStream(named: "\(port)", to: peer, for: .forward) { [self] result in
            switch result {
            case .success(let stream):
                // The stream holds the answer, and lets go of it when it ends.
                PendingForwardingAnswer(stream, port, completion).wait(on: session.loop, for: Self.answerTime)
            case .failure(let error): completion(.failure(error))
            }
        }
    }

    /// Carries the connection of a program of this device to a port of a peer's device. The program's bytes wait until
    /// the other side has answered. Calls `opened` with the answer, and `closed` once at the end, with the bytes sent
    /// and received and the reason if it did not end in good order. A connection that is refused is reset. Loop only.
    package func carry(
        _ local: any LocalConnection, to port: UInt16, at peer: PeerID,
        opened: @escaping @Sendable (_ grace: Duration) -> Void,
        closed: @escaping @Sendable (_ sent: Int, _ received: Int, NighError?) -> Void
    ) {
        guard hasRoom else {
            local.reset()
            connections.noteRefusal()
            return closed(
                0, 0,
                NighError(
                    .connecting, .limit("connections", Self.connectionLimit),
                    advice: "close connections that are not used"))
        }
        connections.takePlace(for: peer)
        nonisolated(unsafe) let local = local  // it is used on the loop only
        open(port, at: peer) { [self] result in
            switch result {
            case .success(let answered):
                let connection = connections.add(
                    answered.stream, local, port: port, early: answered.early, on: session.loop
                ) { closed($0.sent, $0.received, $1) }
                opened(answered.grace)
                connection.start()
            case .failure(let error):
                connections.freePlace(of: peer)
                connections.noteRefusal()
                local.reset()
                closed(0, 0, error)
            }
        }
    }

    /// Ends all connections for this reason. Loop only.
    package func endAll(because reason: String) {
        connections.end(because: reason)
    }
}

/// A stream whose answer has not come whole.
///
/// Loop only.
private final class PendingForwardingAnswer {
    private let stream: ByteStream
    private let port: UInt16
    private var completion: (@Sendable (Result<ForwardingClient.Opened, NighError>) -> Void)?
    private var reader = ForwardingAnswerReader()
    private var timer: LoopTimer?

    init(
        _ stream: ByteStream, _ port: UInt16,
        _ completion: @escaping @Sendable (Result<ForwardingClient.Opened, NighError>) -> Void
    ) {
        self.stream = stream
        self.port = port
        self.completion = completion
    }

    func wait(on loop: any EventLoop, for time: Moment.Span) {
        timer = loop.schedule(at: loop.now + time) { [self] in
            timer = nil
            // Without a link there can be no answer; the conversation ends by itself if there is none for long.
            if stream.isReconnecting { return wait(on: loop, for: time) }
            end(.failure(NighError(.connecting, .timedOut, peer: stream.peerLabel)), loop)
        }
        watch(loop)
    }

    private func watch(_ loop: any EventLoop) {
        stream.notify(bytes: true, room: false, on: loop) { [self] in read(loop) }
    }

    private func read(_ loop: any EventLoop) {
        switch stream.poll() {
        case .nothing: watch(loop)
        case .bytes(let bytes): read(bytes, loop)
        case .end:
            fail(.protocolViolation("the stream of a forwarded connection ended before its answer"), loop)
        case .failed(let error):
            end(.failure(NighError(.connecting, error.cause, peer: stream.peerLabel)), loop)
        }
    }

    private func read(_ bytes: ByteSlice, _ loop: any EventLoop) {
        do throws(WireError) {
            guard let (answer, rest) = try reader.append(bytes) else { return watch(loop) }
            switch answer {
            case .connected(let grace): end(.success(.init(stream: stream, early: rest, grace: grace)), loop)
            case .refused(let refusal):
                end(.failure(refusal.error(port: port, peer: stream.peerLabel)), loop)
            }
        } catch {
            fail(.protocolViolation(error.message), loop)
        }
    }

    private func fail(_ cause: NighError.Cause, _ loop: any EventLoop) {
        end(.failure(NighError(.connecting, cause, peer: stream.peerLabel)), loop)
    }

    private func end(_ result: Result<ForwardingClient.Opened, NighError>, _ loop: any EventLoop) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        stream.notify(bytes: false, room: false, on: loop) {}
        if case .failure = result { stream.cancel(because: "the connection was given up") }
        completion(result)
    }
}
