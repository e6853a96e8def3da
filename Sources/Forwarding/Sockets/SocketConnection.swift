import Glibc
import NighCore
import NighUV

/// A TCP connection to or from a program of this device.
///
/// Unlike a `SocketPipe`, which carries a link, it can end one direction and go on with the other, and it can be reset.
/// It owns the descriptor, and stays alive until the connection is over.
///
/// Loop only.
package final class SocketConnection: LocalConnection {
    private enum Writing {
        case open
        /// The waiting bytes are still to be sent, then the end.
        case finishing
        case over
    }

    /// How many bytes may wait before the program counts as slow.
    package static let highWaterMark = 256 << 10
    private static let sizes = SocketStream.Sizes(
        highWaterMark: highWaterMark, pieceSize: 1 << 20, piecesPerWakeUp: 2)
    /// The most bytes of one read. Bytes for which the stream has no room are copied, and the copy of a larger read
    /// would not stay in the processor's cache.
    private static let readSize = 64 << 10
    /// The most reads of one wake-up, so that other connections get their turn.
    private static let readsPerWakeUp = 8

    private let descriptor: Int32
    private let loop: UVEventLoop
    private var stream: SocketStream
    private var handler: (any LocalConnectionHandler)?
    private var writing = Writing.open
    private var hasEnded = false
    private var isOver = false

    /// Takes over a connected, non-blocking socket. Fails if the loop cannot wait for it; then the caller closes it.
    package init(_ descriptor: Int32, on loop: UVEventLoop) throws(NighError) {
        loop.checkIsolated()
        self.descriptor = descriptor
        self.loop = loop
        // A typed character must not wait until the one before it is acknowledged.
        var isOn: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        stream = SocketStream(descriptor, Self.sizes, on: loop)
        do throws(NighError) {
            // The closure keeps this connection alive until it is over.
            try stream.begin(on: loop) { self.handle($0) }
        } catch {
            isOver = true
            throw error
        }
    }

    deinit { if !isOver { Glibc.close(descriptor) } }

    package var writableBytes: Int { writing == .open ? stream.writableBytes : 0 }

    package func start(handler: any LocalConnectionHandler) {
        self.handler = handler
        if !isOver { stream.isReading = true }
    }

    package func write(_ queue: inout ByteQueue) {
        guard writing == .open, !isOver else { return queue.removeAll() }
        let number = stream.write(&queue)
        if number != 0 { failLater(number) }
    }

    package func finishWriting() {
        guard writing == .open, !isOver else { return }
        writing = .finishing
        // In a later turn, because the handler is never called from inside a call.
        if stream.waiting.isEmpty { loop.later { self.finishIfSent() } }
    }

    package func pauseReading() {
        guard !isOver, !hasEnded else { return }
        // To notice a reset meanwhile. In this order, the loop watches the descriptor without a gap.
        stream.watchesHangUp = true
        stream.isReading = false
    }

    package func resumeReading() {
        guard !isOver, !hasEnded, handler != nil, !stream.isReading else { return }
        stream.isReading = true
        stream.watchesHangUp = false
    }

    package func reset() {
        guard !isOver else { return }
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        finish()
    }

    // MARK: Events

    private func handle(_ events: DescriptorEvents) {
        // The loop reports an error as an empty set of events.
        let mayBeError = events.isEmpty || events.contains(.hungUp)
        if events.isEmpty || events.contains(.readable) { read() }
        if events.isEmpty || events.contains(.writable) { writeWaiting() }
        guard mayBeError, !isOver else { return }
        if let fault = SocketFault.taken(from: descriptor) { return close(with: fault) }
        // The socket has no error. Without this, the loop would report the hang-up again and again.
        stream.watchesHangUp = false
        stream.resume()
    }

    private func read() {
        for _ in 0..<Self.readsPerWakeUp {
            guard !isOver, stream.isReading, let handler else { return }
            let room = loop.readBuffer.room()
            let size = min(room.count, Self.readSize)
            let count = recv(descriptor, room.baseAddress, size, Int32(MSG_DONTWAIT))
            guard count > 0 else {
                let number = errno
                if count == 0 { return end() }
                return [EAGAIN, EINTR].contains(number) ? () : close(with: SocketFault(number))
            }
            handler.received(loop.readBuffer.take(count))
            // A short read has emptied the socket; the loop reports what arrives later.
            if count < size { return }
        }
    }

    private func end() {
        hasEnded = true
        stream.isReading = false
        handler?.ended()
        closeIfDone()
    }

    private func writeWaiting() {
        guard !isOver, !stream.waiting.isEmpty else { return }
        let number = stream.writeWaiting()
        guard number == 0 else { return close(with: SocketFault(number)) }
        if stream.takeWritableNotice(), writing == .open { handler?.becameWritable() }
        finishIfSent()
    }

    private func finishIfSent() {
        guard writing == .finishing, stream.waiting.isEmpty, !isOver else { return }
        writing = .over
        Glibc.shutdown(descriptor, Int32(SHUT_WR))
        closeIfDone()
    }

    private func closeIfDone() { if hasEnded, writing == .over { close(with: nil) } }

    private func failLater(_ number: Int32) {
        loop.later { self.close(with: SocketFault(number)) }
    }

    private func close(with fault: SocketFault?) {
        guard !isOver else { return }
        let handler = handler
        finish()
        handler?.closed(fault.map { NighError(.conversing, $0.cause) })
    }

    private func finish() {
        isOver = true
        handler = nil
        stream.end()
        Glibc.close(descriptor)
    }
}
