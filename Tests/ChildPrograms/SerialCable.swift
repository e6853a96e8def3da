import Glibc
import NighCore
import Synchronization

/// Two serial ports with a cable between them: two pseudo-terminals, each of which receives what is written to the
/// other, as fast as a line of a rate would carry it.
///
/// `@unchecked Sendable`: once the thread runs, only it uses the descriptors and what is on its way.
package final class SerialCable: @unchecked Sendable {
    /// TIOCGPTN and TIOCSPTLCK, which Swift does not import.
    private static let (getNumber, setLock): (UInt, UInt) = (0x8004_5430, 0x4004_5431)

    /// The bytes from one end to the other.
    private struct Direction {
        var waiting: [UInt8] = []
        /// When the line will have carried what it has, in nanoseconds.
        var free: UInt64 = 0
        var bitsUntilNoise = Int.max
    }

    /// The paths of the two ports.
    package let ports: [String]
    private let masters: [Int32]
    /// Kept open, because a pseudo-terminal ends when nothing has its device open.
    private let slaves: [Int32]
    private let baud: Int?
    private let noise: Int?
    private var random: SeededGenerator
    /// The far one is closed to end the thread.
    private let stop: (near: Int32, far: Int32)
    private let isPulledNow = Atomic(false)
    private let changedBitCount = Atomic(0)
    private var thread = pthread_t()

    /// While this is set, nothing arrives.
    package var isPulled: Bool {
        get { isPulledNow.load(ordering: .relaxed) }
        set { isPulledNow.store(newValue, ordering: .relaxed) }
    }

    package var changedBits: Int { changedBitCount.load(ordering: .relaxed) }

    /// Creates a cable.
    ///
    /// - Parameters:
    ///   - baud: the bits per second that it carries; nil for as many as there are.
    ///   - noise: the number of bits of which one is changed; nil for none.
    package init(baud: Int? = nil, noise: Int? = nil, seed: UInt64 = 1) throws {
        var (masters, slaves, ports): ([Int32], [Int32], [String]) = ([], [], [])
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
            ports.append(name)
        }
        (self.masters, self.slaves, self.ports, stop) = (masters, slaves, ports, try Child.socketPair())
        (self.baud, self.noise, random) = (baud, noise, SeededGenerator(seed: seed))
        let cable = Unmanaged.passUnretained(self).toOpaque()
        let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
            Unmanaged<SerialCable>.fromOpaque($0!).takeUnretainedValue().run()
            return nil
        }
        pthread_create(&thread, nil, body, cable)
    }

    deinit {
        close(stop.far)
        pthread_join(thread, nil)
        for descriptor in masters + slaves + [stop.near] { close(descriptor) }
    }

    private static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func run() {
        var directions = [Direction(), Direction()]
        if noise != nil { for end in 0..<2 { directions[end].bitsUntilNoise = drawNoise() } }
        // A line that carries bytes one by one is imitated by pieces of 5 ms.
        var buffer = [UInt8](repeating: 0, count: baud.map { max(1, $0 / 2_000) } ?? 65_536)
        while true {
            let now = Self.now
            var pause: UInt64?
            var states = (0..<2).map { end in
                var events = directions[1 - end].waiting.isEmpty ? 0 : POLLOUT
                let direction = directions[end]
                if direction.free > now {
                    pause = min(pause ?? .max, direction.free - now)
                } else if direction.waiting.isEmpty {
                    events |= POLLIN
                }
                return pollfd(fd: masters[end], events: Int16(events), revents: 0)
            }
            states.append(pollfd(fd: stop.near, events: Int16(POLLIN), revents: 0))
            let milliseconds = pause.map { Int32($0 / 1_000_000) + 1 } ?? -1
            guard poll(&states, 3, milliseconds) >= 0 || errno == EINTR, states[2].revents == 0 else {
                return
            }
            for end in 0..<2 {
                if Int32(states[end].revents) & POLLIN != 0 {
                    let count = read(masters[end], &buffer, buffer.count)
                    if count > 0 { carry(&buffer, count, &directions[end]) }
                }
                guard !directions[1 - end].waiting.isEmpty else { continue }
                let bytes = directions[1 - end].waiting
                let count = write(masters[end], bytes, bytes.count)
                if count > 0 { directions[1 - end].waiting.removeFirst(count) }
            }
        }
    }

    private func carry(_ bytes: inout [UInt8], _ count: Int, _ direction: inout Direction) {
        var bit = 0
        while direction.bitsUntilNoise < 8 * count - bit {
            bit += direction.bitsUntilNoise
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            changedBitCount.add(1, ordering: .relaxed)
            direction.bitsUntilNoise = drawNoise()
        }
        if noise != nil { direction.bitsUntilNoise -= 8 * count - bit }
        if let baud {
            direction.free = max(direction.free, Self.now) + UInt64(count) * 10_000_000_000 / UInt64(baud)
        }
        if !isPulled { direction.waiting += bytes[..<count] }
    }

    private func drawNoise() -> Int { noise.map { Int.random(in: 1..<2 * $0, using: &random) } ?? .max }
}
