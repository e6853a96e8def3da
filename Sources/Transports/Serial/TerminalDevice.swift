import Glibc
import NighCore
import NighUV

/// A terminal device of Linux, such as a serial port.
final class TerminalDevice: SerialDevice {
    private let path: String
    private let baud: Int
    private var descriptor: Int32 = -1
    private var watch: DescriptorWatch?
    private var rest: ArraySlice<UInt8> = []

    init(_ path: String, baud: Int) {
        self.path = path
        self.baud = baud
    }

    deinit { close(sending: []) }

    var bytesWaiting: Int { rest.count }

    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        guard let loop = loop as? UVEventLoop else { throw fault(EOPNOTSUPP) }
        // Otherwise opening would wait for a carrier, and reading for bytes.
        descriptor = Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        do throws(NighError) {
            // Each of two programs would get a part of the bytes.
            guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw fault(errno) }
            try configure()
            watch = try loop.watch(descriptor, for: [.readable]) { [weak self] events in
                guard let self else { return }
                if events.contains(.writable), writeRest() { drained() }
                if events.isEmpty || events.contains(.readable), let error = read(received) { failed(error) }
            }
        } catch {
            // Not `close(sending:)`, which would drop bytes that another program has written.
            Glibc.close(descriptor)
            descriptor = -1
            throw error
        }
    }

    /// Sets eight bits, no parity, no special bytes, and no use of the lines that carry no bytes.
    private func configure() throws(NighError) {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { throw fault(errno) }
        cfmakeraw(&settings)
        settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
        settings.c_cflag &= ~(tcflag_t(CRTSCTS) | tcflag_t(CSTOPB))
        // glibc also takes the number itself.
        guard cfsetspeed(&settings, speed_t(baud)) == 0, tcsetattr(descriptor, TCSANOW, &settings) == 0 else {
            throw fault(errno)
        }
        tcflush(descriptor, TCIOFLUSH)
    }

    private func fault(_ number: Int32) -> NighError {
        let (finding, advice): (String, String) =
            switch number {
            case ENOENT, ENXIO, ENODEV, EIO: ("is not there", "plug it in, or name another device")
            case EACCES, EPERM:
                ("may not be used by this user", "`sudo usermod -aG dialout $USER`, and log in again")
            case EWOULDBLOCK, EBUSY: ("is used by another program", "end that, or name another device")
            case ENOTTY: ("is no serial port", "name a serial port, such as /dev/ttyUSB0")
            case EINVAL: ("cannot be set to \(baud) bits per second", "choose another rate, at both ends")
            case EOPNOTSUPP: ("needs a loop that waits for descriptors", "give the session a UVEventLoop")
            default: ("failed: \(String(cString: strerror(number)))", "is it still plugged in?")
            }
        return NighError(
            .starting, .unavailable("the device \(path) \(finding)"), transport: "serial", advice: advice)
    }

    /// Reads once. Returns why the device has failed, if it has.
    private func read(_ received: (UnsafeRawBufferPointer) -> Void) -> NighError? {
        guard descriptor >= 0 else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            guard count <= 0 else {
                received(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                return nil
            }
            if count < 0, errno == EAGAIN || errno == EINTR { return nil }
            let error = fault(count == 0 ? ENODEV : errno)
            close(sending: [])
            return error
        }
    }

    func write(_ bytes: [UInt8]) {
        rest += bytes
        if rest.count == bytes.count { _ = writeRest() }
    }

    /// Writes waiting bytes. Returns whether nothing waits any more.
    private func writeRest() -> Bool {
        guard descriptor >= 0 else { return false }
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        // If this fails, reading finds out why.
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
