import NighCore
import Synchronization

/// Writes the messages of one channel to one peer, each whole or not at all.
final class ChannelOutput: Sendable {
    private let stream: ByteStream
    /// The bytes of the longest message that the peer takes.
    let messageLimit: Int
    private let loop: any EventLoop
    /// The end of the message that the stream has taken in part. No other message begins before that has left.
    private let rest = Mutex<ByteSlice?>(nil)

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

    private func accept(_ frame: ByteSlice) throws(NighError) -> Bool {
        let (isAccepted, isWhole) = try rest.withLock { rest throws(NighError) -> (Bool, Bool) in
            try write(&rest)
            guard rest == nil else { return (false, false) }
            rest = frame
            try write(&rest)
            return (true, rest == nil)
        }
        if isAccepted, !isWhole { proceedLater() }
        return isAccepted
    }

    /// Writes what there is room for.
    private func write(_ rest: inout ByteSlice?) throws(NighError) {
        guard let bytes = rest else { return }
        let count = try stream.tryWrite(bytes)
        rest = count < bytes.count ? bytes[count..<bytes.count] : nil
    }

    private func proceedLater() {
        stream.notify(bytes: false, room: true, on: loop) { [weak self] in self?.proceed() }
    }

    private func proceed() {
        // A conversation that has ended is told to those who send next.
        let isDone =
            (try? rest.withLock { rest throws(NighError) in
                try write(&rest)
                return rest == nil
            }) ?? true
        if !isDone { proceedLater() }
    }

    /// Ends the stream after what was sent.
    func finish() {
        if rest.withLock({ $0 == nil }) {
            stream.finish()
        } else {
            stream.cancelWriting(because: "the channel is closed")
        }
    }
}
