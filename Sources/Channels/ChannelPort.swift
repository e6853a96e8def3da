import NighCore
import Synchronization

/// One channel of a session, for any thread.
package final class ChannelPort: Sendable {
    private struct State {
        var inputs: [ObjectIdentifier: ChannelInput] = [:]
        var outputs: [PeerID: ChannelOutput] = [:] { didSet { last = nil } }
        /// The output that was used last, so that a second message to the same peer needs no search.
        var last: (peer: PeerID, output: ChannelOutput)?
        var isClosed = false
    }

    /// A message that waits for the program, and where it came from.
    private struct Arrival: Sendable {
        let message: Message
        let input: ChannelInput
    }

    package let name: String
    package let session: SessionReference
    private let messageLimit: Int
    private let state = Mutex(State())
    private let inbox = Inbox<Arrival>()
    private let onMessage: MessageHandler?
    /// The streams of the channel that peers have opened.
    package let streams = Incoming<ByteStream>()

    /// The number of streams that wait for a reader.
    private static let streamLimit = 256

    init(_ name: String, of session: SessionReference, messageLimit: Int, onMessage: MessageHandler?) {
        self.name = name
        self.onMessage = onMessage
        self.session = session
        self.messageLimit = messageLimit
    }

    // MARK: Receiving

    /// Returns the next message without waiting, or nil if there is none now.
    package func poll() -> Message? {
        guard let arrival = inbox.poll() else { return nil }
        arrival.input.didRead(arrival.message.payload)
        return arrival.message
    }

    /// Waits for the next message. Returns nil if the channel is closed, or if the task is cancelled.
    package nonisolated(nonsending) func next() async -> Message? {
        while true {
            if let message = poll() { return message }
            guard await inbox.wait() else { return nil }
        }
    }

    /// Takes a stream of this channel. Loop only.
    func take(_ stream: ByteStream) {
        if stream.purpose == .channelStream {
            if state.withLock(\.isClosed) { return stream.cancel(because: Channels.closed) }
            return streams.inbox.append(stream, droppingOldestBeyond: Self.streamLimit)
        }
        let input = ChannelInput(stream, on: session.loop, limit: messageLimit) { [weak self] in
            self?.note($0, of: $1)
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.inputs[ObjectIdentifier(input)] = input }
            return state.isClosed
        }
        if isClosed { return stream.cancelReading(because: Channels.closed) }
        input.proceed()
    }

    private func note(_ outcome: ChannelInput.Outcome, of input: ChannelInput) {
        switch outcome {
        case .message(let message):
            guard let onMessage else { return _ = inbox.append(Arrival(message: message, input: input)) }
            message.withBytes { onMessage($0, message.origin) }
            input.didRead(message.payload)
        case .ended: state.withLock { $0.inputs[ObjectIdentifier(input)] = nil }
        }
    }

    // MARK: Sending

    private var closedError: NighError {
        NighError(.sending, .invalid("channel \"\(name)\": \(Channels.closed)"))
    }

    /// Opens a stream of the channel to a peer.
    package nonisolated(nonsending) func openStream(
        named name: String, to peer: Peer
    ) async throws(NighError) -> ByteStream {
        if state.withLock(\.isClosed) { throw closedError }
        return try await peer.openStream(
            named: "\(self.name)\(Channels.separator)\(name)", for: .channelStream)
    }

    /// Sends a message to a peer, and waits for room. Returns when the message is accepted, which is before it arrives.
    package nonisolated(nonsending) func send(_ payload: ByteSlice, to peer: Peer) async throws(NighError) {
        try await send(frame: payload.withUnsafeBytes { StreamMessageParser.frame($0) }, to: peer)
    }

    /// Sends a message if it need not wait. Returns whether it did.
    package func sendAtOnce(_ message: UnsafeRawBufferPointer, to peer: PeerID) -> Bool {
        guard !Task.isCancelled, let output = openOutput(for: peer), message.count <= output.messageLimit
        else {
            return false
        }
        // If the stream has ended, the caller waits, and learns why.
        return (try? output.sendAtOnce(message)) ?? false
    }

    private func openOutput(for peer: PeerID) -> ChannelOutput? {
        state.withLock { state in
            if let last = state.last, last.peer == peer { return last.output }
            guard let output = state.outputs[peer] else { return nil }
            state.last = (peer, output)
            return output
        }
    }

    /// Sends a message with its header, as ``send(_:to:)`` does.
    package nonisolated(nonsending) func send(frame: ByteSlice, to peer: Peer) async throws(NighError) {
        var used: ChannelOutput?
        do throws(NighError) {
            let output = try await output(to: peer.id)
            used = output
            let count = frame.count - StreamMessageParser.headerCount
            guard count <= output.messageLimit else {
                throw NighError(
                    .sending, .messageTooLarge(size: count, limit: output.messageLimit),
                    peer: peer.label,
                    advice: "send it as a file or through a stream")
            }
            try await output.send(frame)
        } catch {
            // One call fails because the stream has ended. The next one opens another stream.
            switch error.cause {
            case .cancelled, .messageTooLarge: break
            default: if let used { forget(used, to: peer.id) }
            }
            throw peer.named(error)
        }
    }

    private nonisolated(nonsending) func output(to peer: PeerID) async throws(NighError) -> ChannelOutput {
        if let output = openOutput(for: peer) { return output }
        return try await session.onLoop(.sending) { [self] () throws(NighError) in try openOutput(to: peer) }
            .get()
    }

    private func openOutput(to peer: PeerID) throws(NighError) -> ChannelOutput {
        let (output, isClosed) = state.withLock { ($0.outputs[peer], $0.isClosed) }
        if let output { return output }
        if isClosed { throw closedError }
        let stream = try session.openStream(named: name, to: peer, for: .channel)
        let opened = ChannelOutput(
            stream, messageLimit: try session.messageLimit(for: peer), on: session.loop)
        state.withLock { $0.outputs[peer] = opened }
        return opened
    }

    /// Forgets the stream to a peer that has left.
    func forget(_ peer: PeerID) { state.withLock { $0.outputs[peer] = nil } }

    /// Forgets a stream that has ended, unless another one has taken its place.
    private func forget(_ output: ChannelOutput, to peer: PeerID) {
        state.withLock { state in
            if state.outputs[peer] === output { state.outputs[peer] = nil }
        }
    }

    // MARK: End

    /// Ends the channel. Messages that were sent still arrive.
    func finish() {
        let state = state.withLock { state in
            state.isClosed = true
            defer {
                state.inputs = [:]
                state.outputs = [:]
            }
            return (inputs: state.inputs, outputs: state.outputs)
        }
        for output in state.outputs.values { output.finish() }
        for input in state.inputs.values { input.stream.cancelReading(because: Channels.closed) }
        inbox.finish()
        streams.inbox.finish()
    }
}
