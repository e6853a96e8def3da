// The device at this end of the wire: bytes go out and come in, and some are lost.
import Glibc
import NighTransport

/// What the transport needs of a device. Tests put a simulated wire in its place.
protocol Port: AnyObject {
    /// The number of bytes given to `write` that have not left.
    var waiting: Int { get }
    /// Opens the device. `received` gets the bytes that arrive, `drained` is called when nothing waits any more, and
    /// `failed` when the device fails. All are called in later turns of `loop`, and never after `close`.
    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError)
    /// Takes all bytes, and sends later what the device does not take now.
    func write(_ bytes: [UInt8])
    /// Closes the device. Waiting bytes are dropped. Of `last`, as much is sent as the device takes at once.
    func close(sending last: [UInt8])
}

/// A terminal device, such as a serial port.
final class TerminalPort: Port {
    static let speeds: [Int: Int32] = [
        57_600: B57600, 115_200: B115200, 230_400: B230400, 460_800: B460800, 921_600: B921600,
        1_000_000: B1000000, 2_000_000: B2000000, 3_000_000: B3000000,
    ]

    private let path: String
    private let speed: Int
    private var descriptor: Int32 = -1
    private var watch: DescriptorWatch?
    private var rest: ArraySlice<UInt8> = []
    private var failed: (NighError) -> Void = { _ in }

    init(_ path: String, speed: Int) {
        self.path = path
        self.speed = speed
    }

    deinit { close(sending: []) }

    var waiting: Int { rest.count }

    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        guard let loop = loop as? UVEventLoop else { throw fault(EOPNOTSUPP) }
        // Otherwise opening would wait for a carrier, and reading for bytes.
        descriptor = Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        do throws(NighError) {
            // Two programs on one device would each get half of what arrives.
            guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw fault(errno) }
            try configure()
            watch = try loop.watch(descriptor, for: [.readable]) { [weak self] events in
                if events.isEmpty || events.contains(.readable) { self?.read(received) }
                if events.contains(.writable), self?.writeWaiting() == true { drained() }
            }
        } catch {
            Glibc.close(descriptor)
            descriptor = -1
            throw error
        }
        self.failed = failed
    }

    /// Sets eight bits, no parity, no special bytes, and no use of the lines that carry no bytes.
    private func configure() throws(NighError) {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { throw fault(errno) }
        cfmakeraw(&settings)
        settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
        settings.c_cflag &= ~tcflag_t(CRTSCTS)
        cfsetspeed(&settings, speed_t(Self.speeds[speed] ?? B115200))
        guard tcsetattr(descriptor, TCSANOW, &settings) == 0 else { throw fault(errno) }
        tcflush(descriptor, TCIOFLUSH)
    }

    private func fault(_ number: Int32) -> NighError {
        let (finding, advice): (String, String) =
            switch number {
            case ENOENT, ENXIO, ENODEV: ("is not there", "plug it in, or name another device")
            case EACCES, EPERM:
                ("may not be used by this user", "`sudo usermod -aG dialout $USER`, and log in again")
            case EWOULDBLOCK, EBUSY: ("is used by another program", "end that, or name another device")
            case ENOTTY: ("is no serial port", "name a serial port, such as /dev/ttyUSB0")
            case EOPNOTSUPP: ("needs a loop that waits for descriptors", "give the session a UVEventLoop")
            default: ("failed: \(String(cString: strerror(number)))", "is it still plugged in?")
            }
        return NighError(
            .starting, .unavailable("the device \(path) \(finding)"), transport: "serial", advice: advice)
    }

    private func read(_ received: (UnsafeRawBufferPointer) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count > 0 { return buffer.withUnsafeBytes { received(.init(rebasing: $0[..<count])) } }
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        let error = fault(count == 0 ? ENODEV : errno)
        let failed = failed
        close(sending: [])
        failed(error)
    }

    func write(_ bytes: [UInt8]) {
        guard watch != nil else { return }
        rest += bytes
        if rest.count == bytes.count { _ = writeWaiting() }
    }

    /// Writes what waits, and returns whether nothing waits any more.
    private func writeWaiting() -> Bool {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        // If this fails, reading reports why.
        if count > 0 { rest = rest.dropFirst(count) }
        watch?.events = rest.isEmpty ? [.readable] : [.readable, .writable]
        return rest.isEmpty
    }

    func close(sending last: [UInt8]) {
        guard descriptor >= 0 else { return }
        watch?.cancel()
        watch = nil
        rest = []
        // Otherwise closing would wait until everything that the device holds has left.
        tcflush(descriptor, TCOFLUSH)
        _ = Glibc.write(descriptor, last, last.count)
        Glibc.close(descriptor)
        descriptor = -1
    }
}
