import ChildPrograms
import Glibc

/// Two serial ports with a cable between them: two pseudo-terminals, each of which receives what is written to the
/// other.
///
/// `@unchecked Sendable`: once the thread runs, only it uses the descriptors.
final class NullModem: @unchecked Sendable {
    /// TIOCGPTN and TIOCSPTLCK, which Swift does not import.
    private static let (getNumber, setLock): (UInt, UInt) = (0x8004_5430, 0x4004_5431)

    /// The paths of the two devices.
    let devices: [String]
    private let masters: [Int32]
    /// Kept open, because a pseudo-terminal ends when nothing has its device open.
    private let slaves: [Int32]
    private let stop: (read: Int32, write: Int32)
    private var thread = pthread_t()

    init() throws {
        var (masters, slaves, devices): ([Int32], [Int32], [String]) = ([], [], [])
        for _ in 0..<2 {
            let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
            var (number, isLocked): (UInt32, Int32) = (0, 0)
            guard master >= 0, ioctl(master, Self.getNumber, &number) == 0,
                ioctl(master, Self.setLock, &isLocked) == 0
            else { throw Child.Failure(description: "no pseudo-terminal: \(errno)") }
            let name = "/dev/pts/\(number)"
            let slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
            var settings = termios()
            tcgetattr(slave, &settings)
            cfmakeraw(&settings)
            guard tcsetattr(slave, TCSANOW, &settings) == 0 else {
                throw Child.Failure(description: "no raw terminal: \(errno)")
            }
            masters.append(master)
            slaves.append(slave)
            devices.append(name)
        }
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Child.Failure(description: "no pair of sockets: \(errno)")
        }
        (self.masters, self.slaves, self.devices, stop) = (masters, slaves, devices, (ends[0], ends[1]))
        let wire = Unmanaged.passUnretained(self).toOpaque()
        let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
            Unmanaged<NullModem>.fromOpaque($0!).takeUnretainedValue().run()
        }
        pthread_create(&thread, nil, body, wire)
    }

    deinit {
        close(stop.write)
        pthread_join(thread, nil)
        for descriptor in masters + slaves + [stop.read] { close(descriptor) }
    }

    private func run() -> UnsafeMutableRawPointer? {
        var waiting: [[UInt8]] = [[], []]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var states = (0..<2).map { end in
                let events =
                    (waiting[1 - end].isEmpty ? POLLIN : 0) | (waiting[end].isEmpty ? 0 : POLLOUT)
                return pollfd(fd: masters[end], events: Int16(events), revents: 0)
            }
            states.append(pollfd(fd: stop.read, events: Int16(POLLIN), revents: 0))
            guard poll(&states, 3, -1) > 0 || errno == EINTR, states[2].revents == 0 else { return nil }
            for end in 0..<2 {
                if Int32(states[end].revents) & POLLIN != 0 {
                    let count = read(masters[end], &buffer, buffer.count)
                    if count > 0 { waiting[1 - end] += buffer[..<count] }
                }
                guard !waiting[end].isEmpty else { continue }
                let count = write(masters[end], waiting[end], waiting[end].count)
                if count > 0 { waiting[end].removeFirst(count) }
            }
        }
    }
}
