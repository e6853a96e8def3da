import NighCore
import NighMemory
import NighTestKit

@testable import NighSerial

/// A serial line in virtual time, and the devices at its two ends. It takes its time and changes bits, and one seed
/// decides which.
///
/// `@unchecked Sendable`: everything is on the one loop.
final class SimulatedLine: @unchecked Sendable {
    let loop: VirtualEventLoop
    let baud: Int
    /// One bit in this many is changed.
    var noise = Int.max
    /// While this is set, nothing passes.
    var isPulled = false
    private(set) var changedBits = 0
    var keepsFrames = false
    /// The last frames from both ends, if it keeps them.
    private(set) var lastFrames: [SerialFrame] = []
    private var random: SeededGenerator
    private var bitsUntilNoise = Int.max
    private var ends: [Int: SimulatedDevice] = [:]
    /// When each end will have sent what it has.
    private var free = [Moment(nanoseconds: 0), Moment(nanoseconds: 0)]

    init(on loop: VirtualEventLoop, baud: Int = 3_000_000, noise: Int = .max, seed: UInt64 = 1) {
        self.loop = loop
        self.baud = baud
        self.noise = noise
        random = SeededGenerator(seed: seed)
        drawNoise()
    }

    func makeTransport(_ end: Int) -> SerialTransport {
        SerialTransport(baud: baud) { SimulatedDevice(end, of: self) }
    }

    /// Starts a session at one end, which accepts everybody.
    func session(_ name: String, at end: Int) -> SessionProbe {
        let transport = FaultyTransport(makeTransport(end))
        let session = Session(
            SessionConfiguration(service: "line-test", name: DisplayName(fitting: name)),
            identity: .ephemeral(seed: UInt64(end + 1)), transports: [transport], loop: loop)
        let probe = SessionProbe(number: end + 1, session: session, faults: transport.control)
        probe.start(reading: .handler, accepting: true)
        return probe
    }

    private func drawNoise() {
        guard noise < .max else { return }
        bitsUntilNoise = Int.random(in: 1..<2 * noise, using: &random)
    }

    fileprivate func attach(_ device: SimulatedDevice) { ends[device.end] = device }
    fileprivate func detach(_ device: SimulatedDevice) {
        if ends[device.end] === device { ends[device.end] = nil }
    }

    /// Lets `end` receive a frame that nobody has sent.
    func inject(_ frame: SerialFrame, into end: Int) {
        frame.bytes.withUnsafeBytes { ends[end]?.received($0) }
    }

    fileprivate func carry(_ bytes: [UInt8], from end: Int) {
        guard !bytes.isEmpty else { return }
        if keepsFrames, let frame = SerialFrame(stuffed: Array(bytes.dropFirst().dropLast())) {
            lastFrames = lastFrames.suffix(15) + [frame]
        }
        var bytes = bytes
        var bit = 0
        while bitsUntilNoise < 8 * bytes.count - bit {
            bit += bitsUntilNoise
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            changedBits += 1
            drawNoise()
        }
        if noise < .max { bitsUntilNoise -= 8 * bytes.count - bit }
        let time = Moment.Span(nanoseconds: Int64(bytes.count) * 10_000_000_000 / Int64(baud))
        free[end] = max(free[end], loop.now) + time
        let sent = bytes
        loop.schedule(at: free[end]) { [self] in
            if !isPulled { sent.withUnsafeBytes { ends[1 - end]?.received($0) } }
        }
    }
}

final class SimulatedDevice: SerialDevice {
    let end: Int
    let bytesWaiting = 0
    private let line: SimulatedLine
    fileprivate var received: (UnsafeRawBufferPointer) -> Void = { _ in }

    init(_ end: Int, of line: SimulatedLine) {
        self.end = end
        self.line = line
    }

    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        self.received = received
        line.attach(self)
    }

    func write(_ bytes: [UInt8]) { line.carry(bytes, from: end) }

    func close(sending last: [UInt8]) {
        line.carry(last, from: end)
        line.detach(self)
    }
}
