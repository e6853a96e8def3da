import CUV
import Glibc
import NighCore

/// Takes in the connections that come to a listening stream socket of any kind.
///
/// Where no more can be taken in, such as when this process has run out of descriptors, that is told, once until it works
/// again, and tried anew from time to time.
///
/// It listens until `close`, or until it is let go of. To be used on its loop only; hence `@unchecked Sendable`.
public final class SocketListener: @unchecked Sendable {
    /// So many are taken in before those that are there are read. Else a thousand that come at once would all be open before any of
    /// them could say who it is.
    private static let share = 16
    /// How long until it is tried again after no more could be taken in.
    private static let pause = Moment.Span.milliseconds(100)

    private let descriptor: Int32
    private let loop: UVEventLoop
    /// Nil once it is closed, as is what else it has.
    private var accepted: ((Int32) -> Void)?
    private var failed: ((SocketFault) -> Void)?
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    private var hasFailed = false

    /// Takes over a stream socket that listens already. To be called on the loop; the descriptor becomes non-blocking. Fails for what the
    /// loop cannot wait for; the descriptor is still the caller's then, to close.
    ///
    /// - Parameters:
    ///   - accepted: told each connection, on the loop and never from inside a call: its descriptor, which is non-blocking, closed at exec,
    ///     and the caller's from here on, to be given to a `SocketPipe` or closed.
    ///   - failed: told why no more can be taken in for now, in the same way. The listener may be closed from inside both.
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
            watch = try loop.watch(descriptor, for: .readable) { [weak self] in self?.takeIn($0) }
        } catch {
            throw SocketFault(error)
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    deinit { close() }

    private func takeIn(_ events: DescriptorEvents) {
        for _ in 0..<Self.share {
            guard let accepted else { return }
            let caller = nigh_accept(descriptor)
            guard caller < 0 else {
                hasFailed = false
                accepted(caller)
                continue
            }
            switch errno {
            case EAGAIN:
                if events.isEmpty { lookForError() }
                return
            // Of one connection, which has gone again.
            case EINTR, ECONNABORTED, EPROTO, EPERM: continue
            default: return rest(SocketFault(errno))
            }
        }
        if events.isEmpty { watch?.resume() }
    }

    /// An error was told, and nobody has come.
    private func lookForError() {
        if let fault = SocketFault.taken(from: descriptor) { return rest(fault) }
        watch?.resume()
    }

    private func rest(_ fault: SocketFault) {
        watch?.events = []
        timer = loop.schedule(at: loop.now + Self.pause) { [weak self] in
            self?.timer = nil
            self?.watch?.events = .readable
        }
        guard !hasFailed else { return }
        hasFailed = true
        failed?(fault)
    }

    /// Binds `descriptor`, a new stream socket that this owns from here on, to `address`, the bytes of a `sockaddr`, and listens there;
    /// each connection comes as a pipe, to be started in the turn in which it is told. To be called on the loop. Fails, as advertising does,
    /// where somebody else listens there already, and for whatever else the system has against it; where there is no descriptor,
    /// since the system had none, the reason is taken from `errno`.
    ///
    /// - Parameters:
    ///   - scheme: the transport's, for errors.
    ///   - backlog: how many may wait to be taken in.
    ///   - opened: told each pipe, on the loop and never from inside a call.
    ///   - failed: told why no more can be taken in for now, in the same way.
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

    /// Listens no more, and closes the socket; connections that came in stay. To be called on the loop, any number of times.
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
