import NighCore
import Synchronization

/// Writes the messages of one channel to one peer, each whole or not at all.
final class ChannelOutput: Sendable {
    private let stream: ByteStream
    /// The bytes of the longest message that the peer takes.
    let messageLimit: Int
    private let loop: any EventLoop
    private let state = Mutex(State())

    private struct State {
        /// The end of the message that the stream has taken in part. No other message begins before that has left.
        var rest: ByteSlice?
        var isFinished = false
    }

    init(_ stream: ByteStream, messageLimit: Int, on loop: any EventLoop) {
        self.stream = stream
        self.messageLimit = messageLimit
        self.loop = loop
    }

    /// Waits for room, and sends a message with its header. If the call fails because its task was cancelled, nothing
    /// of the message was sent.
    nonisolated(nonsending) func send(_ frame: ByteSlice) async throws(NighError) {
        while true {
            if Task.isCancelled { throw NighError(.sending, .cancelled, peer: stream.peerLabel) }
            if try accept(frame) { return }
            await stream.waitForRoom()
        }
    }

    /// Sends a message without its header if it need not wait. Copies only the bytes that the stream has no room for.
    func sendAtOnce(_ message: UnsafeRawBufferPointer) throws(NighError) -> Bool {
        let (isAccepted, isWhole) = try state.withLock { state throws(NighError) -> (Bool, Bool) in
            guard state.rest == nil, !state.isFinished else { return (false, false) }
            let headerCount = StreamMessageParser.headerCount
            let length = UInt32(message.count).bigEndian
            var written = try withUnsafeBytes(of: length) { header throws(NighError) in
                try stream.tryWrite(header)
            }
            if written == 0 { return (false, false) }
            if written == headerCount { written += try stream.tryWrite(message) }
            if written == headerCount + message.count { return (true, true) }
            let frame = StreamMessageParser.frame(message)
            state.rest = frame[written..<frame.count]
            return (true, false)
        }
        if isAccepted, !isWhole { proceedLater() }
        return isAccepted
    }

    private func accept(_ frame: ByteSlice) throws(NighError) -> Bool {
        let (isAccepted, isWhole) = try state.withLock { state throws(NighError) -> (Bool, Bool) in
            try write(&state)
            guard state.rest == nil else { return (false, false) }
            state.rest = frame
            try write(&state)
            return (true, state.rest == nil)
        }
        if isAccepted, !isWhole { proceedLater() }
        return isAccepted
    }

    /// Writes as many bytes as there is room for.
    private func write(_ state: inout State) throws(NighError) {
        guard let bytes = state.rest else { return }
        let count = try stream.tryWrite(bytes)
        state.rest = count < bytes.count ? bytes[count..<bytes.count] : nil
        if state.rest == nil, state.isFinished { stream.finish() }
    }

    /// Goes on when there is room. Until then the stream keeps this, also when the channel is closed.
    private func proceedLater() {
        stream.notify(bytes: false, room: true, on: loop) { [self] in proceed() }
    }

    private func proceed() {
        // If the conversation has ended, the next call of `send` fails with the reason.
        let isDone =
            (try? state.withLock { state throws(NighError) in
                try write(&state)
                return state.rest == nil
            }) ?? true
        if !isDone { proceedLater() }
    }

    /// Ends the stream behind the messages that were sent.
    func finish() {
        state.withLock { state in
            state.isFinished = true
            if state.rest == nil { stream.finish() }
        }
    }
}
