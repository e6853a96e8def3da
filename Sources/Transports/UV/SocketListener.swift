import CUV
import Glibc
import NighCore

/// Accepts the connections of a listening stream socket of any kind.
///
/// If no more can be accepted, for example because this process has run out of descriptors, the listener reports that
/// once until it works again, and tries again from time to time.
///
/// It listens until `close`, or until it is released. Used on its loop only.
public final class SocketListener {
    /// How many connections are accepted before those that are there are read. Otherwise a thousand that come at once
    /// would all be open before any of them could identify itself.
    private static let acceptsPerWakeUp = 16
    /// How long to wait before trying again after no more could be accepted.
    private static let retryDelay = Moment.Span.milliseconds(100)

    private let descriptor: Int32
    private let loop: UVEventLoop
    /// Nil once the listener is closed, like the other optional properties.
    private var accepted: ((Int32) -> Void)?
    private var failed: ((SocketFault) -> Void)?
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    private var hasFailed = false

    /// Takes over a stream socket that already listens. Call it on the loop; the descriptor becomes non-blocking. Fails
    /// if the loop cannot wait for the descriptor. Then the caller still owns it and has to close it.
    ///
    /// - Parameters:
    ///   - accepted: called with each connection, on the loop and never from inside a call. It gets a descriptor that
    ///     is non-blocking and closed at exec. The caller owns it from then on, and gives it to a `SocketPipe` or
    ///     closes it.
    ///   - failed: called in the same way with the reason why no more can be accepted for now. The listener may be
    ///     closed from inside both.
    public init(
        descriptor: Int32, on loop: UVEventLoop, accepted: @escaping (Int32) -> Void,
        failed: @escaping (SocketFault) -> Void
    ) throws(SocketFault) {
        loop.checkIsolated()
        self.descriptor = descriptor
        self.loop = loop
        self.accepted = accepted
        self.failed = failed
        do throws(NighError) {
            watch = try loop.watch(descriptor, for: .readable) { [weak self] in self?.acceptWaiting($0) }
        } catch {
            throw SocketFault(error)
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    deinit { close() }

    private func acceptWaiting(_ events: DescriptorEvents) {
        for _ in 0..<Self.acceptsPerWakeUp {
            guard let accepted else { return }
            let caller = nigh_accept(descriptor)
            guard caller < 0 else {
                hasFailed = false
                accepted(caller)
                continue
            }
            switch errno {
            case EAGAIN:
                if events.isEmpty { checkForError() }
                return
            // These are errors of one connection, which is gone again.
            case EINTR, ECONNABORTED, EPROTO, EPERM: continue
            default: return pauseAccepting(SocketFault(errno))
            }
        }
        if events.isEmpty { watch?.resume() }
    }

    /// Handles an error event that came without a connection.
    private func checkForError() {
        if let fault = SocketFault.taken(from: descriptor) { return pauseAccepting(fault) }
        watch?.resume()
    }

    private func pauseAccepting(_ fault: SocketFault) {
        watch?.events = []
        timer = loop.schedule(at: loop.now + Self.retryDelay) { [weak self] in
            self?.timer = nil
            self?.watch?.events = .readable
        }
        guard !hasFailed else { return }
        hasFailed = true
        failed?(fault)
    }

    /// Binds `descriptor`, a new stream socket, to `address`, the bytes of a `sockaddr`, and listens there. The
    /// listener owns the descriptor from now on. Each connection is reported as a pipe, which has to be started in the
    /// same turn. Call it on the loop. Fails, as advertising does, if something else already listens there, and for any
    /// other error of the system. If there is no descriptor because the system had none, the reason is taken from
    /// `errno`.
    ///
    /// - Parameters:
    ///   - scheme: the transport's scheme, for errors.
    ///   - backlog: how many connections may wait to be accepted.
    ///   - opened: called with each pipe, on the loop and never from inside a call.
    ///   - failed: called in the same way with the reason why no more can be accepted for now.
    public convenience init(
        binding descriptor: Int32, to address: UnsafeRawBufferPointer, backlog: Int32 = 64, scheme: String,
        on loop: UVEventLoop, opened: @escaping (SocketPipe) -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        do throws(SocketFault) {
            let size = socklen_t(address.count)
            let name = address.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            guard descriptor >= 0, bind(descriptor, name, size) == 0, listen(descriptor, backlog) == 0 else {
                throw SocketFault(errno)
            }
            try self.init(
                descriptor: descriptor, on: loop,
                accepted: { descriptor in
                    let pipe = try? SocketPipe(descriptor: descriptor, scheme: scheme, on: loop)
                    if let pipe { opened(pipe) } else { Glibc.close(descriptor) }
                }, failed: { failed($0.error(.advertising, transport: scheme)) })
        } catch {
            if descriptor >= 0 { Glibc.close(descriptor) }
            throw error.error(.advertising, transport: scheme)
        }
    }

    /// Stops listening and closes the socket. Accepted connections stay open. Call it on the loop; more than one call
    /// does no harm.
    public func close() {
        guard let watch else { return }
        self.watch = nil
        watch.cancel()
        if let timer { loop.cancel(timer) }
        timer = nil
        (accepted, failed) = (nil, nil)
        Glibc.close(descriptor)
    }
}
