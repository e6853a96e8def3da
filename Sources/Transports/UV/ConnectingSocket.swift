import Glibc
import NighCore

/// Waits until a stream socket of any kind is connected, or it is clear that it never will be.
///
/// Nothing is reported after `cancel`, nor after this object is released. The caller owns the descriptor throughout.
/// Once the socket is connected, the caller may give it to a `SocketPipe`, also at once when that is reported.
/// Otherwise the caller closes it, after `cancel` if nothing was reported yet.
///
/// Used on its loop only.
public final class ConnectingSocket {
    /// How long to wait before trying a listener on this machine again whose backlog is full. The wait doubles each
    /// time.
    private static let firstRetry = Moment.Span.milliseconds(5)
    private static let longestRetry = Moment.Span.milliseconds(100)

    private let descriptor: Int32
    private let loop: UVEventLoop
    /// Nil once the outcome was reported, or the attempt was cancelled.
    private var decided: ((Result<Void, SocketFault>) -> Void)?
    private let address: [UInt8]
    private var watch: DescriptorWatch?
    private var timeoutTimer: LoopTimer?
    private var retryTimer: LoopTimer?

    /// Begins to connect a stream socket to `address`, the bytes of a `sockaddr`. Call it on the loop; the descriptor
    /// becomes non-blocking. `decided` is called once, on the loop, in a later turn and within `timeout`. If the time
    /// runs out, the fault is `ETIMEDOUT`.
    ///
    /// If the backlog of a local (`AF_UNIX`) listener is full, the kernel refuses the connection for the moment
    /// (`EAGAIN`). The attempt is then repeated until `timeout`.
    public init(
        _ descriptor: Int32, to address: UnsafeRawBufferPointer, timeout: Duration, on loop: UVEventLoop,
        then decided: @escaping (Result<Void, SocketFault>) -> Void
    ) {
        loop.checkIsolated()
        self.descriptor = descriptor
        self.loop = loop
        self.decided = decided
        self.address = Array(address)
        timeoutTimer = loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in
            self?.finish(.failure(SocketFault(ETIMEDOUT)))
        }
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        guard let outcome = connect(nextRetry: Self.firstRetry) else { return }
        loop.later { [weak self] in self?.finish(outcome) }
    }

    /// Waits for a non-blocking socket that has begun to connect. The caller has a timeout of its own.
    package init(
        connecting descriptor: Int32, on loop: UVEventLoop,
        then decided: @escaping (Result<Void, SocketFault>) -> Void
    ) throws(SocketFault) {
        self.descriptor = descriptor
        self.loop = loop
        self.decided = decided
        address = []
        try waitForIt()
    }

    deinit { cancel() }

    /// Cancels the attempt; nothing is reported. Call it on the loop; more than one call does no harm.
    public func cancel() {
        decided = nil
        for timer in [timeoutTimer, retryTimer] { if let timer { loop.cancel(timer) } }
        (timeoutTimer, retryTimer) = (nil, nil)
        watch?.cancel()
        watch = nil
    }

    private func finish(_ outcome: Result<Void, SocketFault>) {
        guard let decided else { return }
        cancel()
        decided(outcome)
    }

    /// Asks the kernel to connect. Returns nil if the outcome is not decided yet.
    private func connect(nextRetry: Moment.Span) -> Result<Void, SocketFault>? {
        let (status, family) = address.withUnsafeBytes { bytes in
            guard bytes.count >= MemoryLayout<sockaddr>.offset(of: \.sa_data)! else {
                errno = EINVAL
                return (Int32(-1), Int32(AF_UNSPEC))
            }
            let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            return (
                Glibc.connect(descriptor, pointer, socklen_t(bytes.count)),
                Int32(bytes.loadUnaligned(as: sa_family_t.self))
            )
        }
        guard status != 0 else { return .success(()) }
        switch errno {
        case EAGAIN where family == AF_UNIX:
            retryTimer = loop.schedule(at: loop.now + nextRetry) { [weak self] in
                self?.retry(after: nextRetry)
            }
            return nil
        case EINPROGRESS, EAGAIN, EINTR:
            do throws(SocketFault) {
                try waitForIt()
                return nil
            } catch {
                return .failure(error)
            }
        default: return .failure(SocketFault(errno))
        }
    }

    private func retry(after pause: Moment.Span) {
        retryTimer = nil
        let next = min(pause + pause, Self.longestRetry)
        if let outcome = connect(nextRetry: next) { finish(outcome) }
    }

    private func waitForIt() throws(SocketFault) {
        do throws(NighError) {
            // The watch is cancelled before this object is released.
            watch = try loop.watch(descriptor, for: .writable) { [unowned self] _ in checkConnection() }
        } catch {
            throw SocketFault(error)
        }
    }

    private func checkConnection() {
        if let fault = SocketFault.taken(from: descriptor) { return finish(.failure(fault)) }
        var other = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = withUnsafeMutablePointer(to: &other) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
        }
        if status == 0 { return finish(.success(())) }
        guard errno == ENOTCONN else { return finish(.failure(SocketFault(errno))) }
        watch?.resume()
    }
}
